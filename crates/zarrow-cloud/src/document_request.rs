//! Requests for one document, or its version, by many callers at once.
//!
//! 1. A write requests the version of its array's document before its first chunk and after its last. A new array
//!    requests the documents of the groups above it. While a request for a key is in flight, further callers are
//!    collected for [`COLLECT_TIME`], and share one request.
//! 2. A caller never joins a request that was sent earlier, because that answer may be older than the call.
//! 3. If a shared request fails, the first caller gets the error, and a separate request is sent for each other
//!    caller. That caller's handle then cancels the separate request.
//! 4. No lock is held while a receiver or a cancel handle is called. So a receiver may cancel any request, its own
//!    included.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;
use zarrow::store::remote::{ByteRange, Head, Outcome, Receiver, Request, RequestClass, RequestHandle};
use zarrow::{ErrorKind, Result};
use zarrow_array::fork::{Mutex, generation};

/// How long callers are collected.
const COLLECT_TIME: Duration = Duration::from_millis(2);

/// Sends requests.
pub trait Sender: Send + Sync + 'static {
    fn send(self: Arc<Self>, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle;

    /// Calls `work` after a delay; returns `false` if it cannot.
    fn later(&self, delay: Duration, work: Box<dyn FnOnce() + Send>) -> bool;

    fn document_requests(&self) -> &DocumentRequests;
}

/// The document requests of one store.
#[derive(Default)]
pub struct DocumentRequests(Mutex<State>);

#[derive(Default)]
struct State {
    /// Process generation of the requests.
    generation: u64,
    /// By key, and by whether all bytes are requested.
    keys: HashMap<(String, bool), Key>,
}

#[derive(Default)]
struct Key {
    /// Number of requests in flight.
    in_flight: usize,
    /// Callers of the next request.
    collected: Option<Arc<Callers>>,
}

/// Whether a request is for a document or its version.
pub fn is_document_request(request: &Request) -> bool {
    matches!(request.range, ByteRange::Whole | ByteRange::Range(Range { start: 0, end: 0 }))
        && request.if_version.is_none()
        && request.class == RequestClass::Metadata
}

/// Sends a document request, or adds its caller to the next one (step 1).
pub fn submit<S: Sender>(sender: &Arc<S>, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
    let mut state = sender.document_requests().0.lock();
    if state.generation != generation() {
        // The parent's requests are answered in the parent.
        std::mem::forget(std::mem::take(&mut state.keys));
        state.generation = generation();
    }
    let key = state.keys.entry(key_of(&request)).or_default();
    if key.in_flight > 0
        && let Some(collected) = &key.collected
    {
        return collected.add(receiver);
    }
    let callers = Arc::new(Callers::default());
    let handle = callers.add(receiver);
    if key.in_flight == 0 {
        key.in_flight = 1;
        drop(state);
        send_shared(sender, request, callers);
    } else {
        key.collected = Some(callers);
        drop(state);
        let (own, copy) = (Arc::clone(sender), request.clone());
        if !sender.later(COLLECT_TIME, Box::new(move || send_collected(&own, copy))) {
            send_collected(sender, request);
        }
    }
    handle
}

fn key_of(request: &Request) -> (String, bool) {
    (request.key.clone(), request.range == ByteRange::Whole)
}

/// Sends the request of the collected callers.
fn send_collected<S: Sender>(sender: &Arc<S>, request: Request) {
    let collected = {
        let mut state = sender.document_requests().0.lock();
        let Some(key) = state.keys.get_mut(&key_of(&request)) else { return };
        key.in_flight += 1;
        key.collected.take()
    };
    send_shared(sender, request, collected.unwrap_or_default());
}

