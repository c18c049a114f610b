//! Filling a slot: steps 1 and 2 of [`wave`](super).

use super::Waves;
use super::chunks::Planned;
use crate::bodies::PinnedBody;
use crate::decompress::Format;
use crate::decompress::checksums::Checksum;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::structs::{Guarded, Piece};
use crate::pinned::Slot;
use std::mem::MaybeUninit;
use std::sync::Arc;
use zarrow_array::allocation::Grow;

/// Bytes of a slot: of stored chunks and of the lists.
const SLOT_NBYTES: usize = 16 << 20;
/// The most bytes that a wave decompresses to, where chunks are smaller: zstd needs three times as many beside them.
pub(crate) const DECODED_NBYTES: usize = 64 << 20;
/// How stored and decoded chunks are aligned.
pub(crate) const ALIGNMENT: usize = 256;
/// Bytes that a frame has in the list of frames.
pub(super) const FRAME_NBYTES: usize = 4 * 8;
/// Bytes that a frame has in all lists at most: it may be guarded by a checksum, too.
const LISTED_NBYTES: usize = FRAME_NBYTES + size_of::<Guarded>();

/// Where a frame or a box of elements comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The slot's bytes from here on.
    Slot(usize),
    /// The bytes of a body, by its number in the wave, from here on.
    Body(usize, usize),
    /// The decompressed bytes from here on.
    Decompressed(usize),
    /// Nowhere: it is filled.
    Fill,
}

impl Origin {
    /// So many bytes later.
    fn later(self, nbytes: usize) -> Origin {
        match self {
            Origin::Slot(at) => Origin::Slot(at + nbytes),
            Origin::Body(number, at) => Origin::Body(number, at + nbytes),
            Origin::Decompressed(at) => Origin::Decompressed(at + nbytes),
            Origin::Fill => Origin::Fill,
        }
    }

    /// Whether it is aligned to so many bytes, as all memory of a wave is where it begins.
    fn is_aligned(self, alignment: usize) -> bool {
        match self {
            Origin::Slot(at) | Origin::Body(_, at) | Origin::Decompressed(at) => at.is_multiple_of(alignment),
            Origin::Fill => true,
        }
    }
}

/// A frame: where it lies, and where among the decompressed bytes it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaveFrame {
    pub(super) format: Format,
    pub(super) source: Origin,
    pub(super) source_nbytes: usize,
    pub(super) destination: usize,
    pub(super) destination_nbytes: usize,
    pub(super) checksum: Option<Checksum>,
}

/// Bytes that go to a place among the decompressed ones: stored as they are, or a frame that cannot stay where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    pub(super) source: Origin,
    pub(super) destination: usize,
    pub(super) nbytes: usize,
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

/// A slot that is filled.
pub(super) struct Wave {
    pub(super) slot: Slot,
    pub(super) room: usize,
    pub(super) used: usize,
    pub(super) decompressed: usize,
    pub(super) bodies: Vec<Arc<PinnedBody>>,
    pub(super) frames: Vec<WaveFrame>,
    /// What is copied before frames are decompressed.
    pub(super) copies: Vec<Copied>,
    /// Bytes that become others, on the device alone, when all is copied.
    pub(super) patches: Vec<(Origin, u8)>,
    pub(super) pieces: Vec<(Origin, Piece)>,
}

impl Wave {
    fn new(device: &'static Device, nbytes: usize) -> Result<Wave> {
        let mut slot = device.idle.take(device, nbytes.max(SLOT_NBYTES))?;
        let (_, room) = slot.ready()?;
        let (bodies, frames, pieces) = (Vec::new(), Vec::new(), Vec::new());
        let (copies, patches) = (Vec::new(), Vec::new());
        Ok(Wave { slot, room, used: 0, decompressed: 0, bodies, frames, copies, patches, pieces })
    }

    /// Whether it has this room, and behind it that for the lists, as far as they are known.
    fn has(&self, room: Room) -> bool {
        let lists = Room {
            frames: self.frames.len() + room.frames,
            pieces: self.pieces.len() + self.copies.len() + self.patches.len() + room.pieces,
            ..room
        };
        let used = (self.used.next_multiple_of(ALIGNMENT) + room.nbytes).next_multiple_of(ALIGNMENT);
        let is_small =
            self.decompressed == 0 || self.decompressed.saturating_add(room.decompressed) <= DECODED_NBYTES;
        is_small && used.saturating_add(lists.lists_nbytes()) <= self.room
    }

