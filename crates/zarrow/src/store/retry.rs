//! Limits the retries of an attempt.
//!
//! Every loop that repeats an attempt, because of other writers or of the system, asks [`Retry`] before the next one.
//! So each loop ends, reports a reason, and can be interrupted.

use super::remote::pass_here;
use crate::error::{Error, ErrorKind, Result};
use crate::store::codec_calls;
use crate::store::fault_point::pause;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Maximum number of attempts. One writer succeeds in each round, so that many writers of one value need far fewer.
const MOST_TRIES: u32 = 100;

/// Maximum wait for one holder of a lock. An append holds the lock of the shape as long as it writes.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Interval between a waiting thread's checks for cancellation.
const LOOK: Duration = Duration::from_millis(40);

/// What makes an attempt fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A file or folder that disappears between two system calls.
    Race,
    /// A value that another writer sets between the read and the write here.
    Conflict,
    /// A lock held by another writer.
    Lock,
}

/// The attempts at an operation so far.
#[derive(Debug)]
pub struct Retry {
    cause: Cause,
    tries: u32,
    /// Times of the first failure and of the last look.
    times: Option<(Instant, Instant)>,
}

impl Retry {
    const fn new(cause: Cause) -> Retry {
        Retry { cause, tries: 0, times: None }
    }

    /// Attempts at a step that fails if a file or folder disappears.
    pub const fn race() -> Retry {
        Retry::new(Cause::Race)
    }

    /// Attempts to take a lock.
    pub const fn lock() -> Retry {
        Retry::new(Cause::Lock)
    }

    /// Returns true before the first failure, and again after the maximum wait for one holder.
    pub fn is_due(&self) -> bool {
        self.times.is_none_or(|(first, _)| has_waited(first))
    }

    /// Pauses before the next attempt.
    ///
    /// # Errors
    /// `reason` after the last attempt; errors of `pass`; [`ErrorKind::Interrupted`].
    pub fn again(&mut self, pass: &dyn Fn() -> Result<()>, reason: impl FnOnce() -> Error) -> Result<()> {
        let now = Instant::now();
        let (first, looked) = *self.times.get_or_insert((now, now));
        self.tries += 1;
        let is_over = match self.cause {
            Cause::Lock => has_waited(first),
            Cause::Race | Cause::Conflict => self.tries >= MOST_TRIES,
        };
        if is_over {
            return Err(reason());
        }
        pass()?;
        if now.duration_since(looked) >= LOOK {
            pass_here()?;
            self.times = Some((first, now));
        }
        match self.cause {
            // Most races are won at once.
            Cause::Race if self.tries < 5 => {}
            Cause::Race => std::thread::sleep(self.chance(Duration::from_millis(1))),
            Cause::Conflict => std::thread::sleep(self.chance(Duration::from_millis(100))),
            Cause::Lock => pause(Duration::from_micros(20 << self.tries.min(7))),
        }
        Ok(())
    }

    /// Returns a random pause, so that writers do not collide again.
    fn chance(&self, longest: Duration) -> Duration {
        let longest = (500_u64 << self.tries.min(10)).min(longest.as_micros() as u64);
        Duration::from_micros(RandomState::new().hash_one(self.tries) % longest)
    }
}

/// Returns whether a wait for one holder of a lock, which began at `first`, is over.
fn has_waited(first: Instant) -> bool {
    first.elapsed() >= PATIENCE || codec_calls::is_too_long(first)
}

/// Does `work`, and repeats it after [`ErrorKind::Conflict`]; calls `pass` in between.
///
/// # Errors
/// Errors of `work` and of `pass`.
pub fn until_no_conflict<T>(pass: &dyn Fn() -> Result<()>, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut retry = Retry::new(Cause::Conflict);
    loop {
        match work() {
            Err(error) if matches!(error.kind(), ErrorKind::Conflict) => retry.again(pass, || error)?,
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_retried_until_it_succeeds_or_reaches_the_limit() {
        let mut tries = 0;
        let done = until_no_conflict(&|| Ok(()), || {
            tries += 1;
            if tries < 4 { Err(ErrorKind::Conflict.into()) } else { Ok(tries) }
        });
        assert_eq!(done.unwrap(), 4);
        let stopped: Result<()> =
            until_no_conflict(&|| Err(ErrorKind::Interrupted.into()), || Err(ErrorKind::Conflict.into()));
        assert_eq!(stopped.unwrap_err().kind().code(), "interrupted");
        let other: Result<()> = until_no_conflict(&|| Ok(()), || Err(ErrorKind::ReadOnly.into()));
        assert_eq!(other.unwrap_err().kind().code(), "read_only");
    }

    #[test]
    fn a_race_that_is_never_won_ends_with_its_reason() {
        let mut retry = Retry::race();
        let tries = (1..).find(|_| retry.again(&|| Ok(()), || ErrorKind::NotFound.into()).is_err());
        assert_eq!(tries, Some(MOST_TRIES));
    }
}
