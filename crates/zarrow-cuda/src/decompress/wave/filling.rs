//! Filling a slot: steps 1 and 2 of [`wave`](super).

use super::Waves;
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
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// Bytes of a slot: of stored chunks and of the lists.
const SLOT_NBYTES: usize = 16 << 20;

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
    /// Bytes of the slot that nothing is made of.
    pub(super) unused: Vec<Range<usize>>,
    /// Bytes that threads which still fill it will have decompressed.
    promised: usize,
}

/// A wave that threads fill together, each its own bytes of the slot.
pub(super) struct Shared {
    /// `None` once it was given to the device.
    wave: Option<Wave>,
    /// How many threads fill it.
    fillers: usize,
    /// Whether no more threads may.
    is_full: bool,
}

/// Bytes of a wave's slot that one thread fills.
pub(super) struct Filling<'a> {
    shared: &'a Mutex<Shared>,
    start: usize,
    memory: &'a mut [MaybeUninit<u8>],
}

impl Filling<'_> {
    /// Where they begin in the slot.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// The bytes.
    pub(super) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        self.memory
    }

    /// Nothing was made of the bytes.
    pub(super) fn leave(&self) -> Result<()> {
        let range = self.start..self.start + self.memory.len();
        self.add(|wave| Ok(wave.unused.try_push(range)?))
    }

    /// Adds to the lists of the wave.
    pub(super) fn add(&self, add: impl FnOnce(&mut Wave) -> Result<()>) -> Result<()> {
        let mut shared = self.shared.lock();
        let given =
            || Err(Error::Unsupported("a wave was given to the device while it was filled".to_owned()));
        shared.wave.as_mut().map_or_else(given, add)
    }
}

impl Wave {
    fn new(device: &'static Device, nbytes: usize) -> Result<Wave> {
        let mut slot = device.idle.take(device, nbytes.max(SLOT_NBYTES))?;
        let (_, room) = slot.ready()?;
        let (bodies, frames, pieces) = (Vec::new(), Vec::new(), Vec::new());
        let (copies, patches) = (Vec::new(), Vec::new());
        let (used, decompressed, promised, unused) = (0, 0, 0, Vec::new());
        Ok(Wave { slot, room, used, decompressed, bodies, frames, copies, patches, pieces, unused, promised })
    }

    /// Whether it has this room, and behind it that for the lists, as far as they are known.
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

    /// Sets bytes of the slot aside: where they begin, and their address.
    fn set_aside(&mut self, room: Room) -> Result<(usize, NonNull<u8>)> {
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

    /// The bytes of the slot before `end` of which something is made.
    pub(super) fn used_ranges(&mut self, end: usize) -> Vec<Range<usize>> {
        self.unused.sort_unstable_by_key(|range| range.start);
        let starts = std::iter::once(0).chain(self.unused.iter().map(|range| range.end));
        let ends = self.unused.iter().map(|range| range.start).chain([end]);
        starts.zip(ends).map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
    }

    /// The number of a body in this wave.
    pub(super) fn number_of(&mut self, body: &Arc<PinnedBody>) -> Result<usize> {
        // Chunks of one body come one after the other, though those of other threads may stand between them.
        if let Some(number) = self.bodies.iter().rposition(|other| Arc::ptr_eq(other, body)) {
            return Ok(number);
        }
        self.bodies.try_push(Arc::clone(body))?;
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

    /// Copies the frame at `source` among the decompressed bytes, and gives its new place.
    fn copied(&mut self, source: Origin, nbytes: usize, alignment: usize) -> Result<Origin> {
        let destination = self.decompressed.next_multiple_of(alignment);
        self.decompressed = destination + nbytes;
        self.copies.try_push(Copied { source, destination, nbytes })?;
        Ok(Origin::Decompressed(destination))
    }
}

impl Waves<'_> {
    /// Has `work` fill a wave that has this room, beside other threads. The last one gives a full wave to the device.
    pub(super) fn fill_wave<T>(
        &self,
        room: Room,
        work: impl FnOnce(&mut Filling<'_>) -> zarrow::Result<T>,
    ) -> zarrow::Result<T> {
        let (shared, start, pointer) = self.reserve(room).map_err(|error| self.stop(error))?;
        // SAFETY: `set_aside` gives each range of the slot to one caller. The slot is copied from only when `fillers` is 0, and this
        // caller counts until its work is done.
        let memory = unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr().cast(), room.nbytes) };
        let done = work(&mut Filling { shared: &shared, start, memory });
        let full = {
            let mut shared = shared.lock();
            shared.fillers -= 1;
            if let Some(wave) = &mut shared.wave {
                wave.promised -= room.decompressed;
            }
            shared.take()
        };
        // A read that fails gives nothing more to the device.
        let done = done?;
        full.map_or(Ok(()), |wave| self.submit(wave)).map_err(|error| self.stop(error))?;
        Ok(done)
    }

    /// Bytes of the wave that is open, or of the next one.
    fn reserve(&self, room: Room) -> Result<(Arc<Mutex<Shared>>, usize, NonNull<u8>)> {
        let mut open = self.open.lock();
        if let Some(shared) = &*open
            && let Some(place) = shared.lock().reserve(room)?
        {
            return Ok((Arc::clone(shared), place.0, place.1));
        }
        // The next slot is taken before the copy of this one begins, so that it is another. Threads that come meanwhile need it
        // as well.
        let nbytes = room.nbytes.saturating_add(room.lists_nbytes()).saturating_add(2 * ALIGNMENT);
        let mut next = Wave::new(self.result.device(), nbytes)?;
        let (start, pointer) = next.set_aside(room)?;
        let next = Arc::new(Mutex::new(Shared { wave: Some(next), fillers: 1, is_full: false }));
        let before = open.replace(Arc::clone(&next));
        drop(open);
        if let Some(full) = before.and_then(|shared| shared.lock().close()) {
            self.submit(full)?;
        }
        Ok((next, start, pointer))
    }

    /// Gives what is left to the device, when all threads have ended.
    pub(super) fn submit_last(&self) -> Result<()> {
        let last = self.open.lock().take();
        let full = last.and_then(|shared| shared.lock().close());
        full.map_or(Ok(()), |wave| self.submit(wave))
    }
}

impl Shared {
    /// Bytes of its slot, if it has the room.
    fn reserve(&mut self, room: Room) -> Result<Option<(usize, NonNull<u8>)>> {
        let Some(wave) = self.wave.as_mut().filter(|wave| wave.has(room)) else { return Ok(None) };
        let place = wave.set_aside(room)?;
        self.fillers += 1;
        Ok(Some(place))
    }

    /// No more threads may fill it. The wave, if none does.
    fn close(&mut self) -> Option<Wave> {
        self.is_full = true;
        self.take()
    }

    /// The wave, if it is full and nobody fills it.
    fn take(&mut self) -> Option<Wave> {
        if self.is_full && self.fillers == 0 { self.wave.take() } else { None }
    }
}
