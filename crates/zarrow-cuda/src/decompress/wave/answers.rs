//! What the device answers of a wave: step 4 of [`wave`](super).

use crate::error::Result;
use crate::meter::Timed;
use crate::pinned::Slot;

/// Bytes of the answer for a frame: those written (64 bits), and its status (32 bits).
pub(super) const ANSWER_NBYTES: usize = 8 + 4;

/// A wave that was given to the device, and what it should answer.
pub(super) struct Submitted {
    pub(super) slot: Slot,
    pub(super) expected: Vec<u64>,
    pub(super) timed: Vec<Timed>,
}

impl Submitted {
    /// How many of its frames failed, when the device has told.
    pub(super) fn failed(&mut self) -> Result<u64> {
        let (pointer, _) = self.slot.ready()?;
        let nbytes = self.expected.len() * ANSWER_NBYTES;
        // SAFETY: so many bytes were received, and no copy uses the slot any more.
        let answers = unsafe { std::slice::from_raw_parts(pointer.as_ptr().cast_const(), nbytes) };
        let (written, statuses) = answers.split_at(self.expected.len() * 8);
        let failed =
            self.expected.iter().zip(written.chunks_exact(8)).zip(statuses.chunks_exact(4)).filter(
                |((expected, written), status)| *written != expected.to_ne_bytes() || **status != [0; 4],
            );
        Ok(failed.count() as u64)
    }
}
