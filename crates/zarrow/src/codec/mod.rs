//! Codecs: from the metadata's list to a chain that decodes and encodes; and [`register`], for user-defined codecs.

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
pub(crate) mod documents;
mod encoded_chunk;
mod failure;
mod input;
pub(crate) mod lent;
mod limits;
pub(crate) mod number_type;
mod order;
mod parameter;
mod registry;
mod worker;

pub(crate) use array_to_array::number_named;
pub(crate) use array_to_bytes::shard_index::ShardIndex;
pub(crate) use array_to_bytes::sharding::Sharding;
pub(crate) use array_to_bytes::vlen::VariableChunk;
pub(crate) use array_to_bytes::{Layout, wrong_elements_size};
pub(crate) use built_in::find as definition;
pub(crate) use byte_order::Swap;
pub(crate) use bytes_to_bytes::{BytesToBytes, Output, decode, decode_checksums, decode_range};
pub(crate) use chain::Chain;
pub(crate) use chunk_elements::{ChunkElements, mismatch};
pub(crate) use compress::{Encoded, FromLent, encode, encode_lent};
pub(crate) use context::{Codecs, Scratch};
pub(crate) use decoded::Decoded;
pub(crate) use documents::KnownCodecs;
pub(crate) use encoded_chunk::EncodedChunk;
pub(crate) use input::{FEW_NBYTES, Input};
pub use limits::DecodeLimits;
pub(crate) use order::stages;
pub(crate) use parameter::check_parameters;
pub use registry::{ChunkDescription, Codec, CodecFailure, DecodedBytes, register};
pub(crate) use worker::Worker;

pub use crate::metadata::CodecKind;