    /// Memory of the slot for `nbytes` more, and where it begins.
    pub(super) fn memory(&mut self, nbytes: usize) -> Result<(usize, &mut [MaybeUninit<u8>])> {
        let (pointer, room) = self.slot.ready()?;
        let start = self.used.next_multiple_of(ALIGNMENT);
        if start.saturating_add(nbytes) > room {
            return Err(Error::Unsupported(format!("a slot of {room} bytes has no room for {nbytes}")));
        }
        self.used = start + nbytes;
        // SAFETY: the range lies in the slot, which is this wave's alone, and no copy uses it.
        let memory = unsafe {
            std::slice::from_raw_parts_mut(pointer.as_ptr().add(start).cast::<MaybeUninit<u8>>(), nbytes)
        };
        Ok((start, memory))
    }

    /// The number of a body in this wave.
    pub(super) fn number_of(&mut self, body: &Arc<PinnedBody>) -> Result<usize> {
        if !self.bodies.last().is_some_and(|last| Arc::ptr_eq(last, body)) {
            self.bodies.try_push(Arc::clone(body))?;
        }
        Ok(self.bodies.len() - 1)
    }

    /// Adds a stored chunk whose bytes begin at `origin`.
    pub(super) fn add(&mut self, chunk: &Planned, origin: Origin) -> Result<()> {
        let elements = match &chunk.frames {
            None => origin,
            Some(frames) => {
                let decompressed = self.decompressed.next_multiple_of(ALIGNMENT);
                self.decompressed = decompressed + chunk.decoded_nbytes;
                for frame in &frames.frames {
                    let (source, nbytes) = (origin.later(frame.source.start), frame.source.len());
                    let destination = decompressed + frame.destination.start;
                    if frame.is_copy {
                        self.copies.try_push(Copied { source, destination, nbytes })?;
                        continue;
                    }
                    // A body is shared: ranges of it that a store names twice are read by others, too.
                    let can_stay = frame.patch.is_none() || !matches!(source, Origin::Body(..));
                    let source = match source.is_aligned(chunk.alignment) && can_stay {
                        true => source,
                        false => self.copied(source, nbytes, chunk.alignment)?,
                    };
                    if let Some((at, value)) = frame.patch {
                        self.patches.try_push((source.later(at - frame.source.start), value))?;
                    }
                    self.frames.try_push(WaveFrame {
                        format: frames.format,
                        source,
                        source_nbytes: nbytes,
                        destination,
                        destination_nbytes: frame.destination.len(),
                        checksum: frame.checksum,
                    })?;
                }
                Origin::Decompressed(decompressed)
            }
        };
        chunk.pieces.iter().try_for_each(|piece| Ok(self.pieces.try_push((elements, *piece))?))
    }

    /// Where a frame is copied to that lies at `source`.
    fn copied(&mut self, source: Origin, nbytes: usize, alignment: usize) -> Result<Origin> {
        let destination = self.decompressed.next_multiple_of(alignment);
        self.decompressed = destination + nbytes;
        self.copies.try_push(Copied { source, destination, nbytes })?;
        Ok(Origin::Decompressed(destination))
    }
}

impl Room {
    /// Bytes of the lists.
    pub(super) fn lists_nbytes(self) -> usize {
        self.frames
            .saturating_mul(LISTED_NBYTES)
            .saturating_add(self.pieces.saturating_mul(size_of::<Piece>()))
    }
}

impl Waves<'_> {
    /// Has `work` fill a wave that has this room.
    pub(super) fn fill_wave<T>(
        &self,
        room: Room,
        work: impl FnOnce(&mut Wave) -> zarrow::Result<T>,
    ) -> zarrow::Result<T> {
        let device = self.result.device();
        let taken = self.idle.lock().pop();
        let take = || {
            let wave = match taken {
                Some(wave) if wave.has(room) => return Ok(wave),
                other => other,
            };
            // The next slot is taken first, so that it is another than the one whose copy is to begin.
            let nbytes = room.nbytes.saturating_add(room.lists_nbytes()).saturating_add(2 * ALIGNMENT);
            let next = Wave::new(device, nbytes)?;
            wave.map_or(Ok(()), |full| self.submit(full))?;
            Ok(next)
        };
        let mut wave = take().map_err(|error| self.stop(error))?;
        let done = work(&mut wave)?;
        self.idle.lock().push(wave);
        Ok(done)
    }
}
