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

pub mod codec;
mod decode;
mod error;
pub mod metadata;
mod node;
mod place;
mod plan;
mod pool;
mod read;
mod selection;
pub mod store;
mod write;

pub use codec::{CodecStages, DecodeLimits};
pub use decode::chunk_cache::CacheCounts;
pub use decode::stage_times::{StageSeconds, StageTimes};
pub use error::visible::visible;
pub use error::warnings::with_warnings;
pub use error::{Context, Error, ErrorKind, Result};
pub use metadata::ZarrFormat;
pub use metadata::missing_values::MissingValues;
pub use node::any::{Members, Node};
pub use node::array::Array;
pub use node::array::detached::Detached;
pub use node::array::detached_write::ValueSource;
pub use node::array::field::FieldSelection;
pub use node::array::request::ReadRequest;
pub use node::array::stored_chunks::StoredChunks;
pub use node::array::write_many::write_many;
pub use node::array::write_request::WriteRequest;
pub use node::batch::{read_each, read_many, stacked_out};
pub use node::group::Group;
pub use node::hierarchy::{
    AppendParts, ArrayBuilder, AttributeChange, DimensionName, DocumentChange, Existing,
    Members as NewMembers, NewFillValue, NewNode, Source, commit_documents, create_absent_group, create_all,
    create_array, create_array_from, create_array_with, create_group, create_group_with, new_path,
    with_fixed_shapes,
};
pub use node::listed::ListedMembers;
pub use node::open::{expect_format, find, open, open_members, open_with};
pub use node::open_detached::open_detached;
pub use node::open_options::OpenOptions;
pub use node::table::{anndata, arrow};
pub use place::caller_memory::Strided;
pub use place::chunk_sink::ChunkSink;
pub use place::stored_chunk::{ChunkAxis, ReceivedChunk, StoredChunk};
pub use pool::idle_memory::{kept as idle_nbytes, release as release_idle};
pub use pool::{num_threads, set_num_threads};
pub use read::Batch;
pub use read::output_memory::{ColumnMajor, NewMemory, ReadTarget, Stored};
pub use selection::{AxisIndex, AxisSelection, Index, IntoSelection, List, Part, Selection};
pub use store::remote::{BodyAlloc, BodyMemory};
pub use write::options::WriteOptions;
pub use write::values::Values;
pub use zarrow_array::{self, DataType, DecodedArray, Number, Tensor};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
