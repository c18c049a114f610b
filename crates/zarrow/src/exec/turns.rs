//! Fetching and decoding side by side, where a store is slow.
//!
//! 1. A read from such a store has as many threads as the store likes requests at once, and those that decode. Each
//!    takes the next task and does all of it, as a thread does that reads from a disk.
//! 2. It asks the store only in one of the turns for that, which are as many as the store likes, and decodes only in
//!    one of the others, which are as many as [`num_threads`](crate::num_threads). It gives the one back before it
//!    waits for the other, so that nobody waits for who waits.
//! 3. A task begins without a turn, and waits for a lock of the read only then.

use crate::exec::job::INTERRUPT_INTERVAL;
use zarrow_array::fork::{Condvar, Mutex};

/// What a thread does in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It asks the store, and waits for the answer.
    Fetch,
    /// It uses a processor.
    Decode,
}

/// The turns of one read.
#[derive(Debug)]
pub struct Turns {
    fetch: Permits,
    decode: Permits,
}

/// So many at a time.
#[derive(Debug)]
struct Permits {
    free: Mutex<usize>,
    given: Condvar,
}

impl Turns {
    /// Turns for so many threads at once.
    pub fn new(fetch: usize, decode: usize) -> Turns {
        let permits = |count| Permits { free: Mutex::new(count), given: Condvar::default() };
        Turns { fetch: permits(fetch), decode: permits(decode) }
    }

    fn permits(&self, turn: Turn) -> &Permits {
        match turn {
            Turn::Fetch => &self.fetch,
            Turn::Decode => &self.decode,
        }
    }

    /// Takes a turn; false where there was none for some time, so that the caller can look whether to go on at all.
    pub fn take(&self, turn: Turn) -> bool {
        let Permits { free, given } = self.permits(turn);
        let mut free = free.lock();
        if *free == 0 {
            (free, _) = given.wait(free, Some(INTERRUPT_INTERVAL));
        }
        let taken = *free > 0;
        *free -= usize::from(taken);
        taken
    }

    /// Gives a turn back.
    pub fn give(&self, turn: Turn) {
        let Permits { free, given } = self.permits(turn);
        *free.lock() += 1;
        given.notify_one();
    }
}
