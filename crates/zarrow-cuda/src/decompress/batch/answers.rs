//! Results of a batch: step 4 of [`batch`](super).

use crate::error::Result;
use crate::meter::Timed;
use crate::pinned::Slot;

/// Result bytes per frame: the number of bytes written (64 bits), and its status (32 bits).
pub(super) const ANSWER_NBYTES: usize = 8 + 4;

/// A submitted batch, and its expected results.
pub(super) struct Submitted {
    pub(super) slot: Slot,
    pub(super) expected: Vec<u64>,
    pub(super) timed: Vec<Timed>,
}

impl Submitted {
    /// Returns the number of failed frames, after waiting for the results.
    pub(super) fn failed(&mut self) -> Result<u64> {
        let (pointer, _) = self.slot.ready()?;
        let nbytes = self.expected.len() * ANSWER_NBYTES;
        // SAFETY: `nbytes` bytes were received, and no copy uses the slot any more.
        let answers = unsafe { std::slice::from_raw_parts(pointer.as_ptr().cast_const(), nbytes) };
        let (written, statuses) = answers.split_at(self.expected.len() * 8);
        let failed =
            self.expected.iter().zip(written.chunks_exact(8)).zip(statuses.chunks_exact(4)).filter(
                |((expected, written), status)| *written != expected.to_ne_bytes() || **status != [0; 4],
            );
        Ok(failed.count() as u64)
    }
}
