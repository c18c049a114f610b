//! Codecs: from the metadata's list to a chain that decodes and encodes; and [`register`], for codecs of your own.

mod blosc;
mod built_in;
mod byte_order;
mod bytes_to_bytes;
mod chain;
mod chunk_elements;
mod compress;
mod context;
mod decoded;
mod definition;
mod failure;
#[cfg(feature = "zarrs")]
mod fallback;
pub(crate) mod filter;
mod indexed_vlen;
pub(crate) mod number_type;
mod optional;
mod order;
mod packbits;
mod parameter;
mod pcodec;
mod registry;
mod shard_index;
mod sharding;
mod transpose;
mod vlen;

pub(crate) use built_in::find as definition;
pub(crate) use byte_order::Swap;
pub(crate) use bytes_to_bytes::{
    BytesToBytes, Output, between_limit, decode, decode_checksums, decode_range,
};
pub(crate) use chain::{ArrayToBytes, Chain};
pub(crate) use chunk_elements::ChunkElements;
pub(crate) use compress::{Encoded, FromLent, encode, encode_lent};
pub(crate) use context::{Codecs, Scratch};
pub(crate) use decoded::Decoded;
pub(crate) use filter::{Filtered, number_named};
pub(crate) use indexed_vlen::{IndexedVlen, NAME as INDEXED_VLEN};
pub(crate) use optional::{HEADER_NBYTES as OPTIONAL_HEADER_NBYTES, OptionalCodec};
pub(crate) use order::stages;
pub(crate) use parameter::check_parameters;
pub(crate) use pcodec::Pcodec;
pub use registry::{ChunkDescription, Codec, CodecFailure, CodecKind, DecodedBytes, register};
pub(crate) use registry::{kind_of, most_encoded};
pub(crate) use shard_index::ShardIndex;
pub(crate) use sharding::Sharding;
pub(crate) use vlen::{VariableChunk, check_text, encode_variable};
