//! The frames of a stored chunk, as their headers say. Nothing is decompressed, and nothing of it is believed that is not
//! checked: sizes come from the array's metadata, and a header that says another is left to the host's decoder.
//!
//! Left to the host too:
//! - what a checksum of the decoded bytes guards (zstd's own, gzip, zlib), since the device does not check it;
//! - zstd frames with a dictionary, without their size, or with anything behind them;
//! - frames so large that one thread block of the device would take longer for it than the host.
//!
//! Sources: RFC 8878, §3.1.1; numcodecs `LZ4`; c-blosc 1.21, `README_CHUNK_FORMAT.rst`.

use super::Format;
use crate::kernel::structs::Shuffle;
use std::ops::Range;
use zarrow_array::allocation::Grow;

/// The most bytes that a frame decodes to, for the device to decompress it.
pub const LARGEST_FRAME: usize = 2 << 20;

/// One frame: its range of the stored bytes, and the range of the elements' bytes that it decodes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its bytes, of the stored ones.
    pub source: Range<usize>,
    /// Its bytes when decompressed, of the elements'.
    pub destination: Range<usize>,
    /// Whether it is stored as it is.
    pub is_copy: bool,
}

/// What the headers of a chunk say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// How all frames but the copies are compressed.
    pub format: Format,
    /// The frames, which fill the chunk.
    pub frames: Vec<Frame>,
    /// What was done to the bytes before they were compressed.
    pub shuffle: Shuffle,
    /// Bytes of the shuffle's element.
    pub element_nbytes: u32,
    /// Bytes that are shuffled together.
    pub block_nbytes: u64,
}

impl Frames {
    /// How the frames of a chunk may be compressed that decodes to so many bytes, as its compressor tells; none where the host
    /// is to decode it whatever its headers say.
    #[must_use]
    pub fn formats(compressor: &str, decoded_nbytes: usize) -> &'static [Format] {
        match compressor {
            "zstd" if decoded_nbytes <= LARGEST_FRAME => &[Format::Zstd],
            "lz4" if decoded_nbytes <= LARGEST_FRAME => &[Format::Lz4],
            "blosc" => &[Format::Lz4, Format::Zstd],
            _ => &[],
        }
    }

    /// The frames of `stored`, which `compressor` made of `decoded_nbytes` bytes; `None` where the host is to decode it.
    #[must_use]
    pub fn of(compressor: &str, stored: &[u8], decoded_nbytes: usize) -> Option<Frames> {
        match compressor {
            "zstd" => is_zstd_frame(stored, decoded_nbytes)
                .then(|| Frames::one(Format::Zstd, 0..stored.len(), decoded_nbytes)),
            "lz4" => {
                let (size, _) = stored.split_first_chunk::<4>()?;
                (u32::from_le_bytes(*size) as usize == decoded_nbytes && decoded_nbytes <= LARGEST_FRAME)
                    .then(|| Frames::one(Format::Lz4, 4..stored.len(), decoded_nbytes))
            }
            "blosc" => blosc(stored, decoded_nbytes),
            _ => None,
        }
    }

    fn one(format: Format, source: Range<usize>, decoded_nbytes: usize) -> Frames {
        Frames {
            format,
            frames: vec![Frame { source, destination: 0..decoded_nbytes, is_copy: false }],
            shuffle: Shuffle::None,
            element_nbytes: 1,
            block_nbytes: 0,
        }
    }
}

