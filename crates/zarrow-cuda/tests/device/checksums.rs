//! Verification of checksums by the device: modified stored chunks, compared to the host's result.

use crate::arrays::{bytes, expected, same};
use crate::decompressed::codec;
use crate::decompressor::install;
use crate::software::device;
use serde_json::json;
use std::path::PathBuf;
use zarrow::metadata::CodecMetadata;
use zarrow::{Array, ArrayBuilder, Existing, Number, Selection};
use zarrow_cuda::decompress::Done;
use zarrow_cuda::{Error, Route, explain, read};

/// Codecs with a checksum per frame, and the checksum's offset from the end.
fn guarded() -> [(CodecMetadata, usize); 3] {
    [
        (codec("zstd", json!({ "level": 1, "checksum": true })), 4),
        (codec("gzip", json!({ "level": 1 })), 8),
        (codec("numcodecs.zlib", json!({ "level": 1 })), 4),
    ]
}

/// An array in a folder, with chunks of 16 × 16 numbers.
struct Stored {
    _folder: tempfile::TempDir,
    array: Array,
    chunk: PathBuf,
}

impl Stored {
    /// `random` numbers are incompressible: their bytes are stored uncompressed.
    fn new(compressor: CodecMetadata, random: bool) -> Stored {
        install();
        let folder = tempfile::tempdir().unwrap();
        let mut group = zarrow::Group::create(folder.path()).unwrap();
        let metadata = ArrayBuilder::new([32, 32], Number::UInt32)
            .chunk_shape([16, 16])
            .compressors([compressor])
            .build()
            .unwrap();
        let array = group.create_array("x", metadata, Existing::Refuse).unwrap();
        let mut state = 1u32;
        let mut number = |place: u32| {
            state = state.wrapping_mul(2_654_435_761).rotate_left(13) ^ place;
            if random { state } else { place / 5 }
        };
        let values: Vec<u32> = (0..32 * 32).map(&mut number).collect();
        let values = zarrow::Values::contiguous(bytes(&values), Number::UInt32.into(), &[32, 32]).unwrap();
        array.write(Selection::all(&[32, 32]), &values).unwrap();
        let chunk = folder.path().join("x/c/1/0");
        Stored { _folder: folder, array, chunk }
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.chunk).unwrap()
    }

    /// Reads by the device with the chunk replaced by `bytes`, and checks that the host gives the same elements.
    /// Returns the counts, or `None` if the host fails.
    fn read(&self, bytes: &[u8]) -> Option<Done> {
        std::fs::write(&self.chunk, bytes).unwrap();
        let all = Selection::all(self.array.shape());
        let read = read(&self.array.request(&all).unwrap(), device(0), None, Route::Device);
        match (read, self.array.read(&all)) {
            (Ok((tensor, done)), Ok(host)) => {
                let host = host.into_tensor().unwrap().into_shared().unwrap();
                assert!(same(&tensor.to_host().unwrap(), &host));
                Some(done)
            }
            (Err(Error::Zarr(device)), Err(host)) => {
                assert_eq!(device.to_string(), host.to_string());
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns whether the device decompresses the replaced chunk, and the three others, without a failure.
    fn is_whole(&self, bytes: &[u8]) -> bool {
        self.read(bytes).is_some_and(|done| (done.on_device, done.on_host, done.failed_frames) == (4, 0, 0))
    }
}

/// Without verification the device would return elements where the host returns an error.
#[test]
fn every_bit_of_a_checksum_is_verified() {
    for (compressor, from_end) in guarded() {
        let stored = Stored::new(compressor, false);
        let whole = stored.bytes();
        assert!(stored.is_whole(&whole));
        for bit in 0..32 {
            let mut changed = whole.clone();
            changed[whole.len() - from_end + bit / 8] ^= 1 << (bit % 8);
            assert!(stored.read(&changed).is_none(), "{bit}");
        }
    }
}

#[test]
fn changed_bytes_are_detected() {
    for (compressor, from_end) in guarded() {
        let stored = Stored::new(compressor, true);
        let whole = stored.bytes();
        assert!(whole.len() > 1024, "the numbers are stored uncompressed");
        for place in (whole.len() - 600..whole.len() - from_end).step_by(37) {
            let mut changed = whole.clone();
            changed[place] ^= 0x10;
            assert!(stored.read(&changed).is_none(), "{place}");
        }
    }
}

#[test]
fn every_changed_bit_of_a_chunk_gives_the_hosts_result() {
    for (compressor, _) in guarded() {
        let stored = Stored::new(compressor, false);
        let whole = stored.bytes();
        for bit in (0..whole.len() * 8).step_by(3) {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            stored.read(&changed);
        }
        for length in (0..whole.len()).step_by(7) {
            assert!(stored.read(&whole[..length]).is_none(), "cut off at {length}");
        }
    }
}

/// A gzip member with `content`.
fn member(content: &[u8]) -> Vec<u8> {
    let mut stored = vec![0; content.len() + 64];
    // SAFETY: both ranges are those of vectors; the compressor is made and freed here.
    let nbytes = unsafe {
        let compressor = libdeflate_sys::libdeflate_alloc_compressor(1);
        let (from, to) = (content.as_ptr().cast(), stored.as_mut_ptr().cast());
        let nbytes =
            libdeflate_sys::libdeflate_gzip_compress(compressor, from, content.len(), to, stored.len());
        libdeflate_sys::libdeflate_free_compressor(compressor);
        nbytes
    };
    stored.truncate(nbytes);
    stored
}

#[test]
fn other_valid_streams_are_left_to_the_host() {
    let gzip = Stored::new(guarded()[1].0.clone(), false);
    let content: Vec<u8> = (0..1024u32).map(|number| (number / 9) as u8).collect();
    assert!(gzip.is_whole(&member(&content)));
    let several = [member(&content[..400]), member(&content[400..])].concat();
    for other in [several, [member(&content), vec![0; 5]].concat()] {
        assert_ne!(gzip.read(&other).unwrap().on_device, 4);
    }
    let zlib = Stored::new(guarded()[2].0.clone(), false);
    let padded = [zlib.bytes(), vec![0; 3]].concat();
    assert_ne!(zlib.read(&padded).unwrap().on_device, 4);
}

/// The stream begins at any offset of its chunk: misaligned ones are copied.
#[test]
fn gzip_headers_of_any_length() {
    let gzip = Stored::new(guarded()[1].0.clone(), false);
    let whole = gzip.bytes();
    for length in 0..9 {
        let mut named = whole.clone();
        named[3] |= 8;
        named.splice(10..10, [vec![b'n'; length], vec![0]].concat());
        assert!(gzip.is_whole(&named), "{length}");
    }
}

#[test]
fn large_frames_use_the_device_only_on_request() {
    install();
    for (compressor, _) in guarded() {
        // One frame of 66 MiB, more than a batch's normal limit, and frames of 6 MiB.
        let extent = if compressor.name == "zstd" { 66 << 18 } else { 6 << 18 };
        let array = crate::arrays::array(&[extent + 5], |builder| {
            builder.chunk_shape([extent]).compressors([compressor.clone()])
        });
        let all = Selection::all(array.shape());
        let why = explain(&array, &all, Some(device(0))).why;
        assert_eq!(
            why.contains("the device decompresses at most 67108864 at once"),
            extent > 6 << 18,
            "{why}"
        );
        let (tensor, done) = read(&array.request(&all).unwrap(), device(0), None, Route::Device).unwrap();
        assert_eq!((done.on_device, done.on_host, done.failed_frames), (2, 0, 0));
        assert!(same(&tensor.to_host().unwrap(), &expected(&array, &all)));
    }
}