fn send_shared<S: Sender>(sender: &Arc<S>, request: Request, callers: Arc<Callers>) {
    let shared = SharedReceiver { sender: Arc::clone(sender), request: request.clone(), callers };
    let callers = Arc::clone(&shared.callers);
    let handle = Arc::clone(sender).send(request, Box::new(shared));
    let mut state = callers.0.lock();
    if state.is_wanted() {
        state.handle = Some(handle);
    } else {
        drop(state);
        // Already answered, or cancelled by all callers.
        handle.cancel();
    }
}

/// The callers of one request.
#[derive(Default)]
struct Callers(Mutex<CallersState>);

#[derive(Default)]
struct CallersState {
    callers: Vec<Caller>,
    /// The shared request, once sent.
    handle: Option<RequestHandle>,
}

enum Caller {
    /// Waits for the shared answer.
    Waiting(Box<dyn Receiver>),
    /// Its receiver is being called, or its separate request is being sent.
    Busy,
    /// Cancelled while busy: takes effect right after that.
    Cancelled,
    /// Has a separate request (step 3).
    Separate(RequestHandle),
    Ended,
}

impl CallersState {
    /// Whether a caller waits for the shared answer.
    fn is_wanted(&self) -> bool {
        self.callers.iter().any(|caller| matches!(caller, Caller::Waiting(_) | Caller::Busy))
    }
}

impl Callers {
    /// Adds a caller; returns the handle that cancels its request. If all callers cancel, so is the shared request.
    fn add(self: &Arc<Self>, receiver: Box<dyn Receiver>) -> RequestHandle {
        let mut state = self.0.lock();
        let number = state.callers.len();
        state.callers.push(Caller::Waiting(receiver));
        drop(state);
        let own = Arc::clone(self);
        RequestHandle::new(move || own.cancel(number))
    }

    fn cancel(&self, number: usize) {
        let mut state = self.0.lock();
        let caller = &mut state.callers[number];
        let after = match caller {
            Caller::Busy | Caller::Cancelled => Caller::Cancelled,
            Caller::Waiting(_) | Caller::Separate(_) | Caller::Ended => Caller::Ended,
        };
        let before = std::mem::replace(caller, after);
        let shared = if state.is_wanted() { None } else { state.handle.take() };
        drop(state);
        if let Some(shared) = shared {
            shared.cancel();
        }
        match before {
            Caller::Waiting(receiver) => receiver.done(Ok(Outcome::Stopped)),
            Caller::Separate(handle) => handle.cancel(),
            Caller::Busy | Caller::Cancelled | Caller::Ended => {}
        }
    }

    /// Passes a part of the answer to each waiting receiver; breaks if none wants more.
    fn tell(&self, mut tell: impl FnMut(&mut dyn Receiver) -> ControlFlow<()>) -> ControlFlow<()> {
        let count = self.0.lock().callers.len();
        for number in 0..count {
            if let Some(mut called) = self.call(number) {
                let flow = match &mut called.receiver {
                    Some(receiver) => tell(&mut **receiver),
                    None => ControlFlow::Break(()),
                };
                called.finish(flow);
            }
        }
        if self.0.lock().is_wanted() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Takes the receiver of a waiting caller, which is busy until the guard ends.
    fn call(&self, number: usize) -> Option<Called<'_>> {
        let mut state = self.0.lock();
        let caller = &mut state.callers[number];
        if !matches!(caller, Caller::Waiting(_)) {
            return None;
        }
        match std::mem::replace(caller, Caller::Busy) {
            Caller::Waiting(receiver) => Some(Called { callers: self, number, receiver: Some(receiver) }),
            _ => None,
        }
    }

    /// Ends the shared request and returns the waiting receivers. After a failure, all but the first are busy until their
    /// separate request is sent.
    fn end(&self, is_failed: bool) -> Vec<(usize, Box<dyn Receiver>)> {
        let mut state = self.0.lock();
        let handle = state.handle.take();
        let mut waiting = Vec::new();
        for (number, caller) in state.callers.iter_mut().enumerate() {
            if !matches!(caller, Caller::Waiting(_)) {
                continue;
            }
            let after = if is_failed && !waiting.is_empty() { Caller::Busy } else { Caller::Ended };
            if let Caller::Waiting(receiver) = std::mem::replace(caller, after) {
                waiting.push((number, receiver));
            }
        }
        drop(state);
        drop(handle);
        waiting
    }

