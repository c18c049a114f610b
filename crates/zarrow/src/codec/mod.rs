//! Codecs: from the metadata's list to a chain that decodes and encodes; and [`register`], for codecs of your own.

pub(crate) mod array_to_array;
mod array_to_bytes;
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
mod input;
pub(crate) mod number_type;
mod order;
mod parameter;
mod registry;
mod worker;

pub(crate) use array_to_array::{Filtered, number_named};
pub(crate) use array_to_bytes::indexed_vlen::{IndexedVlen, NAME as INDEXED_VLEN};
pub(crate) use array_to_bytes::optional::{HEADER_NBYTES as OPTIONAL_HEADER_NBYTES, OptionalCodec};
pub(crate) use array_to_bytes::pcodec::Pcodec;
pub(crate) use array_to_bytes::shard_index::ShardIndex;
pub(crate) use array_to_bytes::sharding::Sharding;
pub(crate) use array_to_bytes::vlen::{VariableChunk, check_text, encode_variable};
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
pub(crate) use input::{FEW_NBYTES, Input};
pub(crate) use order::{kind_in_v2, stages};
pub(crate) use parameter::check_parameters;
pub use registry::{ChunkDescription, Codec, CodecFailure, CodecKind, DecodedBytes, register};
pub(crate) use registry::{kind_of, most_encoded};
pub(crate) use worker::Worker;
