//! Filling a slot: steps 1 and 2 of [`wave`](super).

use super::Waves;
use crate::decompress::Format;
use crate::decompress::checksums::Checksum;
use crate::decompress::frames::Frames as ChunkFrames;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::structs::{Guarded, Piece, Shuffle};
use crate::kernel::width;
use crate::pinned::Slot;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use zarrow::{ChunkAxis, ChunkSink, DecodeChunk, StoredChunk};
use zarrow_array::allocation::Grow;

/// Bytes of a slot: of stored chunks and of the lists.
const SLOT_NBYTES: usize = 16 << 20;
/// The most bytes that a wave decompresses to, where chunks are smaller: zstd needs three times as many beside them.
pub(crate) const DECODED_NBYTES: usize = 64 << 20;
/// How stored and decoded chunks are aligned.
pub(super) const ALIGNMENT: usize = 256;
/// Bytes that a frame has in the list of frames.
pub(super) const FRAME_NBYTES: usize = 4 * 8;
/// Bytes that a frame has in all lists at most: it may be guarded by a checksum, too.
const LISTED_NBYTES: usize = FRAME_NBYTES + size_of::<Guarded>();

/// Where a box of elements comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The slot's bytes from here on.
    Slot(usize),
    /// The decompressed bytes from here on.
    Decompressed(usize),
    /// Nowhere: it is filled.
    Fill,
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

/// Bytes that the device moves before it decompresses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Move {
    /// Bytes of the slot, to a place among the decompressed ones: stored as they are, or a frame that is not aligned.
    Copy { source: usize, destination: usize, nbytes: usize },
    /// A byte of the slot that becomes another, on the device alone.
    Patch { place: usize, value: u8 },
}

/// A slot that is filled.
pub(super) struct Wave {
    pub(super) slot: Slot,
    pub(super) room: usize,
    pub(super) used: usize,
    pub(super) decompressed: usize,
    pub(super) frames: Vec<WaveFrame>,
    pub(super) moves: Vec<Move>,
    pub(super) pieces: Vec<(Origin, Piece)>,
}

impl Wave {
    fn new(device: &'static Device, nbytes: usize) -> Result<Wave> {
        let mut slot = device.idle.take(device, nbytes.max(SLOT_NBYTES))?;
        let (_, room) = slot.ready()?;
        let (frames, moves, pieces) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Wave { slot, room, used: 0, decompressed: 0, frames, moves, pieces })
    }

    /// Bytes of the slot with `nbytes` more, and with the lists of so many more frames and boxes.
    fn with(&self, nbytes: usize, frames: usize, pieces: usize) -> usize {
        let boxes = self.pieces.len() + self.moves.len() + pieces + frames;
        (self.used + nbytes).next_multiple_of(ALIGNMENT)
            + (self.frames.len() + frames) * LISTED_NBYTES
            + (boxes + 2) * size_of::<Piece>()
    }

    /// Memory of the slot for `nbytes` more, and where it begins.
    fn memory(&mut self, nbytes: usize) -> Result<(usize, &mut [MaybeUninit<u8>])> {
        let (pointer, room) = self.slot.ready()?;
        let start = self.used.next_multiple_of(ALIGNMENT);
        if start + nbytes > room {
            return Err(Error::Unsupported(format!("a slot of {room} bytes has no room for {nbytes}")));
        }
        self.used = start + nbytes;
        // SAFETY: the range lies in the slot, which is this wave's alone, and no copy uses it.
        let memory = unsafe {
            std::slice::from_raw_parts_mut(pointer.as_ptr().add(start).cast::<MaybeUninit<u8>>(), nbytes)
        };
        Ok((start, memory))
    }

    /// Where a frame is that lies at `source` of the slot: there, or where it is copied to, since it is not aligned there.
    fn aligned(&mut self, source: usize, nbytes: usize, alignment: usize) -> Result<Origin> {
        if source.is_multiple_of(alignment) {
            return Ok(Origin::Slot(source));
        }
        let destination = self.decompressed.next_multiple_of(alignment);
        self.decompressed = destination + nbytes;
        self.moves.try_push(Move::Copy { source, destination, nbytes })?;
        Ok(Origin::Decompressed(destination))
    }
}

impl Waves<'_> {
    /// Has `work` fill a wave that takes `nbytes` more bytes, so many frames, and boxes for `pieces`.
    fn fill_wave(
        &self,
        needed: (usize, usize, usize, usize),
        work: impl FnOnce(&mut Wave) -> zarrow::Result<Result<()>>,
    ) -> zarrow::Result<()> {
        let (nbytes, frames, pieces, decompressed) = needed;
        let device = self.result.device();
        let taken = self.idle.lock().pop();
        let take = || {
            let is_room = |wave: &Wave| {
                let fits = wave.with(nbytes, frames, pieces) <= wave.room;
                fits && (wave.decompressed == 0 || wave.decompressed + decompressed <= DECODED_NBYTES)
            };
            let wave = match taken {
                Some(wave) if is_room(&wave) => return Ok(wave),
                other => other,
            };
            // The next slot is taken first, so that it is another than the one whose copy is to begin.
            let lists = frames * LISTED_NBYTES + (frames + pieces + 4) * size_of::<Piece>() + 2 * ALIGNMENT;
            let next = Wave::new(device, nbytes.saturating_add(lists))?;
            wave.map_or(Ok(()), |full| self.submit(full))?;
            Ok(next)
        };
        let mut wave = take().map_err(|error| self.stop(error))?;
        work(&mut wave)?.map_err(|error| self.stop(error))?;
        self.idle.lock().push(wave);
        Ok(())
    }
}

