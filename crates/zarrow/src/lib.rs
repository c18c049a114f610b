//! A Zarr v2 and v3 engine. It reads arrays of every memory layout into aligned memory, ready for exchange, and writes
//! them from any memory.
//!
//! - [`open`] an array or a group in a [`store`].
//! - Choose a [`Selection`] as in NumPy.
//! - [`Array::read`] decodes it on all cores, straight into the result where possible, and returns one of the four
//!   layouts of [`zarrow_array`].
//! - [`Array::write`] encodes [`Values`] straight from the caller's memory. Each chunk is written whole or not at all.
//! - A malformed or hostile store gives a typed [`Error`] with store, array, chunk and codec. It never causes a panic,
//!   or an allocation that the checked metadata do not justify. Data with a checksum are exact, or reading them is an
//!   error.
//!
//! The crate is independent of Python. It starts no thread before the first read of more than one chunk.

mod absent;
pub mod anndata;
mod array;
mod array_description;
mod array_detached;
mod array_field;
mod array_read;
pub mod arrow;
mod batch;
pub mod codec;
mod codec_calls;
mod error;
mod exec;
mod group;
mod hierarchy;
mod known_documents;
mod listed;
mod memory;
mod missing;
mod node_documents;
mod open;
mod open_detached;
mod options;
mod selection;
mod stored_chunks;
mod visible;
mod warnings;

pub mod metadata;
pub mod store;

pub use array::Array;
pub use array_description::CodecStages;
pub use array_detached::Detached;
pub use array_field::ArrayField;
pub use batch::{read_each, read_many, read_many_strided, read_many_with};
pub use error::{Context, Error, ErrorKind, Result};
pub use exec::{
    Batch, ChunkAxis, ChunkSink, LandedChunk, StoredChunk, ValueSource, Values, idle_nbytes, num_threads,
    release_idle, set_num_threads,
};
pub use group::{Group, Members};
pub use hierarchy::{
    ArrayBuilder, AttributeChange, DimensionName, Existing, NewFillValue, Source, create_absent_group,
    create_array, create_array_from, create_array_with, create_group, new_path,
};
pub use listed::ListedMembers;
pub use memory::Strided;
pub use metadata::ZarrFormat;
pub use missing::MissingValues;
pub use open::{Node, expect_format, find, open, open_members, open_with};
pub use open_detached::open_detached;
pub use options::{DecodeLimits, OpenOptions, ReadOptions, WriteOptions};
pub use selection::{AxisIndex, AxisSelection, Index, IntoSelection, List, Part, Selection};
pub use store::remote::{BodyAlloc, BodyMemory};
pub use stored_chunks::StoredChunks;
pub use visible::visible;
pub use warnings::with_warnings;
pub use zarrow_array::{self, DataType, DecodedArray, Number, Tensor};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
