//! A Zstandard frame: its header, its blocks, and the checksum after them.
//!
//! The device gets the frame without its checksum: without the last four bytes, and with the checksum bit of the
//! header cleared. So it is a valid frame for every decompressor, however that treats checksums.
//!
//! Source: RFC 8878, section 3.1.1.

use super::Frame;
use crate::decompress::checksums::Checksum;
use crate::kernel::structs::ChecksumKind;
use std::ops::Range;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Offset of the header's descriptor, and its flags.
const DESCRIPTOR: usize = 4;
const DICTIONARY: u8 = 0b11;
const CHECKSUM: u8 = 1 << 2;
const RESERVED: u8 = 1 << 3;
const ONE_SEGMENT: u8 = 1 << 5;
const CHECKSUM_NBYTES: usize = 4;
/// Maximum size of a block, compressed or not.
const LARGEST_BLOCK: usize = 128 << 10;

/// Returns the frame at `source` of `stored`, if it is a single frame of the expected decoded size that the device
/// can decompress.
pub(super) fn frame(stored: &[u8], source: Range<usize>, destination: Range<usize>) -> Option<Frame> {
    let bytes = stored.get(source.clone())?;
    if bytes.get(..DESCRIPTOR) != Some(&MAGIC[..]) {
        return None;
    }
    let descriptor = *bytes.get(DESCRIPTOR)?;
    if descriptor & (RESERVED | DICTIONARY) != 0 {
        return None;
    }
    // The descriptor is followed by a byte for the window, unless the window is the whole frame.
    let has_one_segment = descriptor & ONE_SEGMENT != 0;
    let at = if has_one_segment { DESCRIPTOR + 1 } else { DESCRIPTOR + 2 };
    let size_nbytes = match descriptor >> 6 {
        0 if has_one_segment => 1,
        0 => return None,
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let field = bytes.get(at..at + size_nbytes)?;
    let size = field.iter().rev().fold(0u64, |size, byte| size << 8 | u64::from(*byte));
    let size = if size_nbytes == 2 { size + 256 } else { size };
    if size != destination.len() as u64 {
        return None;
    }
    let end = end_of_blocks(bytes, at + size_nbytes)?;
    let frame = Frame::new(source.start..source.start + end, destination);
    if descriptor & CHECKSUM == 0 {
        return (end == bytes.len()).then_some(frame);
    }
    let (checksum, rest) = bytes.get(end..)?.split_first_chunk::<CHECKSUM_NBYTES>()?;
    rest.is_empty().then_some(Frame {
        patch: Some((source.start + DESCRIPTOR, descriptor & !CHECKSUM)),
        checksum: Some(Checksum { kind: ChecksumKind::Xxh64, expected: u32::from_le_bytes(*checksum) }),
        ..frame
    })
}

/// Returns the end of the blocks that begin at `at`.
fn end_of_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    // Each block has a header of three bytes: whether it is the last one, its type, and its length.
    loop {
        let header = bytes.get(at..at + 3)?;
        let header = u32::from(header[0]) | u32::from(header[1]) << 8 | u32::from(header[2]) << 16;
        let (is_last, kind, size) = (header & 1 != 0, header >> 1 & 3, (header >> 3) as usize);
        // A repeated byte is stored as one byte; the fourth type is reserved.
        let length = match kind {
            0 | 2 => size,
            1 => 1,
            _ => return None,
        };
        at += 3 + length;
        if size > LARGEST_BLOCK || at > bytes.len() {
            return None;
        }
        if is_last {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(header: &[u8], blocks: &[(bool, u32, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(header);
        for (is_last, kind, content) in blocks {
            let size = if *kind == 1 { 9 } else { content.len() as u32 };
            let word = u32::from(*is_last) | kind << 1 | size << 3;
            bytes.extend_from_slice(&word.to_le_bytes()[..3]);
            bytes.extend_from_slice(content);
        }
        bytes
    }

    fn is_taken(bytes: &[u8], nbytes: usize) -> bool {
        frame(bytes, 0..bytes.len(), 0..nbytes).is_some()
    }

    const WHOLE: [(bool, u32, &[u8]); 2] = [(false, 0, b"abc"), (true, 1, b"d")];

    #[test]
    fn only_complete_frames_with_a_size_are_taken() {
        let one_segment = made(&[0x20, 12], &WHOLE);
        assert!(is_taken(&one_segment, 12));
        assert!(!is_taken(&one_segment, 13), "another size");
        assert!(is_taken(&made(&[0x40, 0x58, 44, 1], &WHOLE), 300 + 256), "two bytes count from 256");
        assert!(is_taken(&made(&[0x80, 0x58, 12, 0, 0, 0], &WHOLE), 12));
        for header in [&[0x21, 0, 12][..], &[0x28, 12], &[0x00, 0x58]] {
            assert!(!is_taken(&made(header, &WHOLE), 12), "{header:x?}");
        }
        assert!(!is_taken(&[&one_segment[..], &one_segment].concat(), 12), "two frames");
        for length in 0..one_segment.len() {
            assert!(!is_taken(&one_segment[..length], 12));
        }
        assert!(!is_taken(&made(&[0x20, 12], &[(true, 3, b"")]), 12), "a reserved block");
        let large = vec![0; LARGEST_BLOCK + 1];
        assert!(is_taken(&made(&[0x20, 12], &[(true, 0, &large[1..])]), 12));
        assert!(!is_taken(&made(&[0x20, 12], &[(true, 0, &large)]), 12), "a block above the maximum size");
    }

    #[test]
    fn the_device_gets_a_frame_without_its_checksum() {
        let plain = made(&[0x20, 12], &WHOLE);
        let checked = [b"before", &made(&[0x24, 12], &WHOLE)[..], &[1, 2, 3, 4], b"behind"].concat();
        let source = 6..checked.len() - 6;
        let found = frame(&checked, source.clone(), 100..112).unwrap();
        let expected = Checksum { kind: ChecksumKind::Xxh64, expected: 0x0403_0201 };
        assert_eq!((found.checksum, &found.destination), (Some(expected), &(100..112)));
        let mut seen = checked.clone();
        let (at, value) = found.patch.unwrap();
        seen[at] = value;
        assert_eq!(seen[found.source], plain);
        for end in 6..source.end {
            assert!(frame(&checked, 6..end, 0..12).is_none(), "cut off");
        }
        assert!(frame(&checked, 6..source.end + 1, 0..12).is_none(), "a byte behind the checksum");
    }
}