    /// Sends a separate request for a busy caller, unless it was cancelled (step 3).
    fn send_separately(
        &self,
        number: usize,
        receiver: Box<dyn Receiver>,
        send: impl FnOnce(Box<dyn Receiver>) -> RequestHandle,
    ) {
        if matches!(self.0.lock().callers[number], Caller::Cancelled) {
            return receiver.done(Ok(Outcome::Stopped));
        }
        let handle = send(receiver);
        let mut state = self.0.lock();
        let caller = &mut state.callers[number];
        if matches!(caller, Caller::Busy) {
            *caller = Caller::Separate(handle);
        } else {
            drop(state);
            handle.cancel();
        }
    }
}

/// A receiver that is being called. If the call panics, the receiver waits for the end of the request again.
struct Called<'a> {
    callers: &'a Callers,
    number: usize,
    receiver: Option<Box<dyn Receiver>>,
}

impl Called<'_> {
    /// Ends the call: the receiver waits for more, unless it wants no more or was cancelled.
    fn finish(mut self, flow: ControlFlow<()>) {
        let Some(receiver) = self.receiver.take() else { return };
        let mut state = self.callers.0.lock();
        let caller = &mut state.callers[self.number];
        if flow.is_continue() && matches!(caller, Caller::Busy) {
            *caller = Caller::Waiting(receiver);
        } else {
            *caller = Caller::Ended;
            drop(state);
            receiver.done(Ok(Outcome::Stopped));
        }
    }
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            self.callers.0.lock().callers[self.number] = Caller::Waiting(receiver);
        }
    }
}

/// Receives the answer of a shared request.
struct SharedReceiver<S: Sender> {
    sender: Arc<S>,
    request: Request,
    callers: Arc<Callers>,
}

