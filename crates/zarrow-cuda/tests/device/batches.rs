//! Batches passed directly to nvCOMP: each format, with valid and corrupt frames.

use crate::decompressor::install;
use crate::software::device;
use std::ffi::c_int;
use zarrow_array::{Number, Tensor, UninitBuffer};
use zarrow_cuda::DeviceTensor;
use zarrow_cuda::decompress::{Format, Frames, decompressor};

/// Compressible bytes of frame `number`.
fn content(number: usize) -> Vec<u8> {
    (0..3000 + 41 * number).map(|byte| (byte / 7 * (number + 3) % 251) as u8).collect()
}

fn compressed(format: Format, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 2 * content.len() + 64];
    let nbytes = match format {
        Format::Zstd => zstd_safe::compress(&mut frame[..], content, 3).unwrap(),
        // SAFETY: the slices have these lengths.
        Format::Lz4 => unsafe {
            let (from, to) = (content.as_ptr().cast(), frame.as_mut_ptr().cast());
            let nbytes =
                lz4_sys::LZ4_compress_default(from, to, content.len() as c_int, frame.len() as c_int);
            usize::try_from(nbytes).unwrap()
        },
        Format::Snappy => return snappy(content),
        // SAFETY: the slices have these lengths, and the compressor is freed once.
        _ => unsafe {
            let compressor = libdeflate_sys::libdeflate_alloc_compressor(6);
            let compress = match format {
                Format::Gzip => libdeflate_sys::libdeflate_gzip_compress,
                _ => libdeflate_sys::libdeflate_deflate_compress,
            };
            let (from, to) = (content.as_ptr().cast(), frame.as_mut_ptr().cast());
            let nbytes = compress(compressor, from, content.len(), to, frame.len());
            libdeflate_sys::libdeflate_free_compressor(compressor);
            nbytes
        },
    };
    assert!(nbytes > 0);
    frame.truncate(nbytes);
    frame
}

/// A Snappy block: repeated bytes are copies, all others are literals.
fn snappy(content: &[u8]) -> Vec<u8> {
    let mut frame = vec![content.len() as u8 & 127 | 128, (content.len() >> 7) as u8];
    for run in content.chunk_by(|one, next| one == next) {
        // One literal byte, then copies of four to eleven bytes at distance one, or of any length with a two-byte
        // offset.
        frame.extend_from_slice(&[0, run[0]]);
        match run.len() - 1 {
            0 => {}
            count @ 4..12 => frame.extend_from_slice(&[((count - 4) << 2) as u8 | 1, 1]),
            count => frame.extend_from_slice(&[((count - 1) << 2) as u8 | 2, 1, 0]),
        }
    }
    frame
}

/// Uploads the bytes.
fn uploaded(bytes: &[u8]) -> DeviceTensor {
    let mut buffer = UninitBuffer::new(bytes.len()).unwrap();
    buffer.as_mut_slice().write_copy_of_slice(bytes);
    // SAFETY: all bytes were written above.
    let buffer = unsafe { buffer.assume_init() };
    let tensor = Tensor::new(buffer, vec![bytes.len() as u64], Number::UInt8.into()).unwrap();
    DeviceTensor::from_host(device(0), &tensor.into_shared().unwrap()).unwrap()
}

fn words(numbers: impl IntoIterator<Item = u64>) -> DeviceTensor {
    uploaded(&numbers.into_iter().flat_map(u64::to_ne_bytes).collect::<Vec<_>>())
}

fn downloaded(tensor: &DeviceTensor) -> Vec<u8> {
    let host = tensor.to_host().unwrap();
    // SAFETY: the tensor is not written to.
    unsafe { host.bytes() }.unwrap().to_vec()
}

#[test]
fn every_format_is_decompressed_and_corrupt_frames_are_reported() {
    install();
    let library = decompressor().unwrap();
    for format in Format::ALL {
        assert!(library.takes(format));
        let contents: Vec<_> = (0..40).map(content).collect();
        let mut stored = Vec::new();
        let mut ranges = Vec::new();
        for (number, content) in contents.iter().enumerate() {
            let mut frame = compressed(format, content);
            assert!(frame.len() < content.len(), "{format:?}");
            if number == 7 {
                frame.truncate(frame.len() / 2);
            }
            stored.resize(stored.len().next_multiple_of(library.source_alignment(format)), 0);
            ranges.push((stored.len() as u64, frame.len() as u64));
            stored.extend_from_slice(&frame);
        }
        let count = contents.len();
        let source = uploaded(&stored);
        let total: usize = contents.iter().map(Vec::len).sum();
        let place = uploaded(&vec![0; total]);
        let starts = contents.iter().scan(place.address(), |next, content| {
            let start = *next;
            *next += content.len() as u64;
            Some(start)
        });
        let sources = words(ranges.iter().map(|(start, _)| source.address() + start));
        let source_nbytes = words(ranges.iter().map(|(_, nbytes)| *nbytes));
        let destinations = words(starts);
        let destination_nbytes = words(contents.iter().map(|content| content.len() as u64));
        let (written, statuses) = (uploaded(&vec![9; count * 8]), uploaded(&vec![9; count * 4]));
        let frames = Frames {
            format,
            count,
            sources: sources.address(),
            source_nbytes: source_nbytes.address(),
            destinations: destinations.address(),
            destination_nbytes: destination_nbytes.address(),
            written: written.address(),
            statuses: statuses.address(),
            largest: contents.iter().map(Vec::len).max().unwrap(),
            total,
        };
        let temporary = uploaded(&vec![0; library.temporary_nbytes(&frames).unwrap().max(1)]);
        // SAFETY: the tensors have the lists and the memory, and live until the stream has done the batch.
        unsafe {
            library
                .decompress(&frames, temporary.address(), temporary.nbytes(), (device(0), device(0).stream()))
                .unwrap();
        }
        let (decoded, written, statuses) = (downloaded(&place), downloaded(&written), downloaded(&statuses));
        let mut start = 0;
        for (number, content) in contents.iter().enumerate() {
            let is_whole = statuses[number * 4..][..4] == [0; 4];
            assert_eq!(is_whole, number != 7, "{format:?}, frame {number}");
            if is_whole {
                assert_eq!(written[number * 8..][..8], (content.len() as u64).to_ne_bytes(), "{format:?}");
                assert!(decoded[start..][..content.len()] == content[..], "{format:?}, frame {number}");
            }
            start += content.len();
        }
    }
}
