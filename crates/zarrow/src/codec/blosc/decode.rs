//! Decoding a frame, or a range of its blocks.

use super::bitshuffle::{bitunshuffle, slab_nbytes};
use super::frame::Frame;
use super::layout::HEADER;
use super::settings::Filter;
use super::shuffle::unshuffle;
use crate::codec::Uninit;
use crate::codec::failure::Failure;
use crate::codec::{Codecs, Scratch};

impl Frame<'_> {
    /// Decodes to the start of `destination`; returns the bytes written.
    ///
    /// # Errors
    /// [`Failure::TooSmall`] if the frame claims a larger size; [`Failure::Corrupt`], [`Failure::OutOfMemory`].
    pub fn decode(&self, destination: &mut Uninit, codecs: &mut Codecs) -> Result<usize, Failure> {
        let destination = destination.get_mut(..self.nbytes).ok_or(Failure::TooSmall)?;
        self.decode_range(0, destination, codecs)?;
        Ok(self.nbytes)
    }

    /// Decodes the bytes from `start` on to all of `destination`, reading only the blocks that contain them.
    pub fn decode_range(
        &self,
        start: usize,
        destination: &mut Uninit,
        codecs: &mut Codecs,
    ) -> Result<(), Failure> {
        let end = start.checked_add(destination.len()).filter(|end| *end <= self.nbytes);
        let end = end.ok_or(Failure::TooSmall)?;
        if self.format.is_none() {
            let copy = self.bytes.get(HEADER + start..HEADER + end).ok_or(Failure::TooSmall)?;
            destination.write_copy_of_slice(copy);
            return Ok(());
        }
        // Moved out of the thread's state, so that blocks can be decoded to it with the rest of the state borrowed.
        let mut scratch = std::mem::take(codecs.blosc_memory());
        let decoded = self.decode_blocks(start..end, destination, &mut scratch, codecs);
        *codecs.blosc_memory() = scratch;
        decoded
    }

    fn decode_blocks(
        &self,
        wanted: std::ops::Range<usize>,
        mut destination: &mut Uninit,
        scratch: &mut Scratch,
        codecs: &mut Codecs,
    ) -> Result<(), Failure> {
        let block_nbytes = self.block_nbytes;
        let ends_inside = |at: usize| !at.is_multiple_of(block_nbytes) && at != self.nbytes;
        let whole_nbytes =
            if ends_inside(wanted.start) || ends_inside(wanted.end) { block_nbytes } else { 0 };
        let filter_nbytes = match self.filter(block_nbytes) {
            Filter::None => 0,
            Filter::Shuffle => block_nbytes,
            Filter::BitShuffle => block_nbytes.saturating_add(slab_nbytes(self.item_size)),
        };
        let memory =
            scratch.take(whole_nbytes.saturating_add(filter_nbytes)).map_err(|_| Failure::OutOfMemory)?;
        let (whole, memory) = memory.split_at_mut(whole_nbytes);
        let mut at = wanted.start;
        while !destination.is_empty() {
            let (number, skipped) = (at / block_nbytes, at % block_nbytes);
            let length = block_nbytes.min(self.nbytes - number * block_nbytes);
            let (place, rest) = destination.split_at_mut((length - skipped).min(destination.len()));
            if place.len() == length {
                self.decode_block(number, place, memory, codecs)?;
            } else {
                self.decode_block(number, &mut whole[..length], memory, codecs)?;
                place.copy_from_slice(&whole[skipped..skipped + place.len()]);
            }
            at += place.len();
            destination = rest;
        }
        Ok(())
    }

    /// Decodes the block `number` to `destination`, which has the block's size.
    fn decode_block(
        &self,
        number: usize,
        destination: &mut Uninit,
        memory: &mut Uninit,
        codecs: &mut Codecs,
    ) -> Result<(), Failure> {
        let length = destination.len();
        let filter = self.filter(length);
        if filter == Filter::None {
            return self.decompress(number, destination, codecs);
        }
        let (planes, slab) = memory.split_at_mut(length);
        self.decompress(number, planes, codecs)?;
        // SAFETY: every byte was written, or there was an error.
        let planes = unsafe { planes.assume_init_ref() };
        let count = length / self.item_size;
        let whole = count * self.item_size;
        let (elements, rest) = destination.split_at_mut(whole);
        match filter {
            Filter::Shuffle => unshuffle(&planes[..whole], count, elements, self.item_size),
            Filter::BitShuffle if count.is_multiple_of(8) => {
                bitunshuffle(&planes[..whole], elements, self.item_size, slab);
            }
            // The bit shuffle leaves numbers of elements that are not multiples of eight unchanged.
            _ => drop(elements.write_copy_of_slice(&planes[..whole])),
        }
        rest.write_copy_of_slice(&planes[whole..]);
        Ok(())
    }

    /// Decompresses the pieces of the block `number`, filling `planes`.
    fn decompress(&self, number: usize, planes: &mut Uninit, codecs: &mut Codecs) -> Result<(), Failure> {
        let corrupt = |text: &str| Failure::Corrupt(format!("block {number} of a Blosc frame {text}"));
        let pieces = self.pieces(planes.len());
        if !planes.len().is_multiple_of(pieces) {
            return Err(corrupt("is not a whole number of elements"));
        }
        let length = planes.len() / pieces;
        let mut at = self.size(HEADER + 4 * number).ok_or_else(|| corrupt("has no start"))?;
        for piece in planes.chunks_exact_mut(length) {
            let size = self.size(at);
            let stored = size.and_then(|size| self.bytes.get(at + 4..)?.get(..size));
            let stored = stored.ok_or_else(|| corrupt("exceeds the frame"))?;
            at += 4 + stored.len();
            if stored.len() == length {
                piece.write_copy_of_slice(stored);
                continue;
            }
            let format = self.format.ok_or_else(|| corrupt("is a copy"))?;
            match format.decompress(stored, piece, codecs) {
                Ok(written) if written == length => {}
                Err(Failure::OutOfMemory) => return Err(Failure::OutOfMemory),
                Ok(_) | Err(_) => {
                    return Err(corrupt(&format!("is not {length} bytes of {}", format.name())));
                }
            }
        }
        Ok(())
    }
}
