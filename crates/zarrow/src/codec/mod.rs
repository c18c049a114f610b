//! Codecs: from the metadata's list to a chain that decodes and encodes.

mod byte_order;
mod bytes_to_bytes;
mod chain;
mod compress;
mod fallback;
mod filter;
mod indexed_vlen;
pub(crate) mod native;
pub(crate) mod native_compress;
mod optional;
mod order;
mod packbits;
mod pcodec;
mod shard_index;
mod sharding;
mod transpose;
mod vlen;

pub(crate) use byte_order::Swap;
pub(crate) use bytes_to_bytes::{BytesToBytes, Output, between_limit, decode, decode_range};
pub(crate) use chain::{ArrayToBytes, Chain};
pub(crate) use compress::{Encoded, FromLent, encode, encode_lent};
pub(crate) use filter::{Filtered, number_named};
pub(crate) use indexed_vlen::{IndexedVlen, NAME as INDEXED_VLEN};
pub(crate) use optional::{HEADER as OPTIONAL_HEADER, OptionalCodec};
pub(crate) use pcodec::Pcodec;
pub(crate) use shard_index::ShardIndex;
pub(crate) use sharding::Sharding;
pub(crate) use vlen::{VariableChunk, check_text, encode_variable};
