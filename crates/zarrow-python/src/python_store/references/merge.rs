//! Merges requests for near parts of one object.
//!
//! 1. An object has a limited number of requests in flight. Up to that number, a request is sent at once, so that
//!    merging never delays it.
//! 2. Further requests wait. When a request ends, waiting requests for near ranges are sent as one.
//! 3. The bytes of a merged request are passed to each receiver in turn. The parts of one object are far apart more
//!    often than the chunks of a shard, so the accepted gap is small.
//! 4. If a merged request fails, each of its parts is requested alone, and gets its own error.
//! 5. A forked child forgets the parent's requests: they never end there.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use zarrow::Result;
use zarrow::store::Store;
use zarrow::store::remote::{ByteRange, Head, Outcome, Receiver, Request, RequestHandle};
use zarrow_array::fork::{Mutex, generation};

/// Requests in flight for one object, before others wait.
const IN_FLIGHT: usize = 32;

/// Maximum number of unwanted bytes between two ranges of one request.
const GAP_NBYTES: u64 = 16 << 10;

/// Maximum size of a merged request in bytes.
const MERGED_NBYTES: u64 = 8 << 20;

/// The requests of one store.
#[derive(Default)]
pub struct Merging(Mutex<Objects>);

#[derive(Default)]
struct Objects {
    generation: u64,
    by_key: HashMap<String, Object>,
}

/// The requests for one object.
#[derive(Default)]
struct Object {
    in_flight: usize,
    waiting: Vec<Waiting>,
}

/// A request for a range of an object.
struct Waiting {
    range: Range<u64>,
    receiver: Box<dyn Receiver>,
    cancel: Arc<Cancel>,
}

/// Whether a request was cancelled, and the sent request that it is part of.
#[derive(Default)]
struct Cancel {
    is_cancelled: AtomicBool,
    sent: Mutex<Option<Arc<Sent>>>,
}

/// A request sent to the store.
struct Sent {
    handle: Mutex<Option<RequestHandle>>,
    /// The number of its parts that are still wanted.
    wanted: AtomicUsize,
}

impl Cancel {
    fn cancel(&self) {
        if self.is_cancelled.swap(true, Ordering::Relaxed) {
            return;
        }
        let sent = self.sent.lock().take();
        if let Some(sent) = sent
            && sent.wanted.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(handle) = sent.handle.lock().take()
        {
            handle.cancel();
        }
    }
}

impl Merging {
    /// Submits a request for a range, which is not empty, of an object of `store`.
    pub fn submit(
        merging: &Arc<Merging>,
        store: &Arc<dyn Store>,
        request: Request,
        receiver: Box<dyn Receiver>,
    ) -> RequestHandle {
        let ByteRange::Range(range) = request.range else {
            return store
                .remote()
                .map_or_else(RequestHandle::ended, |remote| remote.submit(request, receiver));
        };
        let cancel = Arc::new(Cancel::default());
        let waiting = Waiting { range, receiver, cancel: Arc::clone(&cancel) };
        let mut objects = merging.0.lock();
        objects.forget_parents();
        let object = objects.by_key.entry(request.key.clone()).or_default();
        if object.in_flight >= IN_FLIGHT {
            object.waiting.push(waiting);
            drop(objects);
        } else {
            object.in_flight += 1;
            drop(objects);
            Merging::send(merging, store, request.key, vec![waiting]);
        }
        RequestHandle::new(move || cancel.cancel())
    }

    /// Sends waiting requests as one (step 2).
    fn send(merging: &Arc<Merging>, store: &Arc<dyn Store>, key: String, parts: Vec<Waiting>) {
        let start = parts.iter().map(|part| part.range.start).min().unwrap_or(0);
        let end = parts.iter().map(|part| part.range.end).max().unwrap_or(0);
        let wanted = AtomicUsize::new(parts.len());
        let sent = Arc::new(Sent { handle: Mutex::default(), wanted });
        for part in &parts {
            *part.cancel.sent.lock() = Some(Arc::clone(&sent));
        }
        let request = Request::new(key.as_str(), ByteRange::Range(start..end));
        let merged = MergedReceiver {
            merging: Arc::clone(merging),
            store: Arc::clone(store),
            key,
            parts: parts.into_iter().map(MergedPart::new).collect(),
            at: start,
            head: None,
        };
        let Some(remote) = store.remote() else { return };
        let handle = remote.submit(request, Box::new(merged));
        let late = match sent.wanted.load(Ordering::Relaxed) {
            0 => Some(handle),
            _ => sent.handle.lock().replace(handle),
        };
        late.iter().for_each(RequestHandle::cancel);
    }

