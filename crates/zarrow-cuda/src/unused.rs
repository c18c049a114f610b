//! Exported device memory after its last use, until it is freed.

use crate::driver::functions::Address;
use crate::stream::Stream;
use smallvec::SmallVec;

/// Other libraries that have used exported memory.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    /// Permanent streams.
    pub(crate) streams: SmallVec<[Stream; 2]>,
    /// Whether there are users in other streams.
    pub(crate) has_others: bool,
}

/// Exported memory after its last reference was dropped.
#[derive(Debug)]
pub(crate) struct Unused {
    pub(crate) address: Address,
    pub(crate) stream: Stream,
    pub(crate) consumers: Consumers,
}
