//! Assigning chunks to batches: step 1 of [`batch`](super).

use super::Batches;
use super::planned::{Planned, Room};
use super::slot::Origin;
use crate::bodies::PinnedBody;
use crate::decompress::frames::Frames;
use crate::error::Result;
use crate::kernel::structs::{Piece, Shuffle};
use crate::kernel::width;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zarrow::{BodyAlloc, ChunkAxis, ChunkSink, StoredChunk};

/// Returns the decoded size of a chunk's largest frame.
fn largest(frames: &Frames) -> u64 {
    frames.frames.iter().map(|frame| frame.destination.len() as u64).max().unwrap_or(0)
}

impl Batches<'_> {
    /// Returns whether the compressor allows the device to take a chunk.
    fn may_take(&self, chunk: &StoredChunk<'_>) -> bool {
        chunk.is_raw
            || chunk.compressor.is_some_and(|name| {
                let is_small = name == "blosc" || chunk.decoded_nbytes <= self.share.largest_frame();
                is_small && Frames::formats(name).iter().any(|format| self.decompressor.takes(*format))
            })
    }

    /// Plans the work on a chunk with the stored bytes `bytes`; `None` if the host must decode it.
    fn plan(&self, chunk: &StoredChunk<'_>, bytes: &[u8]) -> Result<Option<Planned>> {
        let most = self.share.largest_frame();
        let frames = chunk.compressor.and_then(|name| Frames::parse(name, bytes, chunk.decoded_nbytes, most));
        let alignment = frames.as_ref().map_or(1, |frames| self.decompressor.source_alignment(frames.format));
        let frames = frames.filter(|frames| self.decompressor.takes(frames.format));
        let frames = frames.filter(|frames| self.share.is_next_on_device(largest(frames)));
        if frames.is_none() && !chunk.is_raw {
            return Ok(None);
        }
        let template = match &frames {
            None => self.template(chunk),
            Some(Frames { shuffle, element_nbytes, block_nbytes, .. }) => Piece {
                shuffle: *shuffle,
                element_nbytes: *element_nbytes,
                block_nbytes: *block_nbytes,
                ..self.template(chunk)
            },
        };
        let pieces = self.pieces(chunk.axes, chunk.shape, &template)?;
        let counted = if frames.is_some() { &self.on_device } else { &self.on_host };
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Planned { frames, pieces, alignment, decoded_nbytes: chunk.decoded_nbytes }))
    }

    /// Returns a box of a chunk, without its position.
    fn template(&self, chunk: &StoredChunk<'_>) -> Piece {
        Piece {
            decoded_nbytes: chunk.decoded_nbytes as u64,
            word_nbytes: chunk.word_nbytes as u32,
            ..Piece::default()
        }
    }

    /// Decodes a chunk on the host directly to a slot, from `bytes` if they are in memory already.
    fn decode_here(&self, chunk: &mut StoredChunk<'_>, bytes: Option<&[u8]>) -> zarrow::Result<()> {
        let pieces = self.pieces(chunk.axes, chunk.shape, &self.template(chunk));
        let pieces = pieces.map_err(|error| self.stop(error))?;
        let planned = Planned { frames: None, pieces, alignment: 1, decoded_nbytes: chunk.decoded_nbytes };
        self.on_host.fetch_add(1, Ordering::Relaxed);
        let decoded_nbytes = chunk.decoded_nbytes;
        self.fill_batch(Room { nbytes: decoded_nbytes, ..planned.room() }, |filling| {
            self.measured.timed(decoded_nbytes, || chunk.decode(bytes, filling.memory()))?;
            let origin = Origin::Slot(filling.start());
            filling.add(|batch| batch.add(&planned, origin)).map_err(|error| self.stop(error))
        })
    }

    /// Takes a chunk with stored bytes in pinned memory; returns whether this was possible.
    fn take_landed(&self, chunk: &mut StoredChunk<'_>) -> zarrow::Result<bool> {
        // Only cached elements are raw here, and they are not in a body.
        if chunk.is_raw {
            return Ok(false);
        }
        let Some(landed) = chunk.landed()? else { return Ok(false) };
        let Ok(body) = Arc::downcast::<PinnedBody>(Arc::clone(landed.owner)) else { return Ok(false) };
        self.landed.fetch_add(1, Ordering::Relaxed);
        let Some(planned) = self.plan(chunk, landed.bytes).map_err(|error| self.stop(error))? else {
            return self.decode_here(chunk, Some(landed.bytes)).map(|()| true);
        };
        self.fill_batch(planned.room(), |filling| {
            let added = filling.add(|batch| {
                let number = batch.number_of(&body)?;
                batch.add(&planned, Origin::Body(number, landed.offset))
            });
            added.map_err(|error| self.stop(error))
        })?;
        Ok(true)
    }

    /// Takes a chunk by reading its stored bytes to a slot.
    fn take_loaded(&self, chunk: &mut StoredChunk<'_>) -> zarrow::Result<()> {
        let nbytes = chunk.stored_nbytes;
        let decompressed = if chunk.is_raw { 0 } else { chunk.decoded_nbytes };
        self.fill_batch(Room { nbytes, frames: 1, pieces: 1, decompressed }, |filling| {
            let (offset, bytes) = chunk.load(filling.memory())?;
            let planned = self.plan(chunk, bytes).map_err(|error| self.stop(error))?;
            let added = match planned {
                Some(planned) => {
                    let origin = Origin::Slot(filling.start() + offset);
                    filling.add(|batch| batch.add(&planned, origin))
                }
                None => {
                    self.decode_here(chunk, Some(bytes))?;
                    filling.leave()
                }
            };
            added.map_err(|error| self.stop(error))
        })
    }
}

impl ChunkSink for Batches<'_> {
    fn take(&self, chunk: &mut StoredChunk<'_>) -> zarrow::Result<()> {
        if chunk.compressor.is_some() {
            self.measured.stored(chunk.decoded_nbytes, chunk.stored_nbytes);
        }
        if !self.may_take(chunk) {
            return self.decode_here(chunk, None);
        }
        if self.take_landed(chunk)? { Ok(()) } else { self.take_loaded(chunk) }
    }

    fn fill(&self, axes: &[ChunkAxis], value: &[u8]) -> zarrow::Result<()> {
        let width = width(self.result.item_size());
        self.filled.fetch_add(1, Ordering::Relaxed);
        // A value without a kernel of its width is filled word by word.
        for (number, word) in value.chunks_exact(width).enumerate() {
            let mut fill = [0; 16];
            fill[..width].copy_from_slice(word);
            let template = Piece { shuffle: Shuffle::Fill, fill, ..Piece::default() };
            let pieces = self.fill_pieces(axes, &template, number * width);
            let pieces = pieces.map_err(|error| self.stop(error))?;
            let planned = Planned { frames: None, pieces, alignment: 1, decoded_nbytes: 0 };
            self.fill_batch(planned.room(), |filling| {
                let added = filling.add(|batch| batch.add(&planned, Origin::Fill));
                added.map_err(|error| self.stop(error))
            })?;
        }
        Ok(())
    }

    fn bodies(&self) -> Option<Arc<dyn BodyAlloc>> {
        Some(Arc::clone(&self.bodies) as _)
    }

    fn is_replaced(&self) {
        self.is_replaced.store(true, Ordering::Relaxed);
    }
}
