//! A slot being filled: its stored chunks, and the lists of what the device does with them.

use super::planned::{Planned, Room};
use crate::bodies::PinnedBody;
use crate::decompress::checksums::Checksum;
use crate::decompress::format::Format;
use crate::decompress::frames::BATCH_NBYTES;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::structs::Piece;
use crate::memory::ALIGNMENT;
use crate::pinned::Slot;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use zarrow_array::allocation::Grow;

/// Bytes of a slot, for stored chunks and for the lists.
const SLOT_NBYTES: usize = 16 << 20;

/// Source of a frame or a box of elements.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// Offset in the slot.
    Slot(usize),
    /// Index of a body in the batch, and offset in that body.
    Body(usize, usize),
    /// Offset in the decompressed bytes.
    Decompressed(usize),
    /// No source: a fill.
    Fill,
}

impl Origin {
    /// Moves the origin by `nbytes`.
    fn later(self, nbytes: usize) -> Origin {
        match self {
            Origin::Slot(at) => Origin::Slot(at + nbytes),
            Origin::Body(number, at) => Origin::Body(number, at + nbytes),
            Origin::Decompressed(at) => Origin::Decompressed(at + nbytes),
            Origin::Fill => Origin::Fill,
        }
    }

    /// Returns whether the origin is aligned; all memory of a batch begins aligned.
    fn is_aligned(self, alignment: usize) -> bool {
        match self {
            Origin::Slot(at) | Origin::Body(_, at) | Origin::Decompressed(at) => at.is_multiple_of(alignment),
            Origin::Fill => true,
        }
    }
}

/// A frame: its source, and its destination in the decompressed bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchFrame {
    pub(super) format: Format,
    pub(super) source: Origin,
    pub(super) source_nbytes: usize,
    pub(super) destination: usize,
    pub(super) destination_nbytes: usize,
    pub(super) checksum: Option<Checksum>,
}

/// Bytes to copy to the decompressed bytes: uncompressed pieces, or a misaligned frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    pub(super) source: Origin,
    pub(super) destination: usize,
    pub(super) nbytes: usize,
}

/// A slot being filled.
pub(super) struct Batch {
    pub(super) slot: Slot,
    pub(super) room: usize,
    pub(super) used: usize,
    pub(super) decompressed: usize,
    pub(super) bodies: Vec<Arc<PinnedBody>>,
    pub(super) frames: Vec<BatchFrame>,
    /// Copies to do before frames are decompressed.
    pub(super) copies: Vec<Copied>,
    /// Bytes to patch on the device, after all copies.
    pub(super) patches: Vec<(Origin, u8)>,
    pub(super) pieces: Vec<(Origin, Piece)>,
    /// Unused bytes of the slot.
    pub(super) unused: Vec<Range<usize>>,
    /// Decompressed bytes reserved by the threads that are still filling it.
    pub(super) promised: usize,
}

/// A batch filled by several threads, each in its own range of the slot.
pub(super) struct FillingBatch {
    /// `None` once it was submitted to the device.
    pub(super) batch: Option<Batch>,
    /// Number of threads filling it.
    pub(super) fillers: usize,
    /// Whether it is closed to further threads.
    pub(super) is_full: bool,
}

impl Batch {
    /// Takes a slot of the device for at least `nbytes`.
    pub(super) fn new(device: &'static Device, nbytes: usize) -> Result<Batch> {
        let mut slot = device.idle.take(device.context(), nbytes.max(SLOT_NBYTES))?;
        let (_, room) = slot.ready()?;
        let (bodies, frames, pieces) = (Vec::new(), Vec::new(), Vec::new());
        let (copies, patches) = (Vec::new(), Vec::new());
        let (used, decompressed, promised, unused) = (0, 0, 0, Vec::new());
        Ok(Batch {
            slot,
            room,
            used,
            decompressed,
            bodies,
            frames,
            copies,
            patches,
            pieces,
            unused,
            promised,
        })
    }

