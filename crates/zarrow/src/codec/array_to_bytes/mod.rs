//! Array-to-bytes codecs. Each is a file with its names, parameters, bounds and an [`ArrayToBytes`], and a line below.
//!
//! 1. A codec that decodes whole chunks of elements of a fixed size has three functions: `most_encoded`, `decode_whole`
//!    and `encode`. `pcodec.rs` is an example.
//! 2. A codec that splits a chunk into parts (a mask and elements, offsets and bytes) has a [`Chain`] for each part,
//!    which decodes and encodes it, at any depth.
//! 3. A codec does not see the result of a read. It decodes a run of elements to contiguous memory in C order. The
//!    caller passes the memory of the result where the run is contiguous there, and moves the elements otherwise.
//!
//! [`ArrayToBytes`]: crate::codec::chain::ArrayToBytes
//! [`Chain`]: crate::codec::Chain

pub mod shard_index;
pub mod user_codec;

crate::codec::definition::codecs! {
    bytes: DEFINITION;
    indexed_vlen: DEFINITION;
    optional: DEFINITION;
    packbits: DEFINITION;
    pcodec: DEFINITION;
    sharding: DEFINITION;
    vlen: UTF8, BYTES, EITHER;
}
