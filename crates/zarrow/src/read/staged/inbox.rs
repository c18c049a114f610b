//! The answers to requests, for the threads of a job.

use crate::pool::OpenJob;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use zarrow_array::fork::Mutex;

/// The answer to one request, `None` if the store dropped the request without one.
pub struct Arrival<A> {
    /// The request's number.
    pub request: u64,
    pub answer: Option<A>,
}

/// Queue of answers, filled by receivers. It knows neither the read nor the write.
pub struct Inbox<A> {
    pub arrivals: Mutex<VecDeque<Arrival<A>>>,
    /// The job that handles them.
    pub job: OpenJob,
    /// Bytes that were reserved for requests and their answers.
    pub in_flight: Arc<AtomicU64>,
}

impl<A> Inbox<A> {
    pub fn new() -> Inbox<A> {
        Inbox { arrivals: Mutex::default(), job: OpenJob::new(), in_flight: Arc::default() }
    }

    fn add(&self, request: u64, answer: Option<A>) {
        self.arrivals.lock().push_back(Arrival { request, answer });
        self.job.add(1);
    }
}

/// Leaves the answer to one request in the inbox, or `None` if it is dropped first.
pub struct Told<A> {
    inbox: Arc<Inbox<A>>,
    request: u64,
    is_told: bool,
}

impl<A> Told<A> {
    /// Returns the sender of the answer to this request.
    pub fn new(inbox: &Arc<Inbox<A>>, request: u64) -> Told<A> {
        Told { inbox: Arc::clone(inbox), request, is_told: false }
    }

    /// Leaves the answer.
    pub fn tell(mut self, answer: A) {
        self.is_told = true;
        self.inbox.add(self.request, Some(answer));
    }
}

impl<A> Drop for Told<A> {
    fn drop(&mut self) {
        if !self.is_told {
            self.inbox.add(self.request, None);
        }
    }
}
