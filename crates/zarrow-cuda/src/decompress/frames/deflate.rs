//! DEFLATE streams in gzip and zlib containers. The containers are parsed here: the device only gets the stream.
//!
//! Only the stream itself knows its end, so the container is assumed to end with the stored bytes. If it ends
//! earlier (several members, or padding), the size or the checksum does not match, and the host decodes. Bytes
//! between the end of a stream and a matching checksum are ignored.
//!
//! Sources: RFC 1950; RFC 1952. Like the host's decoder, this does not verify the checksum of a gzip header.

use super::Frame;
use crate::decompress::checksums::Checksum;
use crate::kernel::structs::ChecksumKind;
use std::ops::Range;

/// Method number of DEFLATE, in both containers.
const DEFLATE: u8 = 8;

/// Flags of a gzip header.
mod gzip_flag {
    pub const HEADER_CHECKSUM: u8 = 1 << 1;
    pub const EXTRA: u8 = 1 << 2;
    pub const NAME: u8 = 1 << 3;
    pub const COMMENT: u8 = 1 << 4;
    pub const RESERVED: u8 = 0b1110_0000;
}

/// Returns the stream, if `stored` is a single gzip member.
pub(super) fn gzip(stored: &[u8], destination: Range<usize>) -> Option<Frame> {
    use gzip_flag::{COMMENT, EXTRA, HEADER_CHECKSUM, NAME, RESERVED};
    let (header, mut rest) = stored.split_first_chunk::<10>()?;
    let [0x1f, 0x8b, DEFLATE, flags, ..] = *header else { return None };
    if flags & RESERVED != 0 {
        return None;
    }
    if flags & EXTRA != 0 {
        let (size, behind) = rest.split_first_chunk::<2>()?;
        rest = behind.get(usize::from(u16::from_le_bytes(*size))..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & HEADER_CHECKSUM != 0 {
        rest = rest.get(2..)?;
    }
    let start = stored.len() - rest.len();
    let (rest, size) = rest.split_last_chunk::<4>()?;
    let (stream, checksum) = rest.split_last_chunk::<4>()?;
    // The size is stored modulo 2^32.
    let is_whole = u32::from_le_bytes(*size) == destination.len() as u32 && !stream.is_empty();
    is_whole.then(|| Frame {
        checksum: Some(Checksum { kind: ChecksumKind::Crc32, expected: u32::from_le_bytes(*checksum) }),
        ..Frame::new(start..start + stream.len(), destination)
    })
}

/// Returns the stream of the zlib container at `source` of `stored`.
pub(super) fn zlib(stored: &[u8], source: Range<usize>, destination: Range<usize>) -> Option<Frame> {
    const DICTIONARY: u8 = 1 << 5;
    let (header, rest) = stored.get(source.clone())?.split_first_chunk::<2>()?;
    let [method, flags] = *header;
    // The window is at most 32 KiB, and the header a multiple of 31.
    let is_sound = method & 0xf == DEFLATE
        && method >> 4 <= 7
        && flags & DICTIONARY == 0
        && u16::from_be_bytes(*header).is_multiple_of(31);
    let (stream, checksum) = rest.split_last_chunk::<4>()?;
    let start = source.start + header.len();
    (is_sound && !stream.is_empty()).then(|| Frame {
        checksum: Some(Checksum { kind: ChecksumKind::Adler32, expected: u32::from_be_bytes(*checksum) }),
        ..Frame::new(start..start + stream.len(), destination)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member with these flags and fields, a stream of four bytes, and `nbytes` decoded bytes.
    fn member(flags: u8, fields: &[u8], nbytes: u32) -> Vec<u8> {
        let header = [0x1f, 0x8b, DEFLATE, flags, 0, 0, 0, 0, 0, 255];
        [&header[..], fields, b"flat", &[1, 2, 3, 4], &nbytes.to_le_bytes()].concat()
    }

    #[test]
    fn gzip_headers_may_have_fields() {
        let expected = Checksum { kind: ChecksumKind::Crc32, expected: 0x0403_0201 };
        for (flags, fields) in [
            (0, &b""[..]),
            (1, b""),
            (gzip_flag::EXTRA, b"\x03\0abc"),
            (gzip_flag::NAME, b"name\0"),
            (gzip_flag::COMMENT, b"\0"),
            (gzip_flag::HEADER_CHECKSUM, b"xy"),
            (
                gzip_flag::EXTRA | gzip_flag::NAME | gzip_flag::COMMENT | gzip_flag::HEADER_CHECKSUM,
                b"\0\0n\0c\0xy",
            ),
        ] {
            let stored = member(flags, fields, 700);
            let frame = gzip(&stored, 0..700).unwrap();
            assert_eq!((&stored[frame.source.clone()], frame.checksum), (&b"flat"[..], Some(expected)));
            assert!(gzip(&stored, 0..701).is_none(), "another size");
            // Truncated members are incomplete, or end with another size.
            for length in 0..stored.len() {
                assert!(gzip(&stored[..length], 0..700).is_none(), "{flags} {length}");
            }
        }
    }

    #[test]
    fn unsupported_gzip_headers_are_left_to_the_host() {
        let stored = member(0, b"", 700);
        for (at, value) in [(0, 0x1e), (1, 0), (2, 7), (3, 0x20), (3, 0x40), (3, 0x80)] {
            let mut other = stored.clone();
            other[at] = value;
            assert!(gzip(&other, 0..700).is_none(), "{at}");
        }
        let endless = [&member(gzip_flag::NAME, b"", 0)[..10], &[b'n'; 30]].concat();
        assert!(gzip(&endless, 0..0x6e6e_6e6e).is_none(), "a name that does not end");
        assert!(
            gzip(&member(gzip_flag::EXTRA, b"\xff\xff", 700), 0..700).is_none(),
            "longer than the member"
        );
    }

    #[test]
    fn zlib_headers_are_checked() {
        let stored = [&b"before"[..], &[0x78, 0x9c], b"flat", &[1, 2, 3, 4]].concat();
        let frame = zlib(&stored, 6..stored.len(), 5..9).unwrap();
        assert_eq!((&stored[frame.source.clone()], frame.destination), (&b"flat"[..], 5..9));
        assert_eq!(frame.checksum, Some(Checksum { kind: ChecksumKind::Adler32, expected: 0x0102_0304 }));
        let is_taken = |header: [u8; 2]| zlib(&[&header[..], b"flat1234"].concat(), 0..10, 0..4).is_some();
        assert!(is_taken([0x78, 0x01]) && is_taken([0x18, 0x19]));
        for header in [[0x78, 0x9d], [0x79, 0x94], [0x88, 0x1c], [0x78, 0xbb]] {
            assert!(!is_taken(header), "{header:x?}");
        }
        for length in 0..7 {
            assert!(zlib(&stored, 6..6 + length, 0..4).is_none());
        }
        assert!(zlib(&stored, 6..stored.len() + 1, 0..4).is_none());
    }
}
