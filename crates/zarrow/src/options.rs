//! How a hierarchy is opened, with what is refused as hostile and what is kept in memory; and how it is written.

use crate::metadata::MetadataLimits;
use crate::store::Durability;

/// Limits that no honest store meets, so that a hostile one cannot take memory or time without end.
///
/// ```
/// let limits = zarrow::DecodeLimits { max_ratio: 1000, ..Default::default() };
/// assert_eq!(limits.metadata.max_ndim, 32);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// What metadata may ask for.
    pub metadata: MetadataLimits,
    /// The most bytes that a chunk of strings or bytes may decode to.
    pub max_variable_nbytes: usize,
    /// The most bytes that one encoded byte of a chunk may decode to. A constant gigabyte in zstd has some 30,000.
    pub max_ratio: u64,
}

impl Default for DecodeLimits {
    fn default() -> DecodeLimits {
        DecodeLimits {
            metadata: MetadataLimits::default(),
            max_variable_nbytes: u32::MAX as usize,
            max_ratio: 1 << 22,
        }
    }
}

/// How a hierarchy is opened. Groups hand it on to what is below them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// What is refused.
    pub limits: DecodeLimits,
    /// Bytes of decoded chunks that each array keeps, for reads that overlap; 0 keeps none. A chunk that was rewritten
    /// since is decoded again.
    pub cache_nbytes: usize,
    /// What has reached the disk when a write returns.
    pub durability: Durability,
}

/// How chunks are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// What has reached the disk when the write returns.
    pub durability: Durability,
    /// Whether chunks are stored that are nothing but the fill value. They are left out by default, and erased where
    /// they were stored before; where version 2 has no fill value they are always stored.
    pub write_empty_chunks: bool,
}
