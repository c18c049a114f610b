//! State that codecs reuse from chunk to chunk: compressors and decompressors with warm tables, and memory with warm
//! pages.

use crate::codec::Uninit;
use crate::codec::bytes_to_bytes::libdeflate::{DeflateCompressor, DeflateDecompressor};
use crate::codec::bytes_to_bytes::libzstd::{ZstdCompressor, ZstdDecompressor};
use crate::error::Result;
use std::mem::MaybeUninit;
use zarrow_array::allocation;

/// The compressors and decompressors of one thread, created at first use.
#[derive(Default)]
pub struct Codecs {
    zstd: Option<ZstdDecompressor>,
    deflate: Option<DeflateDecompressor>,
    zstd_compressor: Option<ZstdCompressor>,
    deflate_compressor: Option<DeflateCompressor>,
    blosc: Scratch,
}

impl Codecs {
    /// Returns the bytes of zstd's tables; deflate's tables are some hundred kilobytes.
    pub fn nbytes(&self) -> usize {
        let decompressor = self.zstd.as_ref().map_or(0, ZstdDecompressor::nbytes);
        let compressor = self.zstd_compressor.as_ref().map_or(0, ZstdCompressor::nbytes);
        decompressor + compressor + self.blosc.nbytes()
    }

    /// Returns the zstd decompressor; `None` if out of memory.
    pub fn zstd(&mut self) -> Option<&mut ZstdDecompressor> {
        if self.zstd.is_none() {
            self.zstd = ZstdDecompressor::new();
        }
        self.zstd.as_mut()
    }

    /// Returns the deflate decompressor; `None` if out of memory.
    pub fn deflate(&mut self) -> Option<&mut DeflateDecompressor> {
        if self.deflate.is_none() {
            self.deflate = DeflateDecompressor::new();
        }
        self.deflate.as_mut()
    }

    /// Returns the zstd compressor; `None` if out of memory.
    pub fn zstd_compressor(&mut self) -> Option<&mut ZstdCompressor> {
        if self.zstd_compressor.is_none() {
            self.zstd_compressor = ZstdCompressor::new();
        }
        self.zstd_compressor.as_mut()
    }

    /// Returns the deflate compressor for `level`; `None` if out of memory.
    pub fn deflate_compressor(&mut self, level: i32) -> Option<&mut DeflateCompressor> {
        if self.deflate_compressor.as_ref().is_none_or(|compressor| compressor.level() != level) {
            self.deflate_compressor = DeflateCompressor::new(level);
        }
        self.deflate_compressor.as_mut()
    }

    /// Returns the memory for Blosc's blocks.
    pub fn blosc_memory(&mut self) -> &mut Scratch {
        &mut self.blosc
    }
}

/// Memory that only grows during a job and is written before it is read.
#[derive(Default)]
pub struct Scratch {
    memory: Vec<MaybeUninit<u8>>,
    /// Most bytes requested since the last [`trim`](Scratch::trim).
    used: usize,
    /// Number of consecutive jobs that used little of the memory.
    seldom: u8,
}

impl Scratch {
    /// Most bytes kept between jobs.
    pub const KEPT_NBYTES: usize = 64 << 20;
    /// Bytes kept no matter how few are used.
    pub const SMALL_NBYTES: usize = 1 << 20;
    /// Larger memory is freed after this many consecutive jobs that use less than a quarter of it.
    pub const PATIENCE_JOBS: u8 = 16;

    /// Returns `nbytes` bytes with unspecified content.
    pub fn take(&mut self, nbytes: usize) -> Result<&mut Uninit> {
        self.used = self.used.max(nbytes);
        if self.memory.len() < nbytes {
            // Free first, so that the old content is not moved to the new allocation.
            self.memory = Vec::new();
            self.memory = allocation::with_capacity(nbytes)?;
            // SAFETY: the capacity was reserved above, and `MaybeUninit` needs no initialisation.
            unsafe { self.memory.set_len(nbytes) };
        }
        Ok(&mut self.memory[..nbytes])
    }

    /// Frees memory above the limit, or memory that recent jobs did not use.
    pub fn trim(&mut self) {
        let length = self.memory.len();
        let is_little = length > Self::SMALL_NBYTES && self.used < length / 4;
        self.seldom = if is_little { self.seldom.saturating_add(1) } else { 0 };
        if length > Self::KEPT_NBYTES || self.seldom >= Self::PATIENCE_JOBS {
            self.free();
        }
        self.used = 0;
    }

    /// Frees all memory.
    pub fn free(&mut self) {
        *self = Scratch::default();
    }

    /// Returns the bytes kept.
    pub fn nbytes(&self) -> usize {
        self.memory.capacity()
    }
}
