//! Comparison with c-blosc: its frames are readable here, and its output is equal to ours.

use super::bitshuffle::{bitshuffle, bitunshuffle, slab_nbytes};
use super::compressor::Compressor;
use super::dispatch::tests::NARROWER;
use super::encode::{Source, bound, encode};
use super::frame::{COPIED, Frame};
use super::settings::Filter;
use super::settings::Settings;
use super::shuffle::{shuffle, unshuffle};
use crate::codec::Codecs;
use crate::codec::failure::Failure;
use std::ffi::CStr;
use std::mem::MaybeUninit;

const COMPRESSORS: [(Compressor, &CStr); 5] = [
    (Compressor::BloscLz, c"blosclz"),
    (Compressor::Lz4, c"lz4"),
    (Compressor::Lz4Hc, c"lz4hc"),
    (Compressor::Zlib, c"zlib"),
    (Compressor::Zstd, c"zstd"),
];
const FILTERS: [Filter; 3] = [Filter::None, Filter::Shuffle, Filter::BitShuffle];

/// Elements that grow slowly, with some noise: they compress partly.
fn elements(nbytes: usize, item_size: usize, noise: u8) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u8
    };
    let byte = |at: usize| {
        let number = (at / item_size) as u64 * 3;
        number.to_le_bytes()[at % item_size % 8].wrapping_add(if next() < noise { next() } else { 0 })
    };
    (0..nbytes).map(byte).collect()
}

fn oracle_encode(settings: &Settings, source: &[u8]) -> Vec<u8> {
    let name = COMPRESSORS.iter().find(|(compressor, _)| *compressor == settings.compressor).unwrap().1;
    let mut frame = vec![0; bound(source.len())];
    // SAFETY: both are slices of the given lengths, and the name is a C string.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            settings.level.into(),
            FILTERS.iter().position(|filter| *filter == settings.filter).unwrap() as i32,
            settings.item_size,
            source.len(),
            source.as_ptr().cast(),
            frame.as_mut_ptr().cast(),
            frame.len(),
            name.as_ptr(),
            settings.block_nbytes.min(source.len()),
            1,
        )
    };
    frame.truncate(usize::try_from(written).unwrap());
    frame
}

fn oracle_decode(frame: &[u8], nbytes: usize) -> Vec<u8> {
    let mut found = vec![0xee; nbytes];
    // SAFETY: the frame is complete, and the destination has the given length.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(frame.as_ptr().cast(), found.as_mut_ptr().cast(), nbytes, 1)
    };
    assert_eq!(usize::try_from(written), Ok(nbytes));
    found
}

fn encoded(settings: &Settings, source: Source<'_>, nbytes: usize, codecs: &mut Codecs) -> Vec<u8> {
    let mut memory = vec![MaybeUninit::new(0xee); bound(nbytes)];
    let written = encode(settings, source, &mut memory, codecs).unwrap();
    // SAFETY: every byte was initialised.
    unsafe { memory[..written].assume_init_ref() }.to_vec()
}

fn decoded(frame: &[u8], start: usize, nbytes: usize, codecs: &mut Codecs) -> Result<Vec<u8>, Failure> {
    let mut memory = vec![MaybeUninit::new(0xee); nbytes];
    Frame::new(frame)?.decode_range(start, &mut memory, codecs)?;
    // SAFETY: as above.
    Ok(unsafe { memory.assume_init_ref() }.to_vec())
}

/// Every vector matches the definition, for elements of many sizes and numbers.
#[test]
fn shuffles_are_those_of_the_definition() {
    for narrower in 0..3 {
        NARROWER.set(narrower);
        for size in (1..=40).chain([64, 100, 255]) {
            for count in [0, 1, 7, 8, 15, 16, 31, 32, 33, 64, 120, 256, 264, 511, 512, 1000, 4104] {
                // Enough for one slab and a part of the next.
                let count = if size > 16 { count.min(1000) } else { count };
                let source = elements(count * size, size, 200);
                let byte = |at: usize| source[at % count * size + at / count];
                let mut shuffled = vec![MaybeUninit::new(0xee); source.len()];
                let mut found = shuffled.clone();
                let mut memory = vec![MaybeUninit::new(0xee); slab_nbytes(size)];
                shuffle(source.as_slice().into(), &mut shuffled, count, size);
                // SAFETY: every byte was initialised.
                let planes = unsafe { shuffled.assume_init_ref() };
                let name = format!("{count} of {size} by {narrower}");
                assert!((0..source.len()).all(|at| planes[at] == byte(at)), "shuffle: {name}");
                unshuffle(planes, count, &mut found, size);
                // SAFETY: as above.
                assert!(unsafe { found.assume_init_ref() } == source, "unshuffle: {name}");
                if count % 8 != 0 {
                    continue;
                }
                bitshuffle(source.as_slice().into(), &mut shuffled, size, &mut memory);
                // SAFETY: as above.
                let planes = unsafe { shuffled.assume_init_ref() };
                let bit = |plane: usize, element: usize| byte(plane / 8 * count + element) >> (plane % 8) & 1;
                let right = (0..size * 8).all(|plane| {
                    (0..count).all(|at| planes[plane * count / 8 + at / 8] >> (at % 8) & 1 == bit(plane, at))
                });
                assert!(right, "bit shuffle: {name}");
                found.fill(MaybeUninit::new(0xee));
                bitunshuffle(planes, &mut found, size, &mut memory);
                // SAFETY: as above.
                assert!(unsafe { found.assume_init_ref() } == source, "bit unshuffle: {name}");
            }
        }
    }
    NARROWER.set(0);
}

