//! Headers of frames for decompression on a device: any bytes as a stored chunk of any compressor and size. Accepted
//! frames fill the chunk, each byte once, and come from its stored bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrow_cuda::decompress::frames::{Frames, LARGEST_FRAME};

const COMPRESSORS: [&str; 6] = ["zstd", "lz4", "blosc", "gzip", "zlib", "bz2"];

fuzz_target!(|data: &[u8]| {
    let Some(([number, size @ ..], stored)) = data.split_first_chunk::<5>() else { return };
    let compressor = COMPRESSORS[usize::from(*number) % COMPRESSORS.len()];
    let decoded_nbytes = u32::from_le_bytes(*size) as usize;
    let largest = if *number < 128 { LARGEST_FRAME } else { usize::MAX };
    let Some(found) = Frames::parse(compressor, stored, decoded_nbytes, largest) else { return };
    assert_ne!(compressor, "bz2");
    let mut filled = 0;
    for frame in &found.frames {
        assert!(!frame.source.is_empty() && frame.source.end <= stored.len(), "{frame:?}");
        assert_eq!(frame.destination.start, filled);
        assert!(frame.destination.end > filled || decoded_nbytes == 0, "{frame:?}");
        filled = frame.destination.end;
        if frame.is_copy {
            assert_eq!(frame.source.len(), frame.destination.len());
            assert!(frame.checksum.is_none() && frame.patch.is_none());
        } else {
            assert!(frame.destination.len() <= largest);
            assert!(frame.destination.len() as u64 <= found.format.largest_frame());
        }
        // A patched byte differs from the stored one, inside its frame, which is the whole chunk.
        if let Some((place, value)) = frame.patch {
            assert!(frame.source.contains(&place) && stored[place] != value && found.frames.len() == 1);
            assert!(frame.checksum.is_some());
        }
    }
    assert_eq!(filled, decoded_nbytes);
    assert!(found.frames.iter().map(|frame| frame.source.len()).sum::<usize>() <= stored.len());
    assert!(found.element_nbytes > 0 && found.block_nbytes <= decoded_nbytes as u64);
});