impl ChunkSink for Waves<'_> {
    fn take(&self, chunk: &StoredChunk<'_>, decode: &mut DecodeChunk<'_>) -> zarrow::Result<()> {
        let frames = chunk.compressor.and_then(|name| {
            ChunkFrames::of(name, chunk.bytes, chunk.decoded_nbytes, self.share.largest_frame())
        });
        let alignment = frames.as_ref().map_or(1, |frames| self.decompressor.source_alignment(frames.format));
        // A frame is patched where it is, or copied, and never both: one launch does all of that in any order.
        let can_move =
            |frames: &ChunkFrames| alignment == 1 || frames.frames.iter().all(|frame| frame.patch.is_none());
        let frames = frames.filter(|frames| self.decompressor.takes(frames.format) && can_move(frames));
        let frames = frames.filter(|_| self.share.is_next_on_device());
        if chunk.compressor.is_some() {
            self.measured.stored(chunk.decoded_nbytes, chunk.bytes.len());
        }
        let template = Piece {
            decoded_nbytes: chunk.decoded_nbytes as u64,
            word_nbytes: chunk.word_nbytes as u32,
            ..Piece::none()
        };
        match frames {
            Some(ChunkFrames { format, frames, shuffle, element_nbytes, block_nbytes }) => {
                let template = Piece { shuffle, element_nbytes, block_nbytes, ..template };
                let pieces =
                    self.pieces(chunk.axes, chunk.shape, &template).map_err(|error| self.stop(error))?;
                let realigned = if alignment > 1 { chunk.bytes.len() + frames.len() * alignment } else { 0 };
                let decompressed = chunk.decoded_nbytes.saturating_add(realigned);
                let needed = (chunk.bytes.len(), frames.len(), pieces.len(), decompressed);
                self.on_device.fetch_add(1, Ordering::Relaxed);
                self.fill_wave(needed, |wave| {
                    let mut add = || {
                        let (start, memory) = wave.memory(chunk.bytes.len())?;
                        memory.write_copy_of_slice(chunk.bytes);
                        let decompressed = wave.decompressed.next_multiple_of(ALIGNMENT);
                        wave.decompressed = decompressed + chunk.decoded_nbytes;
                        for frame in &frames {
                            let (source, nbytes) = (start + frame.source.start, frame.source.len());
                            let destination = decompressed + frame.destination.start;
                            if frame.is_copy {
                                wave.moves.try_push(Move::Copy { source, destination, nbytes })?;
                                continue;
                            }
                            if let Some((at, value)) = frame.patch {
                                wave.moves.try_push(Move::Patch { place: start + at, value })?;
                            }
                            let source = wave.aligned(source, nbytes, alignment)?;
                            wave.frames.try_push(WaveFrame {
                                format,
                                source,
                                source_nbytes: nbytes,
                                destination,
                                destination_nbytes: frame.destination.len(),
                                checksum: frame.checksum,
                            })?;
                        }
                        let origin = Origin::Decompressed(decompressed);
                        pieces.iter().try_for_each(|piece| Ok(wave.pieces.try_push((origin, *piece))?))
                    };
                    Ok(add())
                })
            }
            None => {
                let pieces =
                    self.pieces(chunk.axes, chunk.shape, &template).map_err(|error| self.stop(error))?;
                let needed = (chunk.decoded_nbytes, 0, pieces.len(), 0);
                self.on_host.fetch_add(1, Ordering::Relaxed);
                self.fill_wave(needed, |wave| {
                    let (start, memory) = match wave.memory(chunk.decoded_nbytes) {
                        Ok(memory) => memory,
                        Err(error) => return Ok(Err(error)),
                    };
                    self.measured.timed(chunk.decoded_nbytes, || decode(memory))?;
                    let add = |piece: &Piece| Ok(wave.pieces.try_push((Origin::Slot(start), *piece))?);
                    Ok(pieces.iter().try_for_each(add))
                })
            }
        }
    }

    fn fill(&self, axes: &[ChunkAxis], value: &[u8]) -> zarrow::Result<()> {
        let width = width(self.result.item_size());
        self.filled.fetch_add(1, Ordering::Relaxed);
        // The value is filled word by word where a kernel has no width for it.
        for (number, word) in value.chunks_exact(width).enumerate() {
            let mut fill = [0; 16];
            fill[..width].copy_from_slice(word);
            let template = Piece { shuffle: Shuffle::Fill, fill, ..Piece::none() };
            let pieces =
                self.fill_pieces(axes, &template, number * width).map_err(|error| self.stop(error))?;
            self.fill_wave((0, 0, pieces.len(), 0), |wave| {
                Ok(pieces.iter().try_for_each(|piece| Ok(wave.pieces.try_push((Origin::Fill, *piece))?)))
            })?;
        }
        Ok(())
    }
}