/// Settings and sources: each compressor, filter and level, with elements and blocks of many sizes.
fn cases() -> impl Iterator<Item = (Settings, Vec<u8>)> {
    let item_sizes = [1, 2, 3, 4, 7, 8, 12, 16, 17, 33, 100, 255];
    let lengths = |item: usize| {
        let [small, large] = [200 * item, 70_000 / item * item];
        [0, 1, item, 127, 128, 129, 16 * item + 1, small, small + 8 * item, large, large + 5, 150_001]
    };
    let mut number = 0usize;
    item_sizes.into_iter().flat_map(move |item| lengths(item).map(|nbytes| (item, nbytes))).flat_map(
        move |(item_size, nbytes)| {
            let mut cases = Vec::new();
            for (compressor, _) in COMPRESSORS {
                for filter in FILTERS {
                    number += 1;
                    let level = (number % 10) as u8;
                    // The highest levels of zstd are slow.
                    let level =
                        if compressor == Compressor::Zstd && nbytes > 1000 { level % 4 } else { level };
                    let block_nbytes = [0, 0, 130, 4096, 1 << 20][number % 5];
                    let settings = Settings { compressor, level, filter, item_size, block_nbytes };
                    cases.push((settings, elements(nbytes, item_size, [0, 10, 80, 255][number / 7 % 4])));
                }
            }
            cases
        },
    )
}

#[test]
fn frames_are_those_of_c_blosc() {
    let mut codecs = Codecs::default();
    let (mut ours, mut theirs) = (0usize, 0usize);
    for (settings, source) in cases() {
        let name = format!("{settings:?} of {} bytes", source.len());
        let frame = encoded(&settings, Source::Own(&source), source.len(), &mut codecs);
        let borrowed =
            encoded(&settings, Source::Borrowed(source.as_slice().into()), source.len(), &mut codecs);
        assert!(frame == borrowed, "{name}: borrowed memory gives another frame");
        let expected = oracle_encode(&settings, &source);
        if settings.compressor == Compressor::Zlib {
            // Another deflate implementation with equally small output.
            (ours, theirs) = (ours + frame.len(), theirs + expected.len());
            let head = |frame: &[u8]| [&frame[..2], &[frame[2] & !COPIED], &frame[3..12]].concat();
            assert_eq!(head(&frame), head(&expected), "{name}: another header");
        } else {
            assert!(frame == expected, "{name}: {} bytes, expected {}", frame.len(), expected.len());
        }
        assert!(oracle_decode(&frame, source.len()) == source, "{name}: read by c-blosc");
        for frame in [frame, expected] {
            let found = decoded(&frame, 0, source.len(), &mut codecs).unwrap();
            assert!(found == source, "{name}: read");
            let behind = [&frame[..], b"behind"].concat();
            assert!(
                decoded(&behind, 0, source.len(), &mut codecs).unwrap() == source,
                "{name}: and more behind"
            );
        }
    }
    assert!(ours * 100 <= theirs * 101, "deflate: {ours} bytes, c-blosc's {theirs}");
}

#[test]
fn each_level_of_zlib_is_as_small_as_c_bloscs() {
    let mut codecs = Codecs::default();
    for level in 1..=9 {
        let (mut ours, mut theirs) = (0, 0);
        for (item_size, noise) in [(4, 10), (8, 80), (2, 0)] {
            let (compressor, filter) = (Compressor::Zlib, Filter::Shuffle);
            let settings = Settings { compressor, level, filter, item_size, block_nbytes: 0 };
            let source = elements(400_000, item_size, noise);
            ours += encoded(&settings, Source::Own(&source), source.len(), &mut codecs).len();
            theirs += oracle_encode(&settings, &source).len();
        }
        assert!(ours * 100 <= theirs * 101, "level {level}: {ours} bytes, c-blosc's {theirs}");
    }
}

