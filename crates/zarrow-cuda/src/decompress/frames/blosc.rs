//! Blocks of a Blosc 1 chunk, and the pieces of a block.
//!
//! Pieces of LZ4, zstd and zlib are frames for the device, with any shuffle. Uncompressed pieces are copied. The
//! host decodes:
//! - BloscLZ, and snappy, which it refuses;
//! - pieces with so much overlap that their sum exceeds the chunk;
//! - zstd with a checksum, which no writer creates there: the byte to patch might also belong to another piece.
//!
//! Source: c-blosc 1.21, `README_CHUNK_FORMAT.rst`.

use super::{Frame, Frames, deflate, zstd};
use crate::decompress::format::Format;
use crate::kernel::structs::Shuffle;
use zarrow_array::allocation::Grow;

const HEADER: usize = 16;
/// Bytes of a block's start offset, and of a piece's length.
const WORD: usize = 4;

/// Returns the frames of `stored`, if each decodes to at most `largest` bytes.
pub(super) fn frames(stored: &[u8], decoded_nbytes: usize, largest: usize) -> Option<Frames> {
    let header = stored.first_chunk::<HEADER>()?;
    let [version, format_version, flags, item_size, sizes @ ..] = *header;
    let word =
        |at: usize| sizes.get(at..)?.first_chunk::<WORD>().map(|word| u32::from_le_bytes(*word) as usize);
    let (nbytes, block_nbytes, length) = (word(0)?, word(4)?, word(8)?);
    let item_size = usize::from(item_size);
    let is_sound = version == 2
        && format_version == 1
        && flags & 0b1000 == 0
        && nbytes == decoded_nbytes
        && item_size > 0
        && (1..=nbytes).contains(&block_nbytes)
        && (HEADER..=stored.len()).contains(&length);
    if !is_sound {
        return None;
    }
    if flags & 2 != 0 {
        // The whole chunk is uncompressed and not shuffled.
        let copy = Frame::copy(HEADER..length, 0..nbytes);
        return (length - HEADER == nbytes).then(|| Frames::one(Format::Lz4, copy));
    }
    let format = match flags >> 5 {
        1 => Format::Lz4,
        // In a zlib container.
        3 => Format::Deflate,
        4 => Format::Zstd,
        _ => return None,
    };
    if block_nbytes > largest || block_nbytes as u64 > format.largest_frame() {
        return None;
    }
    let stored = &stored[..length];
    let size_at = |at: usize| {
        let word = stored.get(at..)?.first_chunk::<WORD>()?;
        usize::try_from(i32::from_le_bytes(*word)).ok()
    };
    let shuffle = match flags {
        flags if flags & 1 != 0 && item_size > 1 => Shuffle::Bytes,
        flags if flags & 4 != 0 => Shuffle::Bits,
        _ => Shuffle::None,
    };
    let blocks = nbytes.div_ceil(block_nbytes);
    if blocks > (length - HEADER) / WORD {
        return None;
    }
    let mut frames = Vec::new();
    let mut pieces_nbytes = 0;
    for number in 0..blocks {
        let start = number * block_nbytes;
        let own_nbytes = block_nbytes.min(nbytes - start);
        // A whole block with large enough planes is split, unless its flag says otherwise.
        let is_split =
            flags & 16 == 0 && own_nbytes == block_nbytes && item_size <= 16 && own_nbytes / item_size >= 128;
        let pieces = if is_split { item_size } else { 1 };
        if own_nbytes % pieces != 0 {
            return None;
        }
        let piece_nbytes = own_nbytes / pieces;
        let mut at = size_at(HEADER + number * WORD)?;
        for piece in 0..pieces {
            let from = at.checked_add(WORD)?;
            let to = from.checked_add(size_at(at)?)?;
            pieces_nbytes += to - from;
            if from < HEADER + blocks * WORD || to > length || to == from || pieces_nbytes > length {
                return None;
            }
            let destination = start + piece * piece_nbytes..start + (piece + 1) * piece_nbytes;
            let frame = match format {
                _ if to - from == piece_nbytes => Frame::copy(from..to, destination),
                Format::Zstd => zstd::frame(stored, from..to, destination)?,
                Format::Deflate => deflate::zlib(stored, from..to, destination)?,
                _ => Frame::new(from..to, destination),
            };
            if frame.patch.is_some() {
                return None;
            }
            // If the list cannot be allocated, the host decodes, and reports the error.
            frames.try_push(frame).ok()?;
            at = to;
        }
    }
    Some(Frames {
        format,
        frames,
        shuffle,
        element_nbytes: item_size as u32,
        block_nbytes: block_nbytes as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::super::LARGEST_FRAME;
    use super::*;

    fn of(chunk: &[u8], nbytes: usize) -> Option<Frames> {
        frames(chunk, nbytes, LARGEST_FRAME)
    }

    /// A chunk of two blocks of 512 bytes and one of 10, with the given pieces or copies.
    fn blosc_chunk(flags: u8, pieces: &[&[u8]], starts: usize) -> Vec<u8> {
        let mut body = Vec::new();
        let mut offsets = Vec::new();
        let each = pieces.len() / starts;
        for block in pieces.chunks(each.max(1)) {
            offsets.push((16 + starts * 4 + body.len()) as u32);
            for piece in block {
                body.extend_from_slice(&(piece.len() as u32).to_le_bytes());
                body.extend_from_slice(piece);
            }
        }
        let length = (16 + offsets.len() * 4 + body.len()) as u32;
        let mut chunk = vec![2, 1, flags, 4];
        for word in [1034u32, 512, length] {
            chunk.extend_from_slice(&word.to_le_bytes());
        }
        offsets.iter().for_each(|offset| chunk.extend_from_slice(&offset.to_le_bytes()));
        chunk.extend_from_slice(&body);
        chunk
    }

    #[test]
    fn blosc_chunks_are_one_frame_for_each_block_or_plane() {
        let (piece, last) = ([7u8; 40], [9u8; 10]);
        let chunk = blosc_chunk(1 << 5 | 16 | 1, &[&piece, &piece, &last], 3);
        let frames = of(&chunk, 1034).unwrap();
        assert_eq!((frames.shuffle, frames.element_nbytes, frames.block_nbytes), (Shuffle::Bytes, 4, 512));
        let destinations: Vec<_> = frames.frames.iter().map(|frame| frame.destination.clone()).collect();
        assert_eq!(destinations, [0..512, 512..1024, 1024..1034]);
        assert_eq!(frames.frames.iter().map(|frame| frame.is_copy).collect::<Vec<_>>(), [false, false, true]);
        assert!(of(&chunk, 1035).is_none(), "another size");
        // Truncated chunks and offsets out of range are refused by the host.
        for length in 0..chunk.len() {
            assert!(of(&chunk[..length], 1034).is_none());
        }
        for at in [2, 12, 16, 20, 24, 28, 30, 72] {
            let mut changed = chunk.clone();
            changed[at] ^= 0xff;
            if let Some(frames) = of(&changed, 1034) {
                assert!(frames.frames.iter().all(|frame| frame.source.end <= changed.len()), "{at}");
            }
        }
    }

    #[test]
    fn planes_of_whole_blocks_are_frames_of_their_own() {
        let plane = &[1u8; 30][..];
        let mut chunk = blosc_chunk(1 << 5 | 1, &[plane; 8], 2);
        // Only the two whole blocks.
        chunk[4..8].copy_from_slice(&1024u32.to_le_bytes());
        let frames = of(&chunk, 1024).unwrap();
        assert_eq!(frames.frames.len(), 8);
        assert_eq!(frames.frames[5].destination, 640..768);
    }
}
