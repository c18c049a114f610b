//! One LZ4 block after its decompressed size in four bytes.
//!
//! Source: numcodecs `LZ4`.

use super::Frame;
use std::ops::Range;

/// Returns the frame, if `stored` is a single block of the expected size.
pub(super) fn frame(stored: &[u8], destination: Range<usize>) -> Option<Frame> {
    let (size, block) = stored.split_first_chunk::<4>()?;
    let is_whole = u32::from_le_bytes(*size) as usize == destination.len() && !block.is_empty();
    is_whole.then(|| Frame::new(size.len()..stored.len(), destination))
}

#[cfg(test)]
mod tests {
    use super::super::{Frame, Frames, LARGEST_FRAME};

    #[test]
    fn lz4_blocks_follow_their_size() {
        let stored = [&12u32.to_le_bytes()[..], b"block"].concat();
        let of = |stored: &[u8], nbytes| Frames::parse("lz4", stored, nbytes, LARGEST_FRAME);
        assert_eq!(of(&stored, 12).unwrap().frames, [Frame::new(4..9, 0..12)]);
        assert!(of(&stored, 13).is_none() && of(b"ab", 0).is_none() && of(&[0; 4], 0).is_none());
        assert!(Frames::parse("lz4", &stored, 12, 11).is_none(), "larger than the limit");
        assert!(Frames::parse("lzma", &stored, 12, LARGEST_FRAME).is_none());
    }
}