    /// Notes that a request for an object has ended, and sends the next ones.
    fn ended(merging: &Arc<Merging>, store: &Arc<dyn Store>, key: String) {
        let mut objects = merging.0.lock();
        objects.forget_parents();
        let Some(object) = objects.by_key.get_mut(&key) else { return };
        let is_cancelled = |part: &mut Waiting| part.cancel.is_cancelled.load(Ordering::Relaxed);
        let cancelled: Vec<Waiting> = object.waiting.extract_if(.., is_cancelled).collect();
        let next = object.take_near();
        if next.is_empty() {
            object.in_flight = object.in_flight.saturating_sub(1);
            if object.in_flight == 0 {
                objects.by_key.remove(&key);
            }
        }
        drop(objects);
        for part in cancelled {
            part.receiver.done(Ok(Outcome::Stopped));
        }
        if !next.is_empty() {
            Merging::send(merging, store, key, next);
        }
    }

    /// Sends each part alone (step 4).
    fn send_each(merging: &Arc<Merging>, store: &Arc<dyn Store>, key: &str, parts: Vec<Waiting>) {
        let mut objects = merging.0.lock();
        objects.forget_parents();
        objects.by_key.entry(key.to_owned()).or_default().in_flight += parts.len();
        drop(objects);
        for part in parts {
            Merging::send(merging, store, key.to_owned(), vec![part]);
        }
    }
}

impl Objects {
    /// Step 5.
    fn forget_parents(&mut self) {
        if self.generation != generation() {
            self.generation = generation();
            // The receivers belong to the parent, and are never called here.
            std::mem::forget(std::mem::take(&mut self.by_key));
        }
    }
}

impl Object {
    /// Takes the first waiting requests with ranges near each other, sorted by their start.
    fn take_near(&mut self) -> Vec<Waiting> {
        self.waiting.sort_by_key(|part| part.range.start);
        let Some(first) = self.waiting.first() else { return Vec::new() };
        let (start, mut end) = (first.range.start, first.range.end);
        let is_near = |part: &Waiting, end: u64| {
            part.range.start <= end.saturating_add(GAP_NBYTES)
                && part.range.end.max(end) - start <= MERGED_NBYTES
        };
        let mut count = 1;
        while let Some(part) = self.waiting.get(count).filter(|part| is_near(part, end)) {
            end = end.max(part.range.end);
            count += 1;
        }
        self.waiting.drain(..count).collect()
    }
}

/// Receiver of a merged request.
struct MergedReceiver {
    merging: Arc<Merging>,
    store: Arc<dyn Store>,
    key: String,
    parts: Vec<MergedPart>,
    /// Offset of the next byte in the object.
    at: u64,
    /// The head of this response.
    head: Option<Head>,
}

impl Receiver for MergedReceiver {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        self.at = head.start;
        self.head = Some(head.clone());
        // Parts that have ended keep their bytes.
        self.parts.iter_mut().for_each(|part| part.has_begun = false);
        ControlFlow::Continue(())
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let Some(head) = &self.head else { return ControlFlow::Break(()) };
        for part in &mut self.parts {
            part.pass(self.at, bytes, head);
        }
        self.at = self.at.saturating_add(bytes.len() as u64);
        match self.parts.iter().any(|part| part.waiting.is_some()) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        let MergedReceiver { merging, store, key, parts, .. } = *self;
        let is_alone = parts.len() == 1;
        let mut left: Vec<Waiting> = parts.into_iter().filter_map(|part| part.waiting).collect();
        match result {
            Ok(outcome) => left.into_iter().for_each(|part| part.receiver.done(Ok(outcome))),
            Err(error) if is_alone => {
                if let Some(part) = left.pop() {
                    part.receiver.done(Err(error));
                }
            }
            Err(_) => Merging::send_each(&merging, &store, &key, left),
        }
        Merging::ended(&merging, &store, key);
    }
}

/// A part of a merged request.
struct MergedPart {
    waiting: Option<Waiting>,
    range: Range<u64>,
    has_begun: bool,
}

impl MergedPart {
    fn new(waiting: Waiting) -> MergedPart {
        MergedPart { range: waiting.range.clone(), waiting: Some(waiting), has_begun: false }
    }

    /// Passes on what the part wants of `bytes`, which start at `at`.
    fn pass(&mut self, at: u64, bytes: &[u8], head: &Head) {
        let end = at.saturating_add(bytes.len() as u64);
        let wanted = self.range.start.max(at)..self.range.end.min(end);
        let Some(waiting) = self.waiting.as_mut().filter(|_| wanted.start < wanted.end) else { return };
        let place = |offset: u64| usize::try_from(offset - at).unwrap_or(usize::MAX);
        let bytes = bytes.get(place(wanted.start)..place(wanted.end)).unwrap_or_default();
        let mut flow = match waiting.cancel.is_cancelled.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        if flow.is_continue() && !self.has_begun {
            self.has_begun = true;
            flow = waiting.receiver.head(&Head { start: self.range.start, ..head.clone() });
        }
        if flow.is_continue() {
            flow = waiting.receiver.frame(bytes);
        }
        if flow.is_break() {
            self.end(Ok(Outcome::Stopped));
        } else if wanted.end == self.range.end {
            self.end(Ok(Outcome::Complete));
        }
    }

    fn end(&mut self, result: Result<Outcome>) {
        if let Some(waiting) = self.waiting.take() {
            waiting.receiver.done(result);
        }
    }
}