impl<S: Sender> Receiver for SharedReceiver<S> {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        self.callers.tell(|receiver| receiver.head(head))
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.callers.tell(|receiver| receiver.frame(bytes))
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        {
            let mut state = self.sender.document_requests().0.lock();
            if let Some(key) = state.keys.get_mut(&key_of(&self.request)) {
                key.in_flight = key.in_flight.saturating_sub(1);
                if key.in_flight == 0 && key.collected.is_none() {
                    state.keys.remove(&key_of(&self.request));
                }
            }
        }
        let mut waiting = self.callers.end(result.is_err()).into_iter();
        match result {
            Ok(outcome) => waiting.for_each(|(_, receiver)| receiver.done(Ok(outcome))),
            Err(error) => {
                let is_interrupted = matches!(error.kind(), ErrorKind::Interrupted);
                if let Some((_, first)) = waiting.next() {
                    first.done(Err(error));
                }
                for (number, receiver) in waiting {
                    if is_interrupted {
                        receiver.done(Ok(Outcome::Stopped));
                        continue;
                    }
                    self.callers.send_separately(number, receiver, |receiver| {
                        Arc::clone(&self.sender).send(self.request.clone(), receiver)
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver as Answers, Sender as Answering, channel};

    type Work = Box<dyn FnOnce() + Send>;

    /// The number of a caller, and the end of its request.
    type End = (usize, Result<Outcome>);

    /// Keeps the receivers of sent requests for the test to call.
    #[derive(Default)]
    struct Held {
        requests: DocumentRequests,
        sent: Mutex<Vec<Option<Box<dyn Receiver>>>>,
        /// The cancelled requests, by their place in `sent`.
        cancelled: Arc<Mutex<Vec<usize>>>,
        later: Mutex<Vec<Work>>,
        /// Called by the next send.
        on_send: Mutex<Option<Work>>,
    }

    impl Sender for Held {
        fn send(self: Arc<Self>, _: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
            let number = {
                let mut sent = self.sent.lock();
                sent.push(Some(receiver));
                sent.len() - 1
            };
            let work = self.on_send.lock().take();
            if let Some(work) = work {
                work();
            }
            let cancelled = Arc::clone(&self.cancelled);
            RequestHandle::new(move || cancelled.lock().push(number))
        }

        fn later(&self, _: Duration, work: Work) -> bool {
            self.later.lock().push(work);
            true
        }

        fn document_requests(&self) -> &DocumentRequests {
            &self.requests
        }
    }

    impl Held {
        fn receiver(&self, number: usize) -> Box<dyn Receiver> {
            self.sent.lock()[number].take().unwrap()
        }

        /// Submits a request, and a shared one of `count` callers behind it.
        fn shared(self: &Arc<Self>, count: usize) -> (Vec<RequestHandle>, Answers<End>) {
            let (answering, answers) = channel();
            let submit = |number| submit(self, document(), Box::new(Caller(number, answering.clone())));
            let handles = (0..=count).map(submit).collect();
            let work: Vec<Work> = std::mem::take(&mut *self.later.lock());
            work.into_iter().for_each(|work| work());
            assert_eq!(self.sent.lock().len(), 2);
            (handles, answers)
        }
    }

    /// Reports the end of its request.
    struct Caller(usize, Answering<End>);

    impl Receiver for Caller {
        fn head(&mut self, _: &Head) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn frame(&mut self, _: &[u8]) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn done(self: Box<Self>, result: Result<Outcome>) {
            self.1.send((self.0, result)).unwrap();
        }
    }

    fn document() -> Request {
        Request::new("zarr.json", ByteRange::Whole).with_class(RequestClass::Metadata)
    }

    fn head() -> Head {
        Head { start: 0, nbytes: Some(3), version: None }
    }

    fn failure() -> Result<Outcome> {
        Err(ErrorKind::Internal("failed".into()).into())
    }

    #[test]
    fn cancelling_a_caller_after_a_failed_shared_request_cancels_its_own() {
        let held = Arc::new(Held::default());
        let (handles, answers) = held.shared(3);
        held.receiver(1).done(failure());
        let (first, result) = answers.try_recv().unwrap();
        assert!(first == 1 && result.is_err());
        assert_eq!(held.sent.lock().len(), 4, "callers 2 and 3 have their own requests");
        handles[1].cancel();
        handles[3].cancel();
        assert_eq!(*held.cancelled.lock(), [3]);
        handles[3].cancel();
        held.receiver(2).done(Ok(Outcome::Missing));
        assert!(matches!(answers.try_recv(), Ok((2, Ok(Outcome::Missing)))));
        assert_eq!(*held.cancelled.lock(), [3], "no request is cancelled twice");
    }

    #[test]
    fn cancelling_callers_while_their_own_requests_are_sent_cancels_them() {
        let held = Arc::new(Held::default());
        let (handles, answers) = held.shared(3);
        let cancel = Box::new(move || handles[2..].iter().for_each(RequestHandle::cancel));
        *held.on_send.lock() = Some(cancel);
        held.receiver(1).done(failure());
        assert_eq!(held.sent.lock().len(), 3, "caller 3 was cancelled before its request was sent");
        assert_eq!(*held.cancelled.lock(), [2]);
        assert!(matches!(answers.try_recv(), Ok((1, Err(_)))));
        assert!(matches!(answers.try_recv(), Ok((3, Ok(Outcome::Stopped)))));
    }

    /// Cancels requests while it is called.
    struct Cancelling {
        handles: Arc<Mutex<Vec<RequestHandle>>>,
        in_head: bool,
        ended: Answering<End>,
    }

    impl Receiver for Cancelling {
        fn head(&mut self, _: &Head) -> ControlFlow<()> {
            if self.in_head {
                self.handles.lock().iter().for_each(RequestHandle::cancel);
            }
            ControlFlow::Continue(())
        }

        fn frame(&mut self, _: &[u8]) -> ControlFlow<()> {
            self.handles.lock().iter().for_each(RequestHandle::cancel);
            ControlFlow::Continue(())
        }

        fn done(self: Box<Self>, result: Result<Outcome>) {
            self.ended.send((0, result)).unwrap();
        }
    }

    #[test]
    fn a_receiver_may_cancel_all_requests_while_it_is_called() {
        for in_head in [true, false] {
            let (answering, answers) = channel();
            // In a separate thread, so that a deadlock fails the test.
            std::thread::spawn(move || {
                let held = Arc::new(Held::default());
                let handles = Arc::new(Mutex::default());
                let cancelling =
                    Cancelling { handles: Arc::clone(&handles), in_head, ended: answering.clone() };
                let first = submit(&held, document(), Box::new(Caller(1, answering.clone())));
                let own = submit(&held, document(), Box::new(cancelling));
                let other = submit(&held, document(), Box::new(Caller(2, answering.clone())));
                handles.lock().extend([own, other]);
                let work: Vec<Work> = std::mem::take(&mut *held.later.lock());
                work.into_iter().for_each(|work| work());
                let mut shared = held.receiver(1);
                let flow = if in_head { shared.head(&head()) } else { shared.frame(b"abc") };
                assert!(flow.is_break() && *held.cancelled.lock() == [1], "no caller wants the answer");
                shared.done(Ok(Outcome::Stopped));
                drop(first);
            });
            let mut ended = [(); 2].map(|()| answers.recv_timeout(Duration::from_secs(60)).unwrap());
            ended.sort_by_key(|(number, _)| *number);
            assert!(matches!(ended, [(0, Ok(Outcome::Stopped)), (2, Ok(Outcome::Stopped))]));
        }
    }

    /// Wants the head alone, or panics.
    struct Short {
        panics: bool,
        ended: Answering<End>,
    }

    impl Receiver for Short {
        fn head(&mut self, _: &Head) -> ControlFlow<()> {
            assert!(!self.panics);
            ControlFlow::Break(())
        }

        fn frame(&mut self, _: &[u8]) -> ControlFlow<()> {
            ControlFlow::Break(())
        }

        fn done(self: Box<Self>, result: Result<Outcome>) {
            self.ended.send((0, result)).unwrap();
        }
    }

    fn short(panics: bool) -> (Arc<Held>, Box<dyn Receiver>, Answers<End>) {
        let held = Arc::new(Held::default());
        let (ended, answers) = channel();
        submit(&held, document(), Box::new(Caller(1, channel().0)));
        submit(&held, document(), Box::new(Short { panics, ended: ended.clone() }));
        submit(&held, document(), Box::new(Caller(2, ended)));
        let work: Vec<Work> = std::mem::take(&mut *held.later.lock());
        work.into_iter().for_each(|work| work());
        let shared = held.receiver(1);
        (held, shared, answers)
    }

    #[test]
    fn a_receiver_that_wants_no_more_ends_before_the_others() {
        let (held, mut shared, answers) = short(false);
        assert!(shared.head(&head()).is_continue());
        assert!(matches!(answers.try_recv(), Ok((0, Ok(Outcome::Stopped)))));
        shared.done(failure());
        assert!(matches!(answers.try_recv(), Ok((2, Err(_)))));
        assert_eq!(held.sent.lock().len(), 2, "nothing is sent for a caller that has ended");
    }

    #[test]
    fn a_receiver_that_panics_learns_of_the_end() {
        let (_held, mut shared, answers) = short(true);
        let called = std::panic::AssertUnwindSafe(|| shared.head(&head()));
        assert!(std::panic::catch_unwind(called).is_err());
        shared.done(failure());
        assert!(matches!(answers.try_recv(), Ok((0, Err(_)))));
    }
}
