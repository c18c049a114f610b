//! Beginning anew where another writer was faster.

use crate::error::{ErrorKind, Result};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How often. Of those that meet one goes on each time, so that many writers of one value are done long before.
const MOST_TRIES: u32 = 100;

/// Does `work`, and does it anew where it ends in [`ErrorKind::Conflict`], so often at most; `pass` is asked in between.
///
/// # Errors
/// Those of `work` and of `pass`.
pub fn until_no_conflict<T>(pass: &dyn Fn() -> Result<()>, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    const LONGEST_MICROS: u64 = 100_000;
    for number in 1..MOST_TRIES {
        match work() {
            Err(error) if matches!(error.kind(), ErrorKind::Conflict) => {}
            done => return done,
        }
        pass()?;
        // Another time each, so that those who met do not meet again.
        let longest = (500_u64 << number.min(10)).min(LONGEST_MICROS);
        let chance = RandomState::new().hash_one(number) % longest;
        std::thread::sleep(Duration::from_micros(chance));
    }
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_anew_until_it_meets_nobody_or_for_too_often() {
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
}
