//! The compressor, the decompressor and the checksums of libdeflate.

use crate::codec::Uninit;
use crate::codec::failure::{Failure, Written};
use std::ffi::c_void;
use std::ptr::NonNull;

/// The two containers around a deflate stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeflateContainer {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Zlib,
}

/// A deflate decompressor; its tables are reused from chunk to chunk.
pub struct DeflateDecompressor(NonNull<libdeflate_sys::libdeflate_decompressor>);

// SAFETY: the decompressor is memory that this value owns alone, bound to no thread.
unsafe impl Send for DeflateDecompressor {}

impl DeflateDecompressor {
    /// Creates a context; `None` if out of memory.
    pub fn new() -> Option<DeflateDecompressor> {
        // SAFETY: the function takes no argument and returns a new object or null.
        NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_decompressor() }).map(DeflateDecompressor)
    }

    /// Decompresses one member from the start of `source`; returns the bytes read and the bytes written.
    pub fn decompress(
        &mut self,
        container: DeflateContainer,
        source: &[u8],
        destination: &mut Uninit,
    ) -> Result<(usize, usize), Failure> {
        let function = match container {
            DeflateContainer::Gzip => libdeflate_sys::libdeflate_gzip_decompress_ex,
            DeflateContainer::Zlib => libdeflate_sys::libdeflate_zlib_decompress_ex,
        };
        let (mut read, mut written) = (0usize, 0usize);
        // SAFETY: both ranges are from slices, the second exclusive; the two results are written on success.
        let result = unsafe {
            function(
                self.0.as_ptr(),
                source.as_ptr().cast::<c_void>(),
                source.len(),
                destination.as_mut_ptr().cast::<c_void>(),
                destination.len(),
                &mut read,
                &mut written,
            )
        };
        match result {
            0 => Ok((read, written)),
            3 => Err(Failure::TooSmall),
            _ => Err(Failure::corrupt("not a valid deflate stream")),
        }
    }
}

impl Drop for DeflateDecompressor {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `new`, freed once.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// A deflate compressor of one level.
pub struct DeflateCompressor {
    pointer: NonNull<libdeflate_sys::libdeflate_compressor>,
    level: i32,
}

// SAFETY: the compressor is memory that this value owns alone, bound to no thread.
unsafe impl Send for DeflateCompressor {}

impl DeflateCompressor {
    /// Creates a context for levels from 0 to 12; `None` if out of memory.
    pub fn new(level: i32) -> Option<DeflateCompressor> {
        // SAFETY: the function takes a number and returns a new object or null, also for a level that it does not have.
        let pointer = NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_compressor(level) })?;
        Some(DeflateCompressor { pointer, level })
    }

    /// Returns the level.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Returns the maximum compressed size of `nbytes` in either container.
    pub fn bound(&mut self, nbytes: usize) -> usize {
        // SAFETY: the pointer is from `new`.
        unsafe { libdeflate_sys::libdeflate_gzip_compress_bound(self.pointer.as_ptr(), nbytes) }
    }

    /// Compresses `source` to one member.
    pub fn compress(
        &mut self,
        container: DeflateContainer,
        source: &[u8],
        destination: &mut Uninit,
    ) -> Written {
        let written = self.compress_within(container, source, destination);
        written.ok_or_else(|| "deflate needs more memory than its bound".into())
    }

    /// Compresses `source` to one member; `None` if `destination` is too small.
    pub fn compress_within(
        &mut self,
        container: DeflateContainer,
        source: &[u8],
        destination: &mut Uninit,
    ) -> Option<usize> {
        let function = match container {
            DeflateContainer::Gzip => libdeflate_sys::libdeflate_gzip_compress,
            DeflateContainer::Zlib => libdeflate_sys::libdeflate_zlib_compress,
        };
        // SAFETY: both ranges are from slices, the second exclusive, and the function stays inside both.
        let written = unsafe {
            function(
                self.pointer.as_ptr(),
                source.as_ptr().cast::<c_void>(),
                source.len(),
                destination.as_mut_ptr().cast::<c_void>(),
                destination.len(),
            )
        };
        (written > 0).then_some(written)
    }
}

impl Drop for DeflateCompressor {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `new`, freed once.
        unsafe { libdeflate_sys::libdeflate_free_compressor(self.pointer.as_ptr()) }
    }
}

/// Continues zlib's CRC-32 `before` (0 to start) with `bytes`.
pub fn crc32(before: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the range is that of a slice.
    unsafe { libdeflate_sys::libdeflate_crc32(before, bytes.as_ptr().cast::<c_void>(), bytes.len()) }
}

/// Continues zlib's Adler-32 `before` (1 to start) with `bytes`.
pub fn adler32(before: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the range is that of a slice.
    unsafe { libdeflate_sys::libdeflate_adler32(before, bytes.as_ptr().cast::<c_void>(), bytes.len()) }
}
