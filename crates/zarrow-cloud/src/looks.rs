//! Requests for one document, or its version, by many callers at once.
//!
//! 1. Each write asks for the version of its array's document, before its first chunk and after its last. Each array that is
//!    created asks for the documents of the groups above. While such a request is under way, further ones for the same key are
//!    gathered for [`GATHERED_FOR`], and sent as one.
//! 2. A request never joins one that was sent before it: that answer may be older than the question.
//! 3. If a shared request fails, each caller's own is sent.

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;
use zarrow::store::remote::{Head, Outcome, Receiver, Request, RequestClass, RequestHandle, Span};
use zarrow::{ErrorKind, Result};
use zarrow_array::fork::{Mutex, generation};

/// How long requests are gathered.
const GATHERED_FOR: Duration = Duration::from_millis(2);

/// Sends a request.
pub trait Sender: Send + Sync + 'static {
    fn send(self: Arc<Self>, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle;

    /// Calls `work` after a time; `false` if it cannot.
    fn later(&self, after: Duration, work: Box<dyn FnOnce() + Send>) -> bool;

    fn looks(&self) -> &Looks;
}

/// The requests of one store.
#[derive(Default)]
pub struct Looks(Mutex<State>);

#[derive(Default)]
struct State {
    /// The process that they belong to.
    generation: u64,
    /// By keys, and whether all bytes are wanted.
    keys: HashMap<(String, bool), Key>,
}

#[derive(Default)]
struct Key {
    /// Requests under way.
    sent: usize,
    /// Callers that wait for the next request.
    gathered: Option<Arc<Callers>>,
}

/// The callers of one request.
#[derive(Default)]
struct Callers(Mutex<CallersState>);

#[derive(Default)]
struct CallersState {
    /// Receivers by their numbers.
    receivers: Vec<(u64, Box<dyn Receiver>)>,
    /// Numbers of receivers that stopped this answer.
    full: HashSet<u64>,
    next: u64,
    /// The request, if it was sent.
    handle: Option<RequestHandle>,
}

impl Callers {
    /// Adds a caller. Returns the handle that cancels its request; that of the last one stops the shared request.
    fn add(self: &Arc<Self>, receiver: Box<dyn Receiver>) -> RequestHandle {
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        state.receivers.push((number, receiver));
        drop(state);
        let own = Arc::clone(self);
        RequestHandle::new(move || {
            let mut state = own.0.lock();
            let place = state.receivers.iter().position(|(other, _)| *other == number);
            let cancelled = place.map(|place| state.receivers.remove(place));
            let handle = if state.receivers.is_empty() { state.handle.take() } else { None };
            drop(state);
            if let Some(handle) = handle {
                handle.cancel();
            }
            if let Some((_, receiver)) = cancelled {
                receiver.done(Ok(Outcome::Stopped));
            }
        })
    }

    fn take(&self) -> Vec<(u64, Box<dyn Receiver>)> {
        let mut state = self.0.lock();
        let handle = state.handle.take();
        let receivers = std::mem::take(&mut state.receivers);
        drop(state);
        drop(handle);
        receivers
    }
}

/// Whether a request is for a document or its version.
pub fn is_look(request: &Request) -> bool {
    matches!(request.span, Span::Whole | Span::Range(Range { start: 0, end: 0 }))
        && request.if_version.is_none()
        && request.class == RequestClass::Metadata
}

/// Sends such a request, or gathers it (step 1).
pub fn look<S: Sender>(sender: &Arc<S>, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
    let callers = Arc::new(Callers::default());
    let handle = callers.add(receiver);
    {
        let mut state = sender.looks().0.lock();
        if state.generation != generation() {
            // The parent's requests are answered in the parent.
            std::mem::forget(std::mem::take(&mut state.keys));
            state.generation = generation();
        }
        let key = state.keys.entry(place(&request)).or_default();
        if key.sent == 0 {
            key.sent = 1;
        } else if let Some(gathered) = &key.gathered {
            return callers.take().pop().map_or(handle, |(_, receiver)| gathered.add(receiver));
        } else {
            key.gathered = Some(Arc::clone(&callers));
            drop(state);
            let (own, asked) = (Arc::clone(sender), request.clone());
            if !sender.later(GATHERED_FOR, Box::new(move || send_gathered(&own, asked))) {
                send_gathered(sender, request);
            }
            return handle;
        }
    }
    send_to(sender, request, callers);
    handle
}

fn place(request: &Request) -> (String, bool) {
    (request.key.clone(), request.span == Span::Whole)
}

fn send_gathered<S: Sender>(sender: &Arc<S>, request: Request) {
    let gathered = {
        let mut state = sender.looks().0.lock();
        let Some(key) = state.keys.get_mut(&place(&request)) else { return };
        key.sent += 1;
        key.gathered.take()
    };
    send_to(sender, request, gathered.unwrap_or_default());
}

fn send_to<S: Sender>(sender: &Arc<S>, request: Request, callers: Arc<Callers>) {
    let shared = Shared { sender: Arc::clone(sender), request: request.clone(), callers };
    let callers = Arc::clone(&shared.callers);
    let handle = Arc::clone(sender).send(request, Box::new(shared));
    let mut state = callers.0.lock();
    if state.receivers.is_empty() {
        drop(state);
        // Already answered, or no longer wanted.
        handle.cancel();
    } else {
        state.handle = Some(handle);
    }
}

/// Receives the answer for all callers.
struct Shared<S: Sender> {
    sender: Arc<S>,
    request: Request,
    callers: Arc<Callers>,
}

impl<S: Sender> Shared<S> {
    fn each(&self, mut tell: impl FnMut(&mut dyn Receiver) -> ControlFlow<()>) -> ControlFlow<()> {
        let CallersState { receivers, full, .. } = &mut *self.callers.0.lock();
        let mut flow = ControlFlow::Break(());
        for (number, receiver) in receivers {
            if full.contains(number) {
                continue;
            }
            match tell(&mut **receiver) {
                ControlFlow::Continue(()) => flow = ControlFlow::Continue(()),
                ControlFlow::Break(()) => drop(full.insert(*number)),
            }
        }
        flow
    }
}

impl<S: Sender> Receiver for Shared<S> {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        self.each(|receiver| receiver.head(head))
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.each(|receiver| receiver.frame(bytes))
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        {
            let mut state = self.sender.looks().0.lock();
            if let Some(key) = state.keys.get_mut(&place(&self.request)) {
                key.sent = key.sent.saturating_sub(1);
                if key.sent == 0 && key.gathered.is_none() {
                    state.keys.remove(&place(&self.request));
                }
            }
        }
        let mut callers = self.callers.take().into_iter().map(|(_, receiver)| receiver);
        match result {
            Ok(outcome) => callers.for_each(|receiver| receiver.done(Ok(outcome))),
            Err(error) => {
                let is_interrupted = matches!(error.kind(), ErrorKind::Interrupted);
                if let Some(first) = callers.next() {
                    first.done(Err(error));
                }
                for receiver in callers {
                    if is_interrupted {
                        receiver.done(Ok(Outcome::Stopped));
                    } else {
                        // Step 3.
                        drop(Arc::clone(&self.sender).send(self.request.clone(), receiver));
                    }
                }
            }
        }
    }
}
