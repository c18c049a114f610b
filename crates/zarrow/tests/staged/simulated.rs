//! A remote store in memory with answers in any order, in pieces of any size, restarts, and changes in between.
//!
//! 1. A request is added to the open ones. One thread picks an open one at random, and delivers its next event: a head, a
//!    frame, or the end.
//! 2. A seed determines everything random. At any event a value may be replaced by its next version, and an answer may
//!    restart; the store then serves the current value.
//! 3. Every receiver gets one end, and the store counts these.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use zarrow::store::remote::{
    ByteRange, FetchPolicy, Head, ListedValue, Listing, ObjectVersion, OnDone, Outcome, Receiver,
    RemoteStore, Request, RequestHandle,
};

/// All versions of a value, in order.
pub type Versions = Vec<Vec<u8>>;

/// How the store behaves.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Seed of all randomness.
    pub seed: u64,
    /// One event in this many replaces a value by its next version; 0 for none.
    pub changes: u64,
    /// One event in this many restarts an answer; 0 for none.
    pub restarts: u64,
    /// Whether heads have versions.
    pub has_versions: bool,
    /// Whether heads have the size of the value.
    pub has_sizes: bool,
    /// Whether heads of range requests claim a size beyond any memory.
    pub lies: bool,
    /// How requests are merged and cut.
    pub policy: FetchPolicy,
}

#[derive(Debug)]
pub struct SimulatedStore {
    name: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    manner: Manner,
    state: Mutex<State>,
    news: Condvar,
    /// Number of events so far.
    events: AtomicU64,
    /// Receivers that were submitted, and receivers that got their end.
    submitted: AtomicU64,
    ended: AtomicU64,
    /// Maximum number of open requests.
    most: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The versions of each value, and the index of the current one.
    values: BTreeMap<String, (Versions, usize)>,
    open: Vec<Answer>,
    is_closed: bool,
    /// Number of open requests required before the next event.
    gate: usize,
    random: u64,
    /// All requests, in order of submission.
    log: Vec<Request>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("State").finish_non_exhaustive()
    }
}

/// An answer under way.
struct Answer {
    request: Request,
    receiver: Box<dyn Receiver>,
    is_cancelled: Arc<AtomicBool>,
    /// The served version, and the rest of its range; `None` before the head.
    served: Option<(usize, Range<usize>)>,
}

/// An event to deliver outside of the lock.
enum Event {
    Head(Head),
    Frame(Vec<u8>),
    End(Outcome),
}

impl SimulatedStore {
    /// A store of these values.
    pub fn new(values: BTreeMap<String, Versions>, manner: Manner) -> Arc<SimulatedStore> {
        let values = values.into_iter().map(|(key, versions)| (key, (versions, 0))).collect();
        let state = Mutex::new(State { values, random: manner.seed | 1, ..State::default() });
        let shared = Shared {
            manner,
            state,
            news: Condvar::new(),
            events: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            most: AtomicU64::new(0),
        };
        let shared = Arc::new(shared);
        let served = Arc::clone(&shared);
        std::thread::spawn(move || served.serve());
        // Known documents are kept by store name, also for its siblings, and must not leak between tests.
        static STORES: AtomicU64 = AtomicU64::new(0);
        let name = format!("simulated-{}", STORES.fetch_add(1, Ordering::SeqCst));
        Arc::new(SimulatedStore { name, shared })
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.shared.events.load(Ordering::SeqCst)
    }

    /// Returns the requests since the last call, and the maximum number of open ones.
    pub fn seen(&self) -> (Vec<Request>, u64) {
        let log = std::mem::take(&mut self.shared.state.lock().unwrap().log);
        (log, self.shared.most.swap(0, Ordering::SeqCst))
    }

    /// Waits until every receiver got its end.
    pub fn settle(&self) {
        while self.shared.ended.load(Ordering::SeqCst) < self.shared.submitted.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

impl Drop for SimulatedStore {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().is_closed = true;
        self.shared.news.notify_all();
    }
}

impl State {
    /// Returns a number below `bound`.
    fn draw(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound.max(1)
    }

    fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.draw(one_in) == 0
    }
}

