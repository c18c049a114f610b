//! Options for opening: limits against hostile stores, caches, durability.

use crate::codec::DecodeLimits;
use crate::store::Durability;
use crate::store::remote::Coalescing;

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
    /// How requests for near ranges of one value are merged; `None` for the store's own policy. A store that answers
    /// immediately, such as a folder, gets no such requests.
    pub coalescing: Option<Coalescing>,
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

    /// Sets how requests for near ranges of one value are merged.
    #[must_use]
    pub fn coalescing(self, coalescing: Option<Coalescing>) -> Self {
        OpenOptions { coalescing, ..self }
    }
}
