//! Options for writes.

use crate::pool::{Cancel, NEVER};
use crate::store::Durability;
use std::fmt;

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
    /// Whether a write of all elements of a chunk inside the array replaces the chunk without reading the old one. By
    /// default, the elements beyond the array's edge are kept, since another writer may be appending.
    pub replace_edges: bool,
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

    /// Sets whether a chunk at the array's edge is replaced without reading the old one.
    #[must_use]
    pub fn replace_edges(self, replace_edges: bool) -> Self {
        WriteOptions { replace_edges, ..self }
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
        let WriteOptions { durability, write_empty_chunks, replace_edges, cancel } = self;
        formatter
            .debug_struct("WriteOptions")
            .field("durability", durability)
            .field("write_empty_chunks", write_empty_chunks)
            .field("replace_edges", replace_edges)
            .field("cancel", &cancel.map(|_| "Fn() -> bool"))
            .finish()
    }
}