impl Shared {
    /// Step 1.
    fn serve(&self) {
        loop {
            let mut state = self.state.lock().unwrap();
            while (state.open.is_empty() || state.open.len() < state.gate) && !state.is_closed {
                state = self.news.wait(state).unwrap();
            }
            if state.open.is_empty() {
                return;
            }
            state.gate = 0;
            let count = state.open.len() as u64;
            let at = state.draw(count) as usize;
            let mut answer = state.open.swap_remove(at);
            let event = self.event(&mut state, &mut answer);
            drop(state);
            self.events.fetch_add(1, Ordering::SeqCst);
            let flow = match event {
                Event::Head(head) => answer.receiver.head(&head),
                Event::Frame(bytes) => answer.receiver.frame(&bytes),
                Event::End(outcome) => {
                    answer.receiver.done(Ok(outcome));
                    self.ended.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
            };
            if flow == ControlFlow::Break(()) {
                answer.is_cancelled.store(true, Ordering::SeqCst);
            }
            self.state.lock().unwrap().open.push(answer);
        }
    }

    /// Step 2.
    fn event(&self, state: &mut State, answer: &mut Answer) -> Event {
        if answer.is_cancelled.load(Ordering::SeqCst) {
            return Event::End(Outcome::Stopped);
        }
        if state.happens(self.manner.changes) {
            let count = state.values.len() as u64;
            let at = state.draw(count) as usize;
            let (versions, current) = state.values.values_mut().nth(at).unwrap();
            *current = (*current + 1).min(versions.len() - 1);
        }
        if answer.served.is_some() && state.happens(self.manner.restarts) {
            answer.served = None;
        }
        let Some((versions, current)) = state.values.get(&answer.request.key) else {
            return Event::End(Outcome::Missing);
        };
        let name = |number: usize| {
            self.manner.has_versions.then(|| ObjectVersion::new(&format!("{}#{number}", answer.request.key)))
        };
        match &mut answer.served {
            None => {
                let version = name(*current);
                if answer.request.if_version.is_some() && answer.request.if_version != version {
                    return Event::End(Outcome::Changed);
                }
                let length = versions[*current].len();
                let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(length);
                let range = match &answer.request.range {
                    ByteRange::Whole => 0..length,
                    ByteRange::Range(range) => within(range.start)..within(range.end),
                    ByteRange::Suffix(count) => length - within(*count)..length,
                };
                let lies = self.manner.lies && answer.request.range != ByteRange::Whole;
                let nbytes = if lies { u64::MAX / 2 } else { length as u64 };
                let head = Head {
                    start: range.start as u64,
                    nbytes: self.manner.has_sizes.then_some(nbytes),
                    version,
                };
                answer.served = Some((*current, range));
                Event::Head(head)
            }
            // A started answer is sent to its end, also if the value changes.
            Some((number, range)) => {
                if range.start >= range.end {
                    return Event::End(Outcome::Complete);
                }
                let bytes = versions[*number][range.clone()].to_vec();
                let all = bytes.len() as u64;
                let count = 1 + state.draw(all) as usize;
                if let Some((_, range)) = &mut answer.served {
                    range.start += count;
                }
                Event::Frame(bytes[..count].to_vec())
            }
        }
    }
}

impl RemoteStore for SimulatedStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn policy(&self) -> FetchPolicy {
        self.shared.manner.policy
    }

    fn submit(&self, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        assert!(self.policy().has_suffix || !matches!(request.range, ByteRange::Suffix(_)), "{request:?}");
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let cancel = Arc::clone(&is_cancelled);
        let mut state = self.shared.state.lock().unwrap();
        self.shared.submitted.fetch_add(1, Ordering::SeqCst);
        state.log.push(request.clone());
        state.open.push(Answer { request, receiver, is_cancelled, served: None });
        self.shared.most.fetch_max(state.open.len() as u64, Ordering::SeqCst);
        drop(state);
        self.shared.news.notify_all();
        RequestHandle::new(move || cancel.store(true, Ordering::SeqCst))
    }

    fn list(&self, prefix: &str, recursive: bool, done: OnDone<Listing>) -> RequestHandle {
        let state = self.shared.state.lock().unwrap();
        let start = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let mut listing = Listing::default();
        for (key, (versions, current)) in &state.values {
            let Some(rest) = key.strip_prefix(&start) else { continue };
            match rest.split_once('/') {
                Some((name, _)) if !recursive => listing.prefixes.push(format!("{start}{name}")),
                _ => listing
                    .values
                    .push(ListedValue { key: key.clone(), nbytes: versions[*current].len() as u64 }),
            }
        }
        listing.prefixes.dedup();
        drop(state);
        done(Ok(listing));
        RequestHandle::ended()
    }
}

impl SimulatedStore {
    /// Holds all events until this many requests are open at once.
    pub fn wait_for(&self, requests: usize) {
        self.shared.state.lock().unwrap().gate = requests;
    }

    /// Replaces every value by its next version.
    pub fn replace_all(&self) {
        for (versions, current) in self.shared.state.lock().unwrap().values.values_mut() {
            *current = (*current + 1).min(versions.len() - 1);
        }
    }
}
