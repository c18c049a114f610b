//! Places: the memory of a result, and how decoded elements reach it.

pub(crate) mod axis;
pub(crate) mod caller_memory;
pub(crate) mod chunk_sink;
pub(crate) mod destination;
pub(crate) mod element_offsets;
pub(crate) mod nontemporal_copy;
pub(crate) mod output_claim;
pub(crate) mod placement;
pub(crate) mod read_bitmap;
pub(crate) mod result;
pub(crate) mod sentinel_masked;
pub(crate) mod sink;
pub(crate) mod stored_chunk;
pub(crate) mod transposition;
pub(crate) mod variable;
