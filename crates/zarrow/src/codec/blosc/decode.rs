//! Decoding a frame, or a range of its blocks.

use super::bitshuffle::{bitunshuffle, slab_nbytes};
use super::compressor::Format;
use super::frame::Frame;
use super::layout::HEADER;
use super::settings::Filter;
use super::shuffle::unshuffle;
use crate::codec::Uninit;
use crate::codec::bytes_to_bytes::lz4;
use crate::codec::failure::Failure;
use crate::codec::{Codecs, Scratch};

/// A piece has long matches if the wanted bytes are more than this for each stored byte.
const LONG_MATCHES: usize = 8;

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
            } else if !self.decode_elements(number, skipped, place, (&mut whole[..length], memory), codecs)? {
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
            return self.decompress(number, length, destination, &mut [], codecs);
        }
        let (planes, slab) = memory.split_at_mut(length);
        self.decompress(number, length, planes, &mut [], codecs)?;
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

    /// Decodes shuffled elements of the block `number` from its byte `skipped` on to all of `destination`. `whole` is
    /// memory of the block's size. Returns false, and decodes nothing, if only the whole block can be decoded.
    ///
    /// Planes of LZ4 are decompressed up to the last of these elements.
    fn decode_elements(
        &self,
        number: usize,
        skipped: usize,
        destination: &mut Uninit,
        (whole, memory): (&mut Uninit, &mut Uninit),
        codecs: &mut Codecs,
    ) -> Result<bool, Failure> {
        let (size, end, nbytes) = (self.item_size, skipped + destination.len(), whole.len());
        let is_elements = [nbytes, skipped, end].iter().all(|at| at.is_multiple_of(size));
        if !is_elements || self.filter(nbytes) != Filter::Shuffle {
            return Ok(false);
        }
        let is_cut = self.format == Some(Format::Lz4) && self.pieces(nbytes) == size;
        let stride = if is_cut { end / size } else { nbytes / size };
        let planes = &mut memory[..stride * size];
        self.decompress(number, nbytes, planes, whole, codecs)?;
        // SAFETY: every byte was written, or there was an error.
        let planes = unsafe { planes.assume_init_ref() };
        unshuffle(&planes[skipped / size..], stride, destination, size);
        Ok(true)
    }

    /// Decompresses the block `number`, which has `nbytes` bytes: the start of each of its pieces, filling `planes`.
    ///
    /// LZ4 copies the last match before the end of such a start byte by byte. If matches are long, a piece is
    /// decompressed to `whole` as a whole, which is faster.
    fn decompress(
        &self,
        number: usize,
        nbytes: usize,
        planes: &mut Uninit,
        whole: &mut Uninit,
        codecs: &mut Codecs,
    ) -> Result<(), Failure> {
        let corrupt = |text: &str| Failure::Corrupt(format!("block {number} of a Blosc frame {text}"));
        let pieces = self.pieces(nbytes);
        if !nbytes.is_multiple_of(pieces) {
            return Err(corrupt("is not a whole number of elements"));
        }
        let (length, wanted) = (nbytes / pieces, planes.len() / pieces);
        let mut at = self.size(HEADER + 4 * number).ok_or_else(|| corrupt("has no start"))?;
        for piece in planes.chunks_exact_mut(wanted) {
            let size = self.size(at);
            let stored = size.and_then(|size| self.bytes.get(at + 4..)?.get(..size));
            let stored = stored.ok_or_else(|| corrupt("exceeds the frame"))?;
            at += 4 + stored.len();
            if stored.len() == length {
                piece.write_copy_of_slice(&stored[..wanted]);
                continue;
            }
            let format = self.format.ok_or_else(|| corrupt("is a copy"))?;
            let has_long_matches = stored.len() < wanted / LONG_MATCHES;
            let (written, expected) = match whole.get_mut(..length) {
                _ if wanted == length => (format.decompress(stored, piece, codecs), length),
                Some(whole) if has_long_matches => (format.decompress(stored, whole, codecs), length),
                _ => (lz4::decompress_start(stored, piece), wanted),
            };
            match written {
                Ok(written) if written == expected => {}
                Err(Failure::OutOfMemory) => return Err(Failure::OutOfMemory),
                Ok(_) | Err(_) => {
                    return Err(corrupt(&format!("is not {length} bytes of {}", format.name())));
                }
            }
            if wanted < expected {
                piece.copy_from_slice(&whole[..wanted]);
            }
        }
        Ok(())
    }
}
