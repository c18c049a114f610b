//! How a hierarchy is opened, with what is refused as hostile and what is kept in memory; and how it is read and written.
//!
//! Options are made from their default by the methods that bear the fields' names, so that fields can be added.

use crate::error::{ErrorKind, Result};
use crate::metadata::MetadataLimits;
use crate::missing::MissingValues;
use crate::store::Durability;
use std::fmt;

/// Limits that no honest store meets, so that a hostile one cannot take memory or time without end.
///
/// ```
/// let limits = zarrow::DecodeLimits::default().max_ratio(1000);
/// assert_eq!(limits.metadata.max_ndim, 32);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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

impl DecodeLimits {
    /// What metadata may ask for.
    #[must_use]
    pub fn metadata(self, metadata: MetadataLimits) -> Self {
        DecodeLimits { metadata, ..self }
    }

    /// The most bytes that a chunk of strings or bytes may decode to.
    #[must_use]
    pub fn max_variable_nbytes(self, max_variable_nbytes: usize) -> Self {
        DecodeLimits { max_variable_nbytes, ..self }
    }

    /// The most bytes that one encoded byte of a chunk may decode to.
    #[must_use]
    pub fn max_ratio(self, max_ratio: u64) -> Self {
        DecodeLimits { max_ratio, ..self }
    }
}

/// How a hierarchy is opened. Groups hand it on to what is below them.
///
/// ```
/// let options = zarrow::OpenOptions::default().cache_nbytes(1 << 30);
/// assert_eq!(options.durability, zarrow::store::Durability::None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// What is refused.
    pub limits: DecodeLimits,
    /// Bytes of memory that each array's cache of decoded chunks takes, its own bookkeeping among them, for reads that
    /// overlap; 0 keeps none. A chunk that was rewritten since is decoded again.
    pub cache_nbytes: usize,
    /// What has reached the disk when a write returns.
    pub durability: Durability,
}

impl OpenOptions {
    /// What is refused.
    #[must_use]
    pub fn limits(self, limits: DecodeLimits) -> Self {
        OpenOptions { limits, ..self }
    }

    /// Bytes of memory that each array's cache of decoded chunks takes; 0 keeps none.
    #[must_use]
    pub fn cache_nbytes(self, cache_nbytes: usize) -> Self {
        OpenOptions { cache_nbytes, ..self }
    }

    /// What has reached the disk when a write returns.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        OpenOptions { durability, ..self }
    }
}

/// Whether to stop: asked now and then, on the calling thread.
pub(crate) type Cancel<'a> = &'a dyn Fn() -> bool;

const NEVER: Cancel<'static> = &|| false;

/// How elements are read.
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
    /// Values that mean that an element is missing. The result has a masked layout then; elements that are missing by
    /// their type stay so.
    pub missing: Option<&'a MissingValues>,
    /// Whether to stop. It is asked now and then, on the calling thread; where it says true the read ends with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub cancel: Option<&'a dyn Fn() -> bool>,
}

impl<'a> ReadOptions<'a> {
    /// Values that mean that an element is missing.
    #[must_use]
    pub fn missing(self, missing: &'a MissingValues) -> Self {
        ReadOptions { missing: Some(missing), ..self }
    }

    /// Whether to stop.
    #[must_use]
    pub fn cancel(self, cancel: &'a dyn Fn() -> bool) -> Self {
        ReadOptions { cancel: Some(cancel), ..self }
    }

    pub(crate) fn interrupted(&self) -> Cancel<'a> {
        self.cancel.unwrap_or(NEVER)
    }

    /// Whether to stop, of a read into memory that has no place for a mask.
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

/// How elements are written.
///
/// ```
/// use zarrow::{WriteOptions, store::Durability};
/// let options = WriteOptions::default().durability(Durability::Full).write_empty_chunks(true);
/// assert!(options.write_empty_chunks);
/// ```
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct WriteOptions<'a> {
    /// What has reached the disk when the write returns.
    pub durability: Durability,
    /// Whether chunks are stored that are nothing but the fill value. They are left out by default, and erased where
    /// they were stored before; where version 2 has no fill value they are always stored.
    pub write_empty_chunks: bool,
    /// Whether to stop. It is asked now and then, on the calling thread; where it says true the write ends between
    /// chunks, with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub cancel: Option<&'a dyn Fn() -> bool>,
}

impl<'a> WriteOptions<'a> {
    /// What has reached the disk when the write returns.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        WriteOptions { durability, ..self }
    }

    /// Whether chunks are stored that are nothing but the fill value.
    #[must_use]
    pub fn write_empty_chunks(self, write_empty_chunks: bool) -> Self {
        WriteOptions { write_empty_chunks, ..self }
    }

    /// Whether to stop.
    #[must_use]
    pub fn cancel(self, cancel: &'a dyn Fn() -> bool) -> Self {
        WriteOptions { cancel: Some(cancel), ..self }
    }

    pub(crate) fn interrupted(&self) -> Cancel<'a> {
        self.cancel.unwrap_or(NEVER)
    }

    /// The same of a write that has to be finished.
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
