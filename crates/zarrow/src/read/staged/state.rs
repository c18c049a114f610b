//! The state shared by the threads of a staged read: open objects, requests in flight, and ready work.

use crate::error::Result;
use crate::read::staged::direct_copy::{DirectCopy, DirectFrames};
use crate::read::staged::object::{Leaf, Object, ObjectPlan, RangeFetch};
use crate::store::remote::bodies::{InFlight, InFlightBody};
use crate::store::remote::body_memory::BodyBytes;
use crate::store::remote::{Fetched, Request, RequestHandle};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The next work of a thread.
pub enum Work {
    /// Starts or restarts an object.
    Begin,
    /// Splits a shard by its index, which the fetch received.
    Split(Arc<InFlightBody>, Box<RangeFetch>),
    /// Sets the selected parts of a missing object to the fill value.
    Fill,
    /// Decodes a leaf.
    Decode(Box<Leaf>),
}

/// Additional work found by a thread besides its task.
pub enum Next {
    /// To plan the next chunk.
    Open(u64),
    /// To submit a request.
    Submit {
        /// Its number.
        number: u64,
        /// The object that it is for.
        object: u64,
        /// The bytes to fetch.
        fetch: RangeFetch,
        /// The request.
        request: Request,
        /// The places of the bytes, if they do not go to a body.
        frames: Option<DirectFrames>,
    },
    /// Nothing, for now.
    Nothing,
}

/// Work on one attempt at an object.
pub struct Ready<'p> {
    /// The object's number.
    pub object: u64,
    /// The attempt.
    pub attempt: u32,
    /// The object's plan.
    pub plan: Arc<ObjectPlan<'p>>,
    /// The work to do.
    pub work: Work,
}

/// A request in flight.
#[derive(Debug)]
pub struct Pending {
    /// The object that it is for.
    pub object: u64,
    /// The bytes to fetch.
    pub fetch: RangeFetch,
    /// Handle for cancelling the request, after it was submitted.
    pub handle: Option<RequestHandle>,
    /// The memory reserved for its answer.
    pub reserved: InFlight,
    /// The places of the bytes, if they do not go to a body.
    pub direct_copy: Option<DirectCopy>,
}

/// The answer to a request.
pub type Answer = Result<Fetched<BodyBytes>>;

/// The shared state.
pub struct State<'p> {
    /// The next chunk of the list.
    pub next: u64,
    /// The number of chunks in the list.
    pub count: u64,
    /// The number of chunks now being planned.
    pub opening: usize,
    /// The objects that are open, by their numbers.
    pub open: HashMap<u64, Object<'p>>,
    /// The number of open shards without an index.
    pub unsplit: usize,
    /// The objects with pending fetches, in turns.
    pub turns: VecDeque<u64>,
    /// The requests in flight, by their numbers.
    pub requests: HashMap<u64, Pending>,
    /// The number of the next request.
    pub next_request: u64,
    /// Work that can be done immediately.
    pub ready: VecDeque<Ready<'p>>,
    /// For values of unknown size, the total of expected bytes and the total of received bytes.
    observed: (u64, u64),
}

