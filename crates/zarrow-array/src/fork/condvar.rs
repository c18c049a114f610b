//! A condition variable: a thread that waits holds no lock during a fork.
//!
//! 1. A waiter adds itself to a list while it still holds the lock, then releases the lock and sleeps.
//! 2. A waker takes a thread from the list and wakes it. In a child the list may contain threads that do not exist
//!    there; waking them does nothing.
//! 3. A thread may be woken for unrelated reasons. It keeps sleeping while it is on the list, and finally wakes
//!    itself once more, so that other waits on this thread do not lose their wake-up.

use super::{Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar {
    waiters: Mutex<Vec<Thread>>,
}

impl Condvar {
    /// Releases the lock of `guard` until another thread wakes this one, for at most `timeout`; then locks again,
    /// and returns whether it was woken. Check the condition again after a wait.
    pub fn wait<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Option<Duration>,
    ) -> (MutexGuard<'a, T>, bool) {
        let (mutex, thread) = (guard.mutex(), thread::current());
        self.waiters.lock().push(thread.clone());
        drop(guard);
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut woken_by_others = false;
        let woken = loop {
            match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => break self.forget(&thread),
                Some(left) => thread::park_timeout(left),
            }
            if !self.waiters.lock().iter().any(|waiter| waiter.id() == thread.id()) {
                break true;
            }
            woken_by_others |= end.is_none_or(|end| Instant::now() < end);
        };
        if woken_by_others {
            thread.unpark();
        }
        (mutex.lock(), woken)
    }

    /// Takes a thread off the list; returns whether it was off the list already.
    fn forget(&self, thread: &Thread) -> bool {
        let mut waiters = self.waiters.lock();
        let place = waiters.iter().position(|waiter| waiter.id() == thread.id());
        place.map(|place| waiters.swap_remove(place)).is_none()
    }

    /// Wakes one waiter, if there is one; returns whether there was.
    pub fn notify_one(&self) -> bool {
        let waiter = self.waiters.lock().pop();
        waiter.iter().for_each(Thread::unpark);
        waiter.is_some()
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        let waiters = std::mem::take(&mut *self.waiters.lock());
        waiters.iter().for_each(Thread::unpark);
    }
}
