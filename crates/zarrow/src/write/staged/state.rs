//! The state shared by the threads of a staged write: requests in flight, and waiting chunks.

use crate::error::Result;
use crate::store::remote::bodies::InFlight;
use crate::store::remote::{Condition, Fetched, Put, PutBody, Request, RequestHandle};
use crate::write::staged::borrowed_put::Lease;
use std::collections::{HashMap, VecDeque};

pub enum Answer {
    Fetched(Result<Fetched>),
    Put(Result<Put>),
    Deleted(Result<()>),
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

/// The purpose of a request in flight.
pub enum Purpose {
    Guard(Request),
    /// The version of an old value, from a store that reports it by a separate request.
    Version(Attempt),
    Old(Attempt),
    Put(Attempt),
    Delete,
}

pub struct Pending<'p> {
    pub purpose: Purpose,
    /// `None` until the request was submitted.
    pub handle: Option<RequestHandle>,
    pub _reserved: InFlight,
    /// Of the memory that the request's body is copied from.
    pub _lease: Option<Lease<'p>>,
}

/// An encoded chunk that waits for the guard.
pub struct Encoded<'p> {
    pub attempt: Attempt,
    pub key: String,
    pub body: PutBody,
    pub lease: Option<Lease<'p>>,
    pub reserved: InFlight,
}

/// Whether chunks may be put (step 2).
#[derive(PartialEq, Eq)]
pub enum Gate {
    Unasked,
    Closed,
    Open,
    /// All chunks are put, and the guard is being checked again.
    Leaving,
}

pub struct State<'p> {
    pub gate: Gate,
    /// The next chunk, and the number of chunks.
    pub next: u64,
    pub count: u64,
    /// Chunks that a thread works on.
    pub working: usize,
    pub requests: HashMap<u64, Pending<'p>>,
    pub next_request: u64,
    pub waiting: VecDeque<Encoded<'p>>,
    /// Keys of chunks to be deleted.
    pub deleted: Vec<String>,
    /// Chunks to be written by a thread that waits.
    pub late: VecDeque<u64>,
}

/// The next work of a thread.
pub enum Next<'p> {
    Guard,
    Open(u64, InFlight),
    Put(Encoded<'p>),
    Delete(Vec<String>),
    /// Write a chunk and wait for it.
    Wait(u64),
    Finish,
    Nothing,
}
