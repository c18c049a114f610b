//! Decompressors of the software nvCOMP: host libraries, and a decoder of Snappy.
//!
//! This is linked into `nvcomp.cpp`. Each function gets a frame and an output buffer, and returns the number of
//! bytes written, or -1.
#![allow(
    clippy::missing_safety_doc,
    reason = "one contract for all: `frame` has `nbytes` bytes, `place` has `room`, and they do not overlap"
)]

use std::ffi::c_int;
use std::ptr::NonNull;

/// Converts the number of bytes written to the C result.
fn status(written: Option<usize>) -> i64 {
    written.and_then(|nbytes| i64::try_from(nbytes).ok()).unwrap_or(-1)
}

macro_rules! decompressors {
    ($($(#[$text:meta])* $name:ident = $decompress:ident;)+) => {$(
        $(#[$text])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(frame: *const u8, nbytes: usize, place: *mut u8, room: usize) -> i64 {
            // SAFETY: the contract of this file.
            let (frame, place) = unsafe {
                (std::slice::from_raw_parts(frame, nbytes), std::slice::from_raw_parts_mut(place, room))
            };
            status($decompress(frame, place))
        }
    )+};
}

decompressors! {
    /// Decompresses a frame of zstd.
    zarrow_decompress_zstd = zstd;
    /// Decompresses a block of LZ4.
    zarrow_decompress_lz4 = lz4;
    /// Decompresses a stream of DEFLATE.
    zarrow_decompress_deflate = deflate;
    /// Decompresses a member of gzip, without verifying its checksum.
    zarrow_decompress_gzip = gzip;
    /// Decompresses a block of Snappy.
    zarrow_decompress_snappy = snappy;
}

fn zstd(frame: &[u8], place: &mut [u8]) -> Option<usize> {
    zstd_safe::decompress(place, frame).ok()
}

fn lz4(frame: &[u8], place: &mut [u8]) -> Option<usize> {
    let (nbytes, room) = (c_int::try_from(frame.len()).ok()?, c_int::try_from(place.len()).ok()?);
    let (from, to) = (frame.as_ptr().cast(), place.as_mut_ptr().cast());
    // SAFETY: the slices have these lengths.
    usize::try_from(unsafe { lz4_sys::LZ4_decompress_safe(from, to, nbytes, room) }).ok()
}

fn deflate(frame: &[u8], place: &mut [u8]) -> Option<usize> {
    let mut written = 0;
    // SAFETY: the slices have these lengths, and the decompressor is freed once.
    let status = unsafe {
        let decompressor = NonNull::new(libdeflate_sys::libdeflate_alloc_decompressor())?;
        let status = libdeflate_sys::libdeflate_deflate_decompress(
            decompressor.as_ptr(),
            frame.as_ptr().cast(),
            frame.len(),
            place.as_mut_ptr().cast(),
            place.len(),
            &raw mut written,
        );
        libdeflate_sys::libdeflate_free_decompressor(decompressor.as_ptr());
        status
    };
    (status == 0).then_some(written)
}

/// Source: RFC 1952, §2.3.
fn gzip(frame: &[u8], place: &mut [u8]) -> Option<usize> {
    let (head, mut rest) = frame.split_first_chunk::<10>()?;
    let flags = head[3];
    if head[..3] != [0x1f, 0x8b, 8] || flags & 0xe0 != 0 {
        return None;
    }
    if flags & 4 != 0 {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        rest = behind.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    // The name and the comment each end with a zero.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = &rest[end + 1..];
        }
    }
    rest = rest.get(if flags & 2 == 0 { 0 } else { 2 }..)?;
    let (stream, trailer) = rest.split_last_chunk::<8>()?;
    let written = deflate(stream, place)?;
    (trailer[4..] == (written as u32).to_le_bytes()).then_some(written)
}

/// Source: `format_description.txt` of Snappy.
fn snappy(frame: &[u8], place: &mut [u8]) -> Option<usize> {
    let mut frame = frame.iter().copied();
    let number = |nbytes: usize, frame: &mut dyn Iterator<Item = u8>| {
        (0..nbytes).try_fold(0usize, |number, byte| Some(number | usize::from(frame.next()?) << (8 * byte)))
    };
    let (mut length, mut shift) = (0usize, 0);
    loop {
        let byte = frame.next()?;
        length |= usize::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            break;
        }
        if shift > 28 {
            return None;
        }
    }
    let mut written = 0usize;
    while let Some(tag) = frame.next() {
        let upper = usize::from(tag >> 2);
        let (count, back) = match tag & 3 {
            0 => (1 + if upper < 60 { upper } else { number(upper - 59, &mut frame)? }, 0),
            1 => (4 + (upper & 7), usize::from(tag >> 5) << 8 | number(1, &mut frame)?),
            kind => (1 + upper, number(if kind == 2 { 2 } else { 4 }, &mut frame)?),
        };
        let end = written.checked_add(count).filter(|end| *end <= length.min(place.len()))?;
        if tag & 3 != 0 && !(1..=written).contains(&back) {
            return None;
        }
        for at in written..end {
            place[at] = if tag & 3 == 0 { frame.next()? } else { place[at - back] };
        }
        written = end;
    }
    (written == length).then_some(written)
}
