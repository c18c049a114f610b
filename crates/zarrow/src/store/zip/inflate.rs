//! Inflates raw deflate streams and computes their checksum, with libdeflate.

use super::corrupt;
use crate::error::{ErrorKind, Result};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use zarrow_array::allocation;

/// A decompressor for a single use.
struct Decompressor(NonNull<libdeflate_sys::libdeflate_decompressor>);

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from the library, and is freed once.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// Inflates `source` into `destination`, which it must fill, and checks the CRC-32.
///
/// # Errors
/// [`ErrorKind::Corrupt`], [`ErrorKind::WrongSize`], [`ErrorKind::Checksum`], [`zarrow_array::Error::OutOfMemory`].
pub fn inflate<'d>(source: &[u8], destination: &'d mut [MaybeUninit<u8>], crc: u32) -> Result<&'d mut [u8]> {
    // SAFETY: the function takes no argument and returns a new object or null.
    let decompressor = NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_decompressor() });
    let decompressor =
        decompressor.map(Decompressor).ok_or(zarrow_array::Error::OutOfMemory { nbytes: 1 << 15 })?;
    let (mut read, mut written) = (0usize, 0usize);
    // SAFETY: both ranges belong to slices, the second exclusive; the two results are written on success.
    let result = unsafe {
        libdeflate_sys::libdeflate_deflate_decompress_ex(
            decompressor.0.as_ptr(),
            source.as_ptr().cast::<c_void>(),
            source.len(),
            destination.as_mut_ptr().cast::<c_void>(),
            destination.len(),
            &mut read,
            &mut written,
        )
    };
    let expected = destination.len();
    match result {
        0 if read != source.len() => Err(corrupt("there are bytes after the end of a deflated entry")),
        0 if written == expected => {
            // SAFETY: the library has written as many bytes, without a gap.
            let filled = unsafe { destination.assume_init_mut() };
            check(filled, crc)?;
            Ok(filled)
        }
        0 => Err(ErrorKind::WrongSize { expected: expected as u64, actual: written as u64 }.into()),
        3 => Err(ErrorKind::TooLong { expected: expected as u64, least: expected as u64 }.into()),
        _ => Err(corrupt("an entry is not a valid deflate stream")),
    }
}

/// Inflates `source` into new memory of `nbytes` bytes.
///
/// # Errors
/// As [`inflate`].
pub fn inflated(source: &[u8], nbytes: u64, crc: u32) -> Result<Vec<u8>> {
    let length = usize::try_from(nbytes).unwrap_or(usize::MAX);
    let mut memory: Vec<u8> = allocation::with_capacity(length)?;
    let spare = memory.spare_capacity_mut();
    inflate(source, spare.get_mut(..length).unwrap_or_default(), crc)?;
    // SAFETY: `inflate` has filled as many bytes of the spare memory.
    unsafe { memory.set_len(length) };
    Ok(memory)
}

/// Checks the CRC-32 of a member's bytes.
///
/// # Errors
/// [`ErrorKind::Checksum`].
pub fn check(bytes: &[u8], stored: u32) -> Result<()> {
    compare(stored, crc32(0, bytes))
}

/// Compares the CRC-32 in the directory with that of the bytes.
///
/// # Errors
/// [`ErrorKind::Checksum`].
pub fn compare(stored: u32, computed: u32) -> Result<()> {
    if computed == stored { Ok(()) } else { Err(ErrorKind::Checksum { stored, computed }.into()) }
}

/// Continues a CRC-32: `before` is the checksum of the preceding bytes, 0 at the start.
pub fn crc32(before: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the range is that of a slice.
    unsafe { libdeflate_sys::libdeflate_crc32(before, bytes.as_ptr().cast::<c_void>(), bytes.len()) }
}
