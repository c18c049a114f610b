//! A chunk planned for a batch, and the room that it needs there.

use crate::decompress::frames::Frames;
use crate::kernel::structs::{Guarded, Piece};

/// Bytes per frame in the list of frames.
pub(super) const FRAME_NBYTES: usize = 4 * 8;
/// Maximum bytes per frame in all lists, including its checksum.
const LISTED_NBYTES: usize = FRAME_NBYTES + size_of::<Guarded>();

/// A stored chunk with parsed headers.
pub(super) struct Planned {
    /// Its frames; `None` if it is uncompressed.
    pub(super) frames: Option<Frames>,
    /// Destination of its elements.
    pub(super) pieces: Vec<Piece>,
    /// Required alignment of each frame.
    pub(super) alignment: usize,
    /// Bytes of its elements.
    pub(super) decoded_nbytes: usize,
}

impl Planned {
    /// Returns the room that it needs, excluding its stored bytes.
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

/// Room needed in a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Room {
    /// Bytes of the slot.
    pub(super) nbytes: usize,
    /// Frames and boxes known so far.
    pub(super) frames: usize,
    pub(super) pieces: usize,
    /// Decompressed bytes.
    pub(super) decompressed: usize,
}

impl Room {
    /// Returns the bytes of the lists.
    pub(super) fn lists_nbytes(self) -> usize {
        self.frames
            .saturating_mul(LISTED_NBYTES)
            .saturating_add(self.pieces.saturating_mul(size_of::<Piece>()))
    }
}
