//! Codecs: from the metadata's list to a chain that decodes and encodes; [`register`], for user-defined codecs; and
//! [`parse_v3`] and [`parse_v2_array`], which read metadata with the names of the codecs.

pub(crate) mod array_to_array;
mod array_to_bytes;
mod blosc;
pub(crate) mod borrowed;
mod built_in;
mod bytes_to_bytes;
mod chain;
mod chunk_elements;
mod compile;
mod compress;
mod context;
mod decoded;
mod decompress;
mod definition;
mod documents;
mod encoded_chunk;
mod endian;
mod failure;
mod limits;
mod new_array_codecs;
pub(crate) mod number_type;
mod order;
mod output;
mod parameter;
mod permutation;
mod register_user_codec;
mod stages;
mod stored_bytes;
mod user_codecs;
mod variable_chunk;
mod worker;

pub(crate) use array_to_bytes::shard_index::ShardIndex;
pub(crate) use chain::{Chain, InnerChunks, Layout};
pub(crate) use chunk_elements::{ChunkElements, mismatch};
pub(crate) use compile::compile;
pub(crate) use compress::{Encoded, Encoder, FromBorrowed, encode, encode_borrowed};
pub(crate) use context::{Codecs, Scratch};
pub(crate) use decoded::Decoded;
pub(crate) use decompress::{
    BytesToBytes, Decoder, decode, decode_checksums, decode_elements, decode_range, wrong_elements_size,
};
pub(crate) use documents::KnownCodecs;
pub use documents::{parse_v2_array, parse_v3};
pub(crate) use encoded_chunk::EncodedChunk;
pub(crate) use endian::Swap;
pub use limits::DecodeLimits;
pub(crate) use output::{Output, Uninit};
pub use register_user_codec::register;
pub use stages::CodecStages;
pub(crate) use stored_bytes::{FEW_NBYTES, Input};
pub use user_codecs::{ChunkDescription, Codec, CodecFailure, DecodedBytes};
pub(crate) use variable_chunk::VariableChunk;
pub(crate) use worker::Worker;

pub use crate::metadata::CodecKind;
