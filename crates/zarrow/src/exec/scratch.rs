//! What each worker keeps from chunk to chunk: compressors and decompressors with warm tables, and memory with warm
//! pages.

use crate::codec::native::{Deflate, Zstd};
use crate::codec::native_compress::{DeflateCompressor, ZstdCompressor};
use crate::error::Result;
use std::mem::MaybeUninit;

/// The compressors and decompressors of one thread, made when first used.
#[derive(Default)]
pub struct Codecs {
    zstd: Option<Zstd>,
    deflate: Option<Deflate>,
    zstd_compressor: Option<ZstdCompressor>,
    deflate_compressor: Option<DeflateCompressor>,
}

impl Codecs {
    /// The zstd decompressor; `None` where there is no memory for one.
    pub fn zstd(&mut self) -> Option<&mut Zstd> {
        if self.zstd.is_none() {
            self.zstd = Zstd::new();
        }
        self.zstd.as_mut()
    }

    /// The deflate decompressor; `None` where there is no memory for one.
    pub fn deflate(&mut self) -> Option<&mut Deflate> {
        if self.deflate.is_none() {
            self.deflate = Deflate::new();
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
}

/// Memory that only grows while a read lasts, and is written before it is read.
#[derive(Default)]
pub struct Scratch(Vec<MaybeUninit<u8>>);

impl Scratch {
    /// The most memory that is kept between reads, in bytes.
    const KEPT: usize = 64 << 20;

    /// `nbytes` bytes, whatever they hold.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn take(&mut self, nbytes: usize) -> Result<&mut [MaybeUninit<u8>]> {
        if self.0.len() < nbytes {
            // Freed first: what was there need not be moved to the new place.
            self.0 = Vec::new();
            self.0.try_reserve_exact(nbytes).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
            // SAFETY: the capacity was reserved above, and `MaybeUninit` needs no initialisation.
            unsafe { self.0.set_len(nbytes) };
        }
        Ok(&mut self.0[..nbytes])
    }

    /// Frees what is more than a thread should keep while it does nothing.
    pub fn trim(&mut self) {
        if self.0.len() > Self::KEPT {
            self.0 = Vec::new();
        }
    }
}

/// What one thread works with.
#[derive(Default)]
pub struct Worker {
    /// The compressors and decompressors.
    pub codecs: Codecs,
    /// A chunk as it is stored.
    pub encoded: Scratch,
    /// A chunk as it is decoded.
    pub decoded: Scratch,
    /// The elements of a chunk that is to be encoded.
    pub elements: Scratch,
}

impl Worker {
    /// Frees what is more than a thread should keep while it does nothing.
    pub fn trim(&mut self) {
        self.encoded.trim();
        self.decoded.trim();
        self.elements.trim();
    }
}
