//! A chunk that is to go to a wave, and the room that it takes there.

use crate::decompress::frames::Frames;
use crate::kernel::structs::{Guarded, Piece};

/// Bytes that a frame has in the list of frames.
pub(super) const FRAME_NBYTES: usize = 4 * 8;
/// Bytes that a frame has in all lists at most: it may be guarded by a checksum, too.
const LISTED_NBYTES: usize = FRAME_NBYTES + size_of::<Guarded>();

/// A stored chunk whose headers were read.
pub(super) struct Planned {
    /// Its frames; `None` where it is stored as its elements are.
    pub(super) frames: Option<Frames>,
    /// Where its elements go.
    pub(super) pieces: Vec<Piece>,
    /// What the place of each frame is a multiple of.
    pub(super) alignment: usize,
    /// Bytes of its elements.
    pub(super) decoded_nbytes: usize,
}

impl Planned {
    /// The room that it takes, its stored bytes aside.
    pub(super) fn room(&self) -> Room {
        let frames = self.frames.as_ref();
        Room {
            nbytes: 0,
            frames: frames.map_or(0, |frames| frames.frames.len()),
            pieces: self.pieces.len(),
            decompressed: frames.map_or(0, |_| self.decoded_nbytes),
        }
    }
}

/// What a wave has to have room for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    /// Bytes of the slot.
    pub(super) nbytes: usize,
    /// Frames and boxes, as far as they are known.
    pub(super) frames: usize,
    pub(super) pieces: usize,
    /// Bytes that are decompressed.
    pub(super) decompressed: usize,
}

impl Room {
    /// Bytes of the lists.
    pub(super) fn lists_nbytes(self) -> usize {
        self.frames
            .saturating_mul(LISTED_NBYTES)
            .saturating_add(self.pieces.saturating_mul(size_of::<Piece>()))
    }
}
