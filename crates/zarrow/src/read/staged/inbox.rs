//! The answers to requests, for the threads of a job.
//!
//! 1. An answer with work, such as a chunk to decode, wakes a thread at once.
//! 2. If the bytes are in their places already, the answer only makes room for another request. While
//!    [`MANY_OUTSTANDING`] answers are still to come, such answers wait for each other, and [`BATCH`] of them wake one
//!    thread: to wake a thread costs as much as to handle several answers.

use crate::pool::OpenJob;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::fork::Mutex;

/// Answers without work that wake one thread.
const BATCH: u64 = 8;

/// With fewer outstanding answers, each wakes a thread.
const MANY_OUTSTANDING: u64 = 64;

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
    /// Answers that are still to come.
    outstanding: AtomicU64,
    /// Answers in the queue without a task of the job.
    delayed: AtomicU64,
}

impl<A> Inbox<A> {
    pub fn new() -> Inbox<A> {
        Inbox {
            arrivals: Mutex::default(),
            job: OpenJob::new(),
            in_flight: Arc::default(),
            outstanding: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
        }
    }

    fn add(&self, request: u64, answer: Option<A>, has_work: bool) {
        self.arrivals.lock().push_back(Arrival { request, answer });
        // In this order, so that the last of several concurrent answers counts every one.
        let delayed = self.delayed.fetch_add(1, Ordering::AcqRel) + 1;
        let outstanding = self.outstanding.fetch_sub(1, Ordering::AcqRel) - 1;
        if has_work || delayed >= BATCH || outstanding < MANY_OUTSTANDING {
            let tasks = self.delayed.swap(0, Ordering::AcqRel);
            if tasks > 0 {
                self.job.add(tasks);
            }
        }
    }
}

/// Leaves the answer to one request in the inbox, or `None` if it is dropped first.
pub struct Reply<A> {
    inbox: Arc<Inbox<A>>,
    request: u64,
    has_work: bool,
    is_answered: bool,
}

impl<A> Reply<A> {
    /// Returns the sender of the answer to this request, and notes whether the answer brings work.
    pub fn new(inbox: &Arc<Inbox<A>>, request: u64, has_work: bool) -> Reply<A> {
        inbox.outstanding.fetch_add(1, Ordering::AcqRel);
        Reply { inbox: Arc::clone(inbox), request, has_work, is_answered: false }
    }

    /// Leaves the answer.
    pub fn answer(mut self, answer: A) {
        self.is_answered = true;
        self.inbox.add(self.request, Some(answer), self.has_work);
    }
}

impl<A> Drop for Reply<A> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.inbox.add(self.request, None, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::job::Checkpoint;
    use std::time::{Duration, Instant};

    #[test]
    fn answers_without_work_wake_threads_in_batches_and_none_is_lost() {
        const COUNT: u64 = 2000;
        let inbox: Arc<Inbox<()>> = Arc::new(Inbox::new());
        let replies: Vec<Reply<()>> = (0..COUNT).map(|request| Reply::new(&inbox, request, false)).collect();
        let mut replies = replies.into_iter();
        (1..BATCH).for_each(|_| replies.next().unwrap().answer(()));
        assert_eq!(inbox.delayed.load(Ordering::Relaxed), BATCH - 1);
        replies.next().unwrap().answer(());
        assert_eq!(inbox.delayed.load(Ordering::Relaxed), 0);
        let mut shares: Vec<Vec<Reply<()>>> = (0..4).map(|_| Vec::new()).collect();
        replies.enumerate().for_each(|(at, reply)| shares[at % 4].push(reply));
        let senders: Vec<_> = shares
            .into_iter()
            .map(|share| std::thread::spawn(move || share.into_iter().for_each(|reply| reply.answer(()))))
            .collect();
        let (handled, begun) = (AtomicU64::new(0), Instant::now());
        let task = |_, _: &mut crate::codec::Worker, _: &Checkpoint<'_>| {
            assert!(inbox.arrivals.lock().pop_front().is_some());
            if handled.fetch_add(1, Ordering::Relaxed) + 1 == COUNT {
                inbox.job.finish();
            }
            Ok(())
        };
        inbox.job.run(2, &|| begun.elapsed() > Duration::from_secs(60), &task).unwrap();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    }
}
