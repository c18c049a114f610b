//! Encoding a frame.
//!
//! 1. Blocks are filtered and compressed one by one, each written after the previous one.
//! 2. A frame that would be no smaller than a copy after a header becomes such a copy: the whole source is then read
//!    again, and the frame contains nothing that was read before.

use super::bitshuffle::{bitshuffle, slab_nbytes};
use super::frame::{BIT_SHUFFLED, COPIED, FORMAT_VERSION, NOT_SPLIT, SHUFFLED, VERSION};
use super::layout::{HEADER, LARGEST, Layout, SMALLEST};
use super::settings::{Filter, Settings};
use super::shuffle::shuffle;
use crate::codec::borrowed::Borrowed;
use crate::codec::failure::{Refusal, Written};
use crate::codec::{Codecs, Scratch, Uninit};

/// Input of the encoder.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Bytes that others may write to.
    Borrowed(Borrowed<'a>),
    /// Bytes that do not change.
    Own(&'a [u8]),
}

impl<'a> Source<'a> {
    fn borrowed(self) -> Borrowed<'a> {
        match self {
            Source::Borrowed(borrowed) => borrowed,
            Source::Own(bytes) => bytes.into(),
        }
    }
}

/// Returns the most bytes that `nbytes` can become.
pub fn bound(nbytes: usize) -> usize {
    nbytes.saturating_add(HEADER)
}

/// Encodes `source` to the start of `destination`, which has space for [`bound`]; returns the bytes written.
///
/// # Errors
/// [`Refusal::Unsupported`] for 2 GiB or more; [`Refusal::OutOfMemory`].
pub fn encode(
    settings: &Settings,
    source: Source<'_>,
    destination: &mut Uninit,
    codecs: &mut Codecs,
) -> Written {
    let nbytes = source.borrowed().nbytes();
    if nbytes > LARGEST {
        return Err(format!("Blosc takes less than 2 GiB at once, not {nbytes} bytes").into());
    }
    let destination = destination.get_mut(..bound(nbytes)).ok_or("Blosc needs more memory than its bound")?;
    let layout = Layout::new(settings, nbytes);
    let mut written = None;
    if settings.level > 0 && nbytes >= SMALLEST {
        // Moved out of the thread's state, so that blocks can be compressed from it with the rest of the state
        // borrowed.
        let mut scratch = std::mem::take(codecs.blosc_memory());
        let encoded = encode_blocks(settings, layout, source, destination, &mut scratch, codecs);
        *codecs.blosc_memory() = scratch;
        written = encoded?;
    }
    let copied = match written {
        Some(_) => 0,
        None => {
            source.borrowed().copy_to(0, &mut destination[HEADER..]);
            COPIED
        }
    };
    let written = written.unwrap_or(destination.len());
    let filter = match settings.filter {
        Filter::None => 0,
        Filter::Shuffle => SHUFFLED,
        Filter::BitShuffle => BIT_SHUFFLED,
    };
    let split = if layout.is_split { 0 } else { NOT_SPLIT };
    let flags = copied | filter | split | settings.compressor.format().number() << 5;
    let (header, sizes) = destination[..HEADER].split_at_mut(4);
    header.write_copy_of_slice(&[VERSION, FORMAT_VERSION, flags, settings.item_size as u8]);
    for (place, size) in sizes.as_chunks_mut::<4>().0.iter_mut().zip([nbytes, layout.block_nbytes, written]) {
        place.write_copy_of_slice(&(size as u32).to_le_bytes());
    }
    Ok(written)
}

/// Encodes all blocks after the header and the block starts; returns the length of the frame, `None` if it does not
/// fit.
fn encode_blocks(
    settings: &Settings,
    layout: Layout,
    source: Source<'_>,
    destination: &mut Uninit,
    scratch: &mut Scratch,
    codecs: &mut Codecs,
) -> Result<Option<usize>, Refusal> {
    let (nbytes, block_nbytes) = (source.borrowed().nbytes(), layout.block_nbytes);
    let tables_nbytes = settings.compressor.tables_nbytes();
    let memory = block_nbytes.saturating_add(slab_nbytes(settings.item_size)).saturating_add(tables_nbytes);
    let memory = scratch.take(memory).map_err(|_| Refusal::OutOfMemory { nbytes: memory })?;
    let (tables, memory) = memory.split_at_mut(tables_nbytes);
    let mut at = HEADER + 4 * nbytes.div_ceil(block_nbytes);
    for (number, start) in (0..nbytes).step_by(block_nbytes).enumerate() {
        let Some(place) = destination.get_mut(HEADER + 4 * number..HEADER + 4 * number + 4) else {
            return Ok(None);
        };
        place.write_copy_of_slice(&(at as u32).to_le_bytes());
        let length = block_nbytes.min(nbytes - start);
        let planes = filtered(settings, source, start, length, memory);
        let is_split = layout.is_split && length == block_nbytes;
        let piece_nbytes = if is_split { length / settings.item_size } else { length };
        for piece in planes.chunks_exact(piece_nbytes) {
            let Some((size, room)) =
                destination.get_mut(at..).and_then(|rest| rest.split_first_chunk_mut::<4>())
            else {
                return Ok(None);
            };
            if room.is_empty() {
                return Ok(None);
            }
            let most = piece.len().min(room.len());
            let how = (settings.level, layout.is_split);
            let smaller = settings.compressor.compress(how, piece, &mut room[..most], tables, codecs)?;
            let written = match smaller {
                Some(written) if written < piece.len() => written,
                _ => {
                    let Some(room) = room.get_mut(..piece.len()) else { return Ok(None) };
                    room.write_copy_of_slice(piece);
                    piece.len()
                }
            };
            size.write_copy_of_slice(&(written as u32).to_le_bytes());
            at += 4 + written;
        }
    }
    Ok(Some(at))
}

/// Returns a block of the source after its filter: in `memory`, or, without a filter, borrowed from a source that does
/// not change.
fn filtered<'a>(
    settings: &Settings,
    source: Source<'a>,
    start: usize,
    length: usize,
    memory: &'a mut Uninit,
) -> &'a [u8] {
    let (planes, slab) = memory.split_at_mut(length);
    let block = source.borrowed().part(start, length);
    let count = length / settings.item_size;
    let whole = count * settings.item_size;
    match (settings.filter, source) {
        (Filter::Shuffle, _) if settings.item_size > 1 => {
            shuffle(block.part(0, whole), &mut planes[..whole], count, settings.item_size);
            block.copy_to(whole, &mut planes[whole..]);
        }
        (Filter::BitShuffle, _) if count > 0 && count.is_multiple_of(8) => {
            bitshuffle(block.part(0, whole), &mut planes[..whole], settings.item_size, slab);
            block.copy_to(whole, &mut planes[whole..]);
        }
        (_, Source::Own(bytes)) => return &bytes[start..start + length],
        // Others may write to the source, and compressors read their input more than once.
        (_, Source::Borrowed(_)) => drop(block.copy_to(0, planes)),
    }
    // SAFETY: every byte of the block was moved there above.
    unsafe { planes.assume_init_ref() }
}