#[test]
fn ranges_are_parts_of_the_whole() {
    let mut codecs = Codecs::default();
    for (settings, source) in cases().filter(|(_, source)| !source.is_empty()) {
        let frame = oracle_encode(&settings, &source);
        let block = Frame::new(&frame).unwrap().block_nbytes;
        let item = settings.item_size;
        let bytes = [0, 1, block.saturating_sub(1), block + 1, 2 * block + 3, source.len() / 2, source.len()];
        let elements = [item, block / 3, block, block + item, source.len() / 2].map(|at| at / item * item);
        let bounds = [&bytes[..], &elements].concat();
        for start in bounds.iter().map(|at| *at.min(&source.len())) {
            for end in bounds.iter().map(|at| (*at).clamp(start, source.len())) {
                let found = decoded(&frame, start, end - start, &mut codecs).unwrap();
                assert!(found == source[start..end], "{settings:?}: {start}..{end} of {}", source.len());
            }
        }
        assert_eq!(decoded(&frame, source.len(), 1, &mut codecs), Err(Failure::TooSmall));
    }
}

/// Every byte of a frame's head changed, and frames truncated anywhere: the result is an error or the requested number
/// of bytes.
#[test]
fn broken_frames_are_errors() {
    let mut codecs = Codecs::default();
    for (settings, source) in cases().filter(|(_, source)| (1000..80_000).contains(&source.len())).step_by(7)
    {
        let frame = encoded(&settings, Source::Own(&source), source.len(), &mut codecs);
        for at in (0..frame.len().min(64)).chain((64..frame.len()).step_by(frame.len() / 8 + 1)) {
            for bit in 0..8 {
                let mut broken = frame.clone();
                broken[at] ^= 1 << bit;
                drop(decoded(&broken, 0, source.len(), &mut codecs));
                drop(decoded(&broken, source.len() / 2, 10, &mut codecs));
                let item = settings.item_size;
                drop(decoded(&broken, 200 / item * item, 400 / item * item, &mut codecs));
            }
            let mut cut = frame[..at].to_vec();
            assert!(decoded(&cut, 0, source.len(), &mut codecs).is_err());
            // With the truncated length in the header: blocks are missing.
            if let Some(length) = cut.get_mut(12..16) {
                length.copy_from_slice(&(at as u32).to_le_bytes());
                assert!(decoded(&cut, 0, source.len(), &mut codecs).is_err(), "{settings:?} cut at {at}");
            }
        }
    }
}

/// A split block that is not a whole number of elements: c-blosc leaves the remainder unchanged.
#[test]
fn only_written_bytes_are_returned() {
    let mut frame = vec![2, 1, 0x20, 3];
    for word in [400u32, 400, 16 + 4 + 3 * (4 + 133), 20] {
        frame.extend(word.to_le_bytes());
    }
    for _ in 0..3 {
        frame.extend(133u32.to_le_bytes());
        frame.extend([7; 133]);
    }
    let error = decoded(&frame, 0, 400, &mut Codecs::default()).unwrap_err();
    assert!(matches!(&error, Failure::Corrupt(text) if text.contains("whole number")), "{error:?}");
}

#[test]
fn what_is_wrong_is_said() {
    let source = elements(4000, 4, 10);
    let settings = |compressor| Settings {
        compressor,
        level: 5,
        filter: Filter::Shuffle,
        item_size: 4,
        block_nbytes: 0,
    };
    for (compressor, name) in COMPRESSORS {
        let frame = oracle_encode(&settings(compressor), &source);
        for (at, byte, expected) in [
            (0, 5, "format version 5, expected 2"),
            (1, 9, "version 9 of"),
            (2, 0xe0, "compressor 7"),
            (3, 0, "elements of 0"),
            (7, 0x80, "not a valid Blosc header"),
            (11, 1, "in blocks of"),
            (12, 0xff, "are stored"),
            (19, 0xff, "has no start"),
            (frame[16] as usize, 0xff, "block 0 of a Blosc frame"),
        ] {
            let mut broken = frame.clone();
            broken[at] = byte;
            let error = decoded(&broken, 0, source.len(), &mut Codecs::default()).unwrap_err();
            assert!(
                matches!(&error, Failure::Corrupt(text) if text.contains(expected)),
                "{name:?} {at}: {error:?}"
            );
        }
        let mut snappy = frame.clone();
        snappy[2] = 0x40;
        assert!(matches!(Frame::new(&snappy), Err(Failure::Unsupported(text)) if text.contains("snappy")));
    }
}
