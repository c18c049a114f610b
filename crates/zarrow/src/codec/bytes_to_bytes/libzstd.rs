//! The compressor and the decompressor of libzstd.

use crate::codec::Uninit;
use crate::codec::failure::{Failure, Refusal, Written};
use zstd_safe::CParameter;

/// `ZSTD_error_memory_allocation`, as zstd returns it: the negated number.
const NO_MEMORY: usize = 64usize.wrapping_neg();

/// `ZSTD_error_dstSize_tooSmall`, likewise.
const TOO_SMALL: usize = 70usize.wrapping_neg();

/// A zstd decompressor; its tables are reused from chunk to chunk.
pub struct ZstdDecompressor(zstd_safe::DCtx<'static>);

/// Memory for zstd to write to.
struct Destination<'a>(&'a mut Uninit);

// SAFETY: the pointer and the capacity are from one exclusive slice; `as_slice` claims nothing initialised.
unsafe impl zstd_safe::WriteBuf for Destination<'_> {
    fn as_slice(&self) -> &[u8] {
        &[]
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn filled_until(&mut self, _count: usize) {}
}

impl ZstdDecompressor {
    /// Creates a context; `None` if out of memory.
    pub fn new() -> Option<ZstdDecompressor> {
        zstd_safe::DCtx::try_create().map(ZstdDecompressor)
    }

    /// Returns the bytes of its tables.
    pub fn nbytes(&self) -> usize {
        self.0.sizeof()
    }

    /// Decompresses every frame of `source` to the start of `destination`.
    pub fn decompress(&mut self, source: &[u8], destination: &mut Uninit) -> Result<usize, Failure> {
        match self.0.decompress(&mut Destination(destination), source) {
            Ok(written) => Ok(written),
            Err(TOO_SMALL) => Err(Failure::TooSmall),
            Err(NO_MEMORY) => Err(Failure::OutOfMemory),
            Err(code) => Err(Failure::corrupt(zstd_safe::get_error_name(code))),
        }
    }
}

/// A zstd compressor; its tables are reused from chunk to chunk.
pub struct ZstdCompressor(zstd_safe::CCtx<'static>);

impl ZstdCompressor {
    /// Creates a context; `None` if out of memory.
    pub fn new() -> Option<ZstdCompressor> {
        zstd_safe::CCtx::try_create().map(ZstdCompressor)
    }

    /// Returns the bytes of its tables.
    pub fn nbytes(&self) -> usize {
        self.0.sizeof()
    }

    /// Compresses `source` to one frame with its size in the header, and with a checksum if requested.
    pub fn compress(
        &mut self,
        level: i32,
        checksum: bool,
        source: &[u8],
        destination: &mut Uninit,
    ) -> Written {
        let failed = |code| match code {
            NO_MEMORY => Refusal::OutOfMemory { nbytes: source.len() },
            code => zstd_safe::get_error_name(code).into(),
        };
        self.0.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
        self.0.set_parameter(CParameter::ChecksumFlag(checksum)).map_err(failed)?;
        self.0.compress2(&mut Destination(destination), source).map_err(failed)
    }

    /// Compresses `source` to one frame, as `ZSTD_compress` does; `None` if `destination` is too small.
    pub fn compress_within(
        &mut self,
        level: i32,
        source: &[u8],
        destination: &mut Uninit,
    ) -> Result<Option<usize>, Refusal> {
        match self.0.compress(&mut Destination(destination), source, level) {
            Ok(written) => Ok(Some(written)),
            Err(TOO_SMALL) => Ok(None),
            Err(NO_MEMORY) => Err(Refusal::OutOfMemory { nbytes: source.len() }),
            Err(code) => Err(zstd_safe::get_error_name(code).into()),
        }
    }
}
