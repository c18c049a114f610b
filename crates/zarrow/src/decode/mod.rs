//! Decoding of one chunk, given its stored bytes.

pub(crate) mod cache;
pub(crate) mod chunk;
pub(crate) mod chunk_cache;
pub(crate) mod disk_cache;
pub(crate) mod encoded_to_sink;
pub(crate) mod missing_chunk;
pub(crate) mod open_chunk;
pub(crate) mod range;
pub(crate) mod reader;
pub(crate) mod shard;
pub(crate) mod shard_share;
pub(crate) mod stage_times;
