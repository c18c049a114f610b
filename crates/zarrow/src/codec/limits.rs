//! Limits against hostile chunks and metadata.

use crate::error::{ErrorKind, Result};
use crate::metadata::MetadataLimits;

/// Limits above those of any regular store, so that a hostile store cannot exhaust memory or time.
///
/// ```
/// let limits = zarrow::DecodeLimits::default().max_ratio(1000);
/// assert_eq!(limits.metadata.max_ndim, 32);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// Limits for metadata.
    pub metadata: MetadataLimits,
    /// Maximum bytes that a chunk of strings or bytes may decode to.
    pub max_variable_nbytes: usize,
    /// Maximum number of decoded bytes per encoded byte of a chunk. A constant gigabyte in zstd has some 30,000.
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

impl DecodeLimits {
    /// Sets the limits for metadata.
    #[must_use]
    pub fn metadata(self, metadata: MetadataLimits) -> Self {
        DecodeLimits { metadata, ..self }
    }

    /// Sets the maximum bytes that a chunk of strings or bytes may decode to.
    #[must_use]
    pub fn max_variable_nbytes(self, max_variable_nbytes: usize) -> Self {
        DecodeLimits { max_variable_nbytes, ..self }
    }

    /// Sets the maximum number of decoded bytes per encoded byte of a chunk.
    #[must_use]
    pub fn max_ratio(self, max_ratio: u64) -> Self {
        DecodeLimits { max_ratio, ..self }
    }

    /// Returns the maximum decoded size of `encoded` bytes, by the ratio limit.
    pub(crate) fn decoded_nbytes(&self, encoded: usize) -> usize {
        usize::try_from(self.max_ratio).unwrap_or(usize::MAX).saturating_mul(encoded.max(1))
    }

    /// Checks by the ratio limit that `encoded` bytes may decode to `nbytes`.
    pub(crate) fn check_ratio(&self, nbytes: usize, encoded: usize) -> Result<()> {
        let (actual, limit) = (nbytes as u64, self.decoded_nbytes(encoded) as u64);
        if actual > limit {
            let what = "the decoded size of a chunk for its stored size (DecodeLimits.max_ratio)";
            return Err(ErrorKind::Limit { what, actual, limit }.into());
        }
        Ok(())
    }
}
