//! What the threads of a staged write share: the requests in flight, and the chunks that wait.

use crate::error::Result;
use crate::exec::pool::OpenJob;
use crate::exec::staged::InFlight;
use crate::store::remote::{Condition, Fetched, Put, Request, RequestHandle};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use zarrow_array::fork::Mutex;

/// Where answers are left.
pub struct Inbox {
    pub arrivals: Mutex<VecDeque<(u64, Answer)>>,
    pub job: OpenJob,
    /// Bytes that are kept for requests.
    pub in_flight: Arc<AtomicU64>,
}

pub enum Answer {
    Fetched(Result<Fetched>),
    Put(Result<Put>),
    Deleted(Result<()>),
    Lost,
}

/// Leaves the answer to one request in the inbox, or `Answer::Lost` if it is dropped first.
pub struct Told {
    inbox: Arc<Inbox>,
    request: u64,
    is_told: bool,
}

impl Told {
    /// What tells `inbox` of this request.
    pub fn new(inbox: &Arc<Inbox>, request: u64) -> Told {
        Told { inbox: Arc::clone(inbox), request, is_told: false }
    }

    pub fn tell(mut self, answer: Answer) {
        self.is_told = true;
        self.inbox.tell(self.request, answer);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if !self.is_told {
            self.inbox.tell(self.request, Answer::Lost);
        }
    }
}

impl Inbox {
    pub fn tell(&self, request: u64, answer: Answer) {
        self.arrivals.lock().push_back((request, answer));
        self.job.add(1);
    }
}

/// One attempt at a chunk: its index in the write, the number of conflicts, and the condition of its put.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub chunk: u64,
    pub tries: u32,
    pub condition: Condition,
}

impl Attempt {
    pub fn first(chunk: u64) -> Attempt {
        Attempt { chunk, tries: 0, condition: Condition::Always }
    }
}

/// What a request in flight is for.
pub enum Purpose {
    Guard(Request),
    /// The version of an old value, from a store that reports it by a separate request.
    Version(Attempt),
    Old(Attempt),
    Put(Attempt),
    Delete,
}

pub struct Pending {
    pub purpose: Purpose,
    /// `None` until the request was submitted.
    pub handle: Option<RequestHandle>,
    pub _reserved: InFlight,
}

/// An encoded chunk that waits for the guard.
pub struct Encoded {
    pub attempt: Attempt,
    pub key: String,
    pub body: Vec<u8>,
    pub reserved: InFlight,
}

/// Whether chunks may be put (step 2).
#[derive(PartialEq, Eq)]
pub enum Gate {
    Unasked,
    Closed,
    Open,
    /// All chunks are put, and the guard was asked again.
    Leaving,
}

pub struct State {
    pub gate: Gate,
    /// The next chunk, and how many there are.
    pub next: u64,
    pub count: u64,
    /// Chunks that a thread works on.
    pub working: usize,
    pub requests: HashMap<u64, Pending>,
    pub next_request: u64,
    pub waiting: VecDeque<Encoded>,
    /// Keys of chunks to be deleted.
    pub deleted: Vec<String>,
    /// Chunks that a thread is to write and wait for.
    pub late: VecDeque<u64>,
}

/// What a thread does next.
pub enum Next {
    Guard,
    Open(u64, InFlight),
    Put(Encoded),
    Delete(Vec<String>),
    /// To write a chunk and wait for it.
    Wait(u64),
    Finish,
    Nothing,
}
