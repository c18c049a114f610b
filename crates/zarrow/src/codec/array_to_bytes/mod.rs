//! Codecs from array to bytes: a file each.

#[cfg(feature = "zarrs")]
pub mod fallback;
pub mod indexed_vlen;
pub mod optional;
pub mod packbits;
pub mod pcodec;
pub mod shard_index;
pub mod sharding;
pub mod vlen;
