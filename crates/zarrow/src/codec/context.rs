//! What codecs keep from chunk to chunk: compressors and decompressors with warm tables, and memory with warm pages.

use crate::codec::bytes_to_bytes::deflate::{DeflateCompressor, DeflateDecompressor};
use crate::codec::bytes_to_bytes::zstd::{ZstdCompressor, ZstdDecompressor};
use crate::error::Result;
use std::mem::MaybeUninit;
use zarrow_array::allocation;

/// The compressors and decompressors of one thread, made when first used.
#[derive(Default)]
pub struct Codecs {
    zstd: Option<ZstdDecompressor>,
    deflate: Option<DeflateDecompressor>,
    zstd_compressor: Option<ZstdCompressor>,
    deflate_compressor: Option<DeflateCompressor>,
    blosc: Scratch,
}

impl Codecs {
    /// Bytes of the tables of zstd; those of deflate are some hundred kilobytes.
    pub fn nbytes(&self) -> usize {
        let decompressor = self.zstd.as_ref().map_or(0, ZstdDecompressor::nbytes);
        let compressor = self.zstd_compressor.as_ref().map_or(0, ZstdCompressor::nbytes);
        decompressor + compressor + self.blosc.nbytes()
    }

    /// The zstd decompressor; `None` where there is no memory for one.
    pub fn zstd(&mut self) -> Option<&mut ZstdDecompressor> {
        if self.zstd.is_none() {
            self.zstd = ZstdDecompressor::new();
        }
        self.zstd.as_mut()
    }

    /// The deflate decompressor; `None` where there is no memory for one.
    pub fn deflate(&mut self) -> Option<&mut DeflateDecompressor> {
        if self.deflate.is_none() {
            self.deflate = DeflateDecompressor::new();
        }
        self.deflate.as_mut()
    }

    /// The zstd compressor; `None` where there is no memory for one.
    pub fn zstd_compressor(&mut self) -> Option<&mut ZstdCompressor> {
        if self.zstd_compressor.is_none() {
            self.zstd_compressor = ZstdCompressor::new();
        }
        self.zstd_compressor.as_mut()
    }

    /// The deflate compressor of `level`; `None` where there is no memory for one.
    pub fn deflate_compressor(&mut self, level: i32) -> Option<&mut DeflateCompressor> {
        if self.deflate_compressor.as_ref().is_none_or(|compressor| compressor.level() != level) {
            self.deflate_compressor = DeflateCompressor::new(level);
        }
        self.deflate_compressor.as_mut()
    }

    /// Memory for the blocks of Blosc.
    pub fn blosc_memory(&mut self) -> &mut Scratch {
        &mut self.blosc
    }
}

/// Memory that only grows while a job lasts, and is written before it is read.
#[derive(Default)]
pub struct Scratch {
    memory: Vec<MaybeUninit<u8>>,
    /// The most bytes that were asked for since the last [`trim`](Scratch::trim).
    used: usize,
    /// How many jobs one after the other used little of it.
    seldom: u8,
}

impl Scratch {
    /// The most memory that is kept between jobs, in bytes.
    pub const KEPT_NBYTES: usize = 64 << 20;
    /// Memory that is kept however little of it is used, in bytes.
    pub const SMALL_NBYTES: usize = 1 << 20;
    /// So many jobs that use less than a quarter of larger memory one after the other free it.
    pub const PATIENCE_JOBS: u8 = 16;

    /// `nbytes` bytes, whatever they hold.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn take(&mut self, nbytes: usize) -> Result<&mut [MaybeUninit<u8>]> {
        self.used = self.used.max(nbytes);
        if self.memory.len() < nbytes {
            // Freed first: what was there need not be moved to the new place.
            self.memory = Vec::new();
            self.memory = allocation::with_capacity(nbytes)?;
            // SAFETY: the capacity was reserved above, and `MaybeUninit` needs no initialisation.
            unsafe { self.memory.set_len(nbytes) };
        }
        Ok(&mut self.memory[..nbytes])
    }

    /// Frees what is more than should be kept between jobs, or more than the last ones used.
    pub fn trim(&mut self) {
        let length = self.memory.len();
        let is_little = length > Self::SMALL_NBYTES && self.used < length / 4;
        self.seldom = if is_little { self.seldom.saturating_add(1) } else { 0 };
        if length > Self::KEPT_NBYTES || self.seldom >= Self::PATIENCE_JOBS {
            self.free();
        }
        self.used = 0;
    }

    /// Frees all of it.
    pub fn free(&mut self) {
        *self = Scratch::default();
    }

    /// Bytes that it keeps.
    pub fn nbytes(&self) -> usize {
        self.memory.capacity()
    }
}