/// Whether `stored` is one zstd frame of so many decoded bytes, and nothing else, which the device can decompress.
fn is_zstd_frame(stored: &[u8], decoded_nbytes: usize) -> bool {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    if decoded_nbytes > LARGEST_FRAME || stored.get(..4) != Some(&MAGIC[..]) {
        return false;
    }
    let Some(&descriptor) = stored.get(4) else { return false };
    let (has_one_segment, has_checksum, dictionary) =
        (descriptor & 0x20 != 0, descriptor & 4 != 0, descriptor & 3);
    if descriptor & 8 != 0 || has_checksum || dictionary != 0 {
        return false;
    }
    let mut at = if has_one_segment { 5 } else { 6 };
    let size_nbytes = match descriptor >> 6 {
        0 if has_one_segment => 1,
        0 => return false,
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let Some(field) = stored.get(at..at + size_nbytes) else { return false };
    let size = field.iter().rev().fold(0u64, |size, byte| size << 8 | u64::from(*byte));
    let size = if size_nbytes == 2 { size + 256 } else { size };
    if size != decoded_nbytes as u64 {
        return false;
    }
    at += size_nbytes;
    // Each block has three bytes that say whether it is the last one, of which kind, and how long.
    loop {
        let Some(header) = stored.get(at..at + 3) else { return false };
        let header = u32::from(header[0]) | u32::from(header[1]) << 8 | u32::from(header[2]) << 16;
        let (is_last, kind, size) = (header & 1 != 0, header >> 1 & 3, (header >> 3) as usize);
        // A repeated byte is one byte, however long; the fourth kind is reserved.
        let length = match kind {
            0 | 2 => size,
            1 => 1,
            _ => return false,
        };
        at += 3 + length;
        if is_last {
            return at == stored.len();
        }
    }
}

/// The frames of a chunk of Blosc 1.
fn blosc(stored: &[u8], decoded_nbytes: usize) -> Option<Frames> {
    const HEADER: usize = 16;
    /// Bytes of the start of a block, and of the length of a piece.
    const WORD: usize = 4;
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
    if !is_sound || block_nbytes > LARGEST_FRAME {
        return None;
    }
    if flags & 2 != 0 {
        // The whole chunk is stored as it is, and not shuffled.
        let copy = Frame { source: HEADER..length, destination: 0..nbytes, is_copy: true };
        let frames = Frames { frames: vec![copy], ..Frames::one(Format::Lz4, 0..0, nbytes) };
        return (length - HEADER == nbytes).then_some(frames);
    }
    let format = match flags >> 5 {
        1 => Format::Lz4,
        4 => Format::Zstd,
        _ => return None,
    };
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
    for number in 0..blocks {
        let start = number * block_nbytes;
        let own_nbytes = block_nbytes.min(nbytes - start);
        // A whole block whose planes are large enough is split, where its flag does not say otherwise.
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
            if from < HEADER + blocks * WORD || to > length || to == from {
                return None;
            }
            let destination = start + piece * piece_nbytes..start + (piece + 1) * piece_nbytes;
            let is_copy = to - from == piece_nbytes;
            // The frames of zstd are looked at as any other.
            if format == Format::Zstd && !is_copy && !is_zstd_frame(&stored[from..to], piece_nbytes) {
                return None;
            }
            // Without memory for the list the host decodes, and says what is missing.
            frames.try_push(Frame { source: from..to, destination, is_copy }).ok()?;
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
    use super::*;

    fn frame(header: &[u8], blocks: &[(bool, u32, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd];
        bytes.extend_from_slice(header);
        for (is_last, kind, content) in blocks {
            let size = if *kind == 1 { 9 } else { content.len() as u32 };
            let word = u32::from(*is_last) | kind << 1 | size << 3;
            bytes.extend_from_slice(&word.to_le_bytes()[..3]);
            bytes.extend_from_slice(content);
        }
        bytes
    }

    #[test]
    fn zstd_frames_are_taken_where_they_say_all_of_it() {
        let whole = [(false, 0, &b"abc"[..]), (true, 1, &b"d"[..])];
        let one_segment = frame(&[0x20, 12], &whole);
        assert!(is_zstd_frame(&one_segment, 12));
        assert!(!is_zstd_frame(&one_segment, 13), "another size");
        assert!(is_zstd_frame(&frame(&[0x40, 0x58, 44, 1], &whole), 300 + 256), "two bytes count from 256");
        assert!(is_zstd_frame(&frame(&[0x80, 0x58, 12, 0, 0, 0], &whole), 12));
        for header in [&[0x24, 12][..], &[0x21, 0, 12], &[0x28, 12], &[0x00, 0x58]] {
            assert!(!is_zstd_frame(&frame(header, &whole), 12), "{header:x?}");
        }
        assert!(!is_zstd_frame(&[&one_segment[..], &one_segment].concat(), 12), "two frames");
        for length in 0..one_segment.len() {
            assert!(!is_zstd_frame(&one_segment[..length], 12));
        }
        assert!(!is_zstd_frame(&frame(&[0x20, 12], &[(true, 3, b"")]), 12), "a reserved block");
    }

    #[test]
    fn lz4_says_its_size_before_its_block() {
        let stored = [&12u32.to_le_bytes()[..], b"block"].concat();
        let frames = Frames::of("lz4", &stored, 12).unwrap();
        assert_eq!(frames.frames, [Frame { source: 4..9, destination: 0..12, is_copy: false }]);
        assert!(Frames::of("lz4", &stored, 13).is_none() && Frames::of("lz4", b"ab", 0).is_none());
        assert!(Frames::of("gzip", &stored, 12).is_none());
    }

    /// A chunk of two blocks of 512 bytes and one of 10, whose pieces are copies or the given ones.
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
        let frames = Frames::of("blosc", &chunk, 1034).unwrap();
        assert_eq!((frames.shuffle, frames.element_nbytes, frames.block_nbytes), (Shuffle::Bytes, 4, 512));
        let destinations: Vec<_> = frames.frames.iter().map(|frame| frame.destination.clone()).collect();
        assert_eq!(destinations, [0..512, 512..1024, 1024..1034]);
        assert_eq!(frames.frames.iter().map(|frame| frame.is_copy).collect::<Vec<_>>(), [false, false, true]);
        assert!(Frames::of("blosc", &chunk, 1035).is_none(), "another size");
        // Anything that is cut off, or points outside, is the host's to refuse.
        for length in 0..chunk.len() {
            assert!(Frames::of("blosc", &chunk[..length], 1034).is_none());
        }
        for at in [2, 12, 16, 20, 24, 28, 30, 72] {
            let mut changed = chunk.clone();
            changed[at] ^= 0xff;
            if let Some(frames) = Frames::of("blosc", &changed, 1034) {
                assert!(frames.frames.iter().all(|frame| frame.source.end <= changed.len()), "{at}");
            }
        }
    }

    #[test]
    fn planes_of_whole_blocks_are_frames_of_their_own() {
        let plane = &[1u8; 30][..];
        let mut chunk = blosc_chunk(1 << 5 | 1, &[plane; 8], 2);
        // Two whole blocks alone.
        chunk[4..8].copy_from_slice(&1024u32.to_le_bytes());
        let frames = Frames::of("blosc", &chunk, 1024).unwrap();
        assert_eq!(frames.frames.len(), 8);
        assert_eq!(frames.frames[5].destination, 640..768);
    }
}