    /// Returns whether it has room for this, and behind it for the lists known so far.
    fn has(&self, room: Room) -> bool {
        let lists = Room {
            frames: self.frames.len() + room.frames,
            pieces: self.pieces.len() + self.copies.len() + self.patches.len() + room.pieces,
            ..room
        };
        let used = (self.used.next_multiple_of(ALIGNMENT) + room.nbytes).next_multiple_of(ALIGNMENT);
        let decompressed = self.decompressed.saturating_add(self.promised);
        let is_small = decompressed == 0 || decompressed.saturating_add(room.decompressed) <= BATCH_NBYTES;
        is_small && used.saturating_add(lists.lists_nbytes()) <= self.room
    }

    /// Reserves bytes of the slot; returns their offset and address.
    pub(super) fn set_aside(&mut self, room: Room) -> Result<(usize, NonNull<u8>)> {
        let (pointer, nbytes) = self.slot.ready()?;
        let start = self.used.next_multiple_of(ALIGNMENT);
        if start.saturating_add(room.nbytes) > nbytes {
            let text = format!("a slot of {nbytes} bytes has no room for {}", room.nbytes);
            return Err(Error::Unsupported(text));
        }
        self.used = start + room.nbytes;
        self.promised += room.decompressed;
        // SAFETY: `start` is at most `nbytes`, the length of the slot, as was checked above.
        Ok((start, unsafe { pointer.add(start) }))
    }

    /// Returns the used ranges of the slot before `end`.
    pub(super) fn used_ranges(&mut self, end: usize) -> Vec<Range<usize>> {
        self.unused.sort_unstable_by_key(|range| range.start);
        let starts = std::iter::once(0).chain(self.unused.iter().map(|range| range.end));
        let ends = self.unused.iter().map(|range| range.start).chain([end]);
        starts.zip(ends).map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
    }

    /// Returns the index of a body in this batch.
    pub(super) fn number_of(&mut self, body: &Arc<PinnedBody>) -> Result<usize> {
        // Chunks of one body are consecutive, but chunks of other threads may be in between.
        if let Some(number) = self.bodies.iter().rposition(|other| Arc::ptr_eq(other, body)) {
            return Ok(number);
        }
        self.bodies.try_push(Arc::clone(body))?;
        Ok(self.bodies.len() - 1)
    }

    /// Adds a stored chunk that begins at `origin`.
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
                    // A body is shared: if the store refers to a range twice, others read it too.
                    let can_stay = frame.patch.is_none() || !matches!(source, Origin::Body(..));
                    let source = match source.is_aligned(chunk.alignment) && can_stay {
                        true => source,
                        false => self.copied(source, nbytes, chunk.alignment)?,
                    };
                    if let Some((at, value)) = frame.patch {
                        self.patches.try_push((source.later(at - frame.source.start), value))?;
                    }
                    self.frames.try_push(BatchFrame {
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

    /// Copies the frame at `source` to the decompressed bytes, and returns its new origin.
    fn copied(&mut self, source: Origin, nbytes: usize, alignment: usize) -> Result<Origin> {
        let destination = self.decompressed.next_multiple_of(alignment);
        self.decompressed = destination + nbytes;
        self.copies.try_push(Copied { source, destination, nbytes })?;
        Ok(Origin::Decompressed(destination))
    }
}

impl FillingBatch {
    /// Reserves bytes of its slot, if there is room.
    pub(super) fn reserve(&mut self, room: Room) -> Result<Option<(usize, NonNull<u8>)>> {
        let Some(batch) = self.batch.as_mut().filter(|batch| batch.has(room)) else { return Ok(None) };
        let place = batch.set_aside(room)?;
        self.fillers += 1;
        Ok(Some(place))
    }

    /// Closes the batch to further threads. Returns it if no thread is filling it.
    pub(super) fn close(&mut self) -> Option<Batch> {
        self.is_full = true;
        self.take()
    }

    /// Returns the batch, if it is closed and no thread is filling it.
    pub(super) fn take(&mut self) -> Option<Batch> {
        if self.is_full && self.fillers == 0 { self.batch.take() } else { None }
    }
}
