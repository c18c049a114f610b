//! What each worker keeps from chunk to chunk: compressors and decompressors with warm tables, and memory with warm
//! pages.

use crate::codec::native::{Deflate, Zstd};
use crate::codec::native_compress::{DeflateCompressor, ZstdCompressor};
use crate::error::Result;
use std::mem::MaybeUninit;
use zarrow_array::allocation;

/// The compressors and decompressors of one thread, made when first used.
#[derive(Default)]
pub struct Codecs {
    zstd: Option<Zstd>,
    deflate: Option<Deflate>,
    zstd_compressor: Option<ZstdCompressor>,
    deflate_compressor: Option<DeflateCompressor>,
}

impl Codecs {
    fn nbytes(&self) -> usize {
        let decompressor = self.zstd.as_ref().map_or(0, Zstd::nbytes);
        decompressor + self.zstd_compressor.as_ref().map_or(0, ZstdCompressor::nbytes)
    }

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
    const KEPT: usize = 64 << 20;
    /// Memory that is kept however little of it is used, in bytes.
    const SMALL: usize = 1 << 20;
    /// So many jobs that use less than a quarter of larger memory one after the other free it.
    const PATIENCE: u8 = 16;

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
    fn trim(&mut self) {
        let length = self.memory.len();
        let is_little = length > Self::SMALL && self.used < length / 4;
        self.seldom = if is_little { self.seldom.saturating_add(1) } else { 0 };
        if length > Self::KEPT || self.seldom >= Self::PATIENCE {
            self.free();
        }
        self.used = 0;
    }

    fn free(&mut self) {
        *self = Scratch::default();
    }

    fn nbytes(&self) -> usize {
        self.memory.capacity()
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
    /// Frees what is more than should be kept between jobs.
    pub fn trim(&mut self) {
        self.each(Scratch::trim);
    }

    /// Frees all but the codecs' tables.
    pub fn free_memory(&mut self) {
        self.each(Scratch::free);
    }

    fn each(&mut self, act: impl Fn(&mut Scratch)) {
        [&mut self.encoded, &mut self.decoded, &mut self.elements].into_iter().for_each(act);
    }

    /// Bytes that it keeps, the tables of zstd among them; those of deflate are some hundred kilobytes.
    pub fn nbytes(&self) -> usize {
        self.encoded.nbytes() + self.decoded.nbytes() + self.elements.nbytes() + self.codecs.nbytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_used_any_more_is_let_go() {
        let mut worker = Worker::default();
        worker.encoded.take(8 << 20).unwrap();
        worker.trim();
        for job in 0..Scratch::PATIENCE {
            assert_eq!(worker.nbytes(), 8 << 20, "{job}");
            worker.encoded.take(1 << 20).unwrap();
            worker.trim();
        }
        assert_eq!(worker.nbytes(), 0);
        worker.decoded.take(Scratch::KEPT + 1).unwrap();
        worker.trim();
        assert_eq!(worker.nbytes(), 0);
        for _ in 0..100 {
            worker.elements.take(Scratch::SMALL).unwrap();
            worker.trim();
            worker.elements.take(1).unwrap();
            worker.trim();
        }
        assert_eq!(worker.nbytes(), Scratch::SMALL);
    }
}
