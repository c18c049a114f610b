//! Options for opening, reading and writing: limits against hostile stores, caches, durability.
//!
//! Options are built from their default by methods named as the fields, so that fields can be added.

use crate::error::{ErrorKind, Result};
use crate::metadata::MetadataLimits;
use crate::missing::MissingValues;
use crate::store::Durability;
use std::fmt;

/// Limits above anything in an honest store, so that a hostile one cannot exhaust memory or time.
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
}

/// Options for opening a hierarchy. Groups pass them on to the nodes below them.
///
/// ```
/// let options = zarrow::OpenOptions::default().cache_nbytes(1 << 30);
/// assert_eq!(options.durability, zarrow::store::Durability::None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Limits against hostile stores.
    pub limits: DecodeLimits,
    /// Maximum memory for each array's cache of decoded chunks, its bookkeeping included, in bytes: for reads that
    /// overlap. 0 turns the cache off. A chunk that was rewritten since is decoded again.
    pub cache_nbytes: usize,
    /// Durability when a write returns.
    pub durability: Durability,
}

impl OpenOptions {
    /// Sets the limits against hostile stores.
    #[must_use]
    pub fn limits(self, limits: DecodeLimits) -> Self {
        OpenOptions { limits, ..self }
    }

    /// Sets the maximum bytes of each array's cache of decoded chunks; 0 turns it off.
    #[must_use]
    pub fn cache_nbytes(self, cache_nbytes: usize) -> Self {
        OpenOptions { cache_nbytes, ..self }
    }

    /// Sets the durability when a write returns.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        OpenOptions { durability, ..self }
    }
}

/// Whether to stop: called from time to time, on the calling thread.
pub(crate) type Cancel<'a> = &'a dyn Fn() -> bool;

const NEVER: Cancel<'static> = &|| false;

/// Options for reads.
///
/// ```
/// use std::time::{Duration, Instant};
/// let (start, limit) = (Instant::now(), Duration::from_secs(60));
/// let is_late = || start.elapsed() > limit;
/// let options = zarrow::ReadOptions::default().cancel(&is_late);
/// assert!(options.missing.is_none());
/// ```
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct ReadOptions<'a> {
    /// Values that mark missing elements. With these the result has a masked layout; elements that are missing by
    /// their type stay missing.
    pub missing: Option<&'a MissingValues>,
    /// Whether to stop: called from time to time, on the calling thread. If it returns true, the read ends with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub cancel: Option<&'a dyn Fn() -> bool>,
}

impl<'a> ReadOptions<'a> {
    /// Sets the values that mark missing elements.
    #[must_use]
    pub fn missing(self, missing: &'a MissingValues) -> Self {
        ReadOptions { missing: Some(missing), ..self }
    }

    /// Sets the function that says whether to stop.
    #[must_use]
    pub fn cancel(self, cancel: &'a dyn Fn() -> bool) -> Self {
        ReadOptions { cancel: Some(cancel), ..self }
    }

    pub(crate) fn interrupted(&self) -> Cancel<'a> {
        self.cancel.unwrap_or(NEVER)
    }

    /// Returns `cancel` for a read into memory without a mask; an error if `missing` is set.
    pub(crate) fn strided(&self) -> Result<Cancel<'a>> {
        match self.missing {
            None => Ok(self.interrupted()),
            Some(_) => Err(ErrorKind::Unsupported("a mask, for a read into other memory".into()).into()),
        }
    }
}

impl<'a> From<&'a dyn Fn() -> bool> for ReadOptions<'a> {
    fn from(cancel: &'a dyn Fn() -> bool) -> Self {
        ReadOptions::default().cancel(cancel)
    }
}

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cancel = self.cancel.map(|_| "Fn() -> bool");
        formatter
            .debug_struct("ReadOptions")
            .field("missing", &self.missing)
            .field("cancel", &cancel)
            .finish()
    }
}

/// Options for writes.
///
/// ```
/// use zarrow::{WriteOptions, store::Durability};
/// let options = WriteOptions::default().durability(Durability::Full).write_empty_chunks(true);
/// assert!(options.write_empty_chunks);
/// ```
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct WriteOptions<'a> {
    /// Durability when the write returns.
    pub durability: Durability,
    /// Whether chunks with nothing but the fill value are stored. By default they are left out, and erased if they
    /// were stored before. In version 2, an array without a fill value always stores them.
    pub write_empty_chunks: bool,
    /// Whether to stop: called from time to time, on the calling thread. If it returns true, the write ends between
    /// chunks, with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub cancel: Option<&'a dyn Fn() -> bool>,
}

impl<'a> WriteOptions<'a> {
    /// Sets the durability when the write returns.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        WriteOptions { durability, ..self }
    }

    /// Sets whether chunks with nothing but the fill value are stored.
    #[must_use]
    pub fn write_empty_chunks(self, write_empty_chunks: bool) -> Self {
        WriteOptions { write_empty_chunks, ..self }
    }

    /// Sets the function that says whether to stop.
    #[must_use]
    pub fn cancel(self, cancel: &'a dyn Fn() -> bool) -> Self {
        WriteOptions { cancel: Some(cancel), ..self }
    }

    pub(crate) fn interrupted(&self) -> Cancel<'a> {
        self.cancel.unwrap_or(NEVER)
    }

    /// Returns the same options for a write that must not be stopped.
    pub(crate) fn without_cancel(&self) -> Self {
        WriteOptions { cancel: None, ..*self }
    }
}

impl fmt::Debug for WriteOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WriteOptions { durability, write_empty_chunks, cancel } = self;
        formatter
            .debug_struct("WriteOptions")
            .field("durability", durability)
            .field("write_empty_chunks", write_empty_chunks)
            .field("cancel", &cancel.map(|_| "Fn() -> bool"))
            .finish()
    }
}