impl<'p> State<'p> {
    /// The initial state of a read of `count` chunks.
    pub fn new(count: u64) -> State<'p> {
        State {
            next: 0,
            count,
            opening: 0,
            open: HashMap::new(),
            unsplit: 0,
            turns: VecDeque::new(),
            requests: HashMap::new(),
            next_request: 0,
            ready: VecDeque::new(),
            observed: (0, 0),
        }
    }

    /// Estimates the size in bytes of a fetch: for a value of unknown size, from the sizes of earlier ones.
    pub fn likely(&self, fetch: Option<&RangeFetch>) -> u64 {
        let Some(fetch) = fetch else { return 0 };
        let (expected, received) = self.observed;
        if !fetch.is_guessed() || expected == 0 {
            return fetch.expected;
        }
        // A quarter more, since chunks differ.
        let likely = u128::from(fetch.expected) * u128::from(received) * 5 / (u128::from(expected) * 4);
        u64::try_from(likely).unwrap_or(u64::MAX).clamp(1, fetch.limit.max(1))
    }

    /// Records the number of bytes received by a fetch.
    pub fn observe(&mut self, fetch: &RangeFetch, received: u64) {
        if fetch.is_guessed() {
            self.observed.0 = self.observed.0.saturating_add(fetch.expected);
            self.observed.1 = self.observed.1.saturating_add(received);
        }
    }

    /// Whether every chunk has been read.
    pub fn is_finished(&self) -> bool {
        self.next == self.count && self.opening == 0 && self.open.is_empty()
    }

    /// Takes the next work; work of a void attempt is dropped.
    pub fn take(&mut self) -> Option<Ready<'p>> {
        while let Some(ready) = self.ready.pop_front() {
            if let Some(object) = self.open.get_mut(&ready.object)
                && object.attempt == ready.attempt
            {
                object.at_work += 1;
                object.has_placed |= matches!(ready.work, Work::Decode(_) | Work::Fill);
                return Some(ready);
            }
        }
        None
    }

    /// Adds work on an object.
    pub fn add(&mut self, object: u64, work: Work) {
        let Some(open) = self.open.get(&object) else { return };
        let (attempt, plan) = (open.attempt, Arc::clone(&open.plan));
        self.ready.push_back(Ready { object, attempt, plan, work });
    }

    /// Counts off finished work on an object. Returns whether the object is still at the attempt of that work.
    pub fn end_work(&mut self, object: u64, attempt: u32) -> bool {
        let Some(open) = self.open.get_mut(&object) else { return false };
        open.at_work = open.at_work.saturating_sub(1);
        open.attempt == attempt
    }

    /// Closes a finished object, or restarts it if a restart waited for its work to end. Returns the number of new
    /// tasks.
    pub fn settle(&mut self, object: u64) -> u64 {
        let Some(open) = self.open.get_mut(&object) else { return 0 };
        if open.at_work > 0 {
            return 0;
        }
        if std::mem::take(&mut open.restarts) {
            self.add(object, Work::Begin);
            return 1;
        }
        if open.is_split && open.left == 0 {
            self.open.remove(&object);
        }
        0
    }

    /// Discards everything received for an object, which restarts once no work on it is left (step 5). Returns the
    /// requests to cancel.
    pub fn restart(&mut self, object: u64) -> Vec<RequestHandle> {
        let Some(open) = self.open.get_mut(&object) else { return Vec::new() };
        if open.is_split && open.plan.reader.inner_chunks().is_some() {
            self.unsplit += 1;
        }
        (open.attempt, open.restarts, open.is_split) = (open.attempt + 1, true, false);
        (open.version, open.nbytes, open.left) = (None, None, 0);
        (open.index_requests, open.has_landed) = (0, false);
        self.abandon(object)
    }

    /// Drops an object's pending requests, so that their answers are ignored. Returns the requests to cancel.
    pub fn abandon(&mut self, object: u64) -> Vec<RequestHandle> {
        let Some(open) = self.open.get_mut(&object) else { return Vec::new() };
        open.queue.clear();
        open.leaves.clear();
        open.start = None;
        self.turns.retain(|turn| *turn != object);
        self.forget_requests(object)
    }

    /// Abandons the requests for an object. Returns the ones to cancel.
    pub fn forget_requests(&mut self, object: u64) -> Vec<RequestHandle> {
        let mut cancelled = Vec::new();
        self.requests.retain(|_, pending| {
            let is_own = pending.object == object;
            if is_own {
                cancelled.extend(pending.handle.take());
            }
            !is_own
        });
        cancelled
    }

    /// Queues fetches for an object. Fetches that continue landed data come first.
    pub fn queue(&mut self, object: u64, fetches: impl IntoIterator<Item = RangeFetch>) {
        let Some(open) = self.open.get_mut(&object) else { return };
        let was_empty = open.queue.is_empty();
        open.queue.extend(fetches);
        match open.queue.front() {
            Some(fetch) if was_empty && fetch.continues => self.turns.push_front(object),
            Some(_) if was_empty => self.turns.push_back(object),
            _ => {}
        }
    }
}
