//! A Zarr v2 and v3 engine: it reads arrays of every memory layout into aligned memory, ready for exchange, and writes
//! them from anybody's memory.
//!
//! - [`open`] an array or a group in a [`store`];
//! - choose a [`Selection`] in NumPy's words;
//! - [`Array::read`] decodes it on all cores, straight to its place where that can be, and gives one of the four
//!   layouts of [`zarrow_array`];
//! - [`Array::write`] encodes [`Values`] from where they lie in the caller's memory, each chunk old or new, whole;
//! - a store that is malformed or hostile gives a typed [`Error`] with store, array, chunk and codec: never a panic,
//!   and never an allocation that checked metadata does not justify; and what a checksum guards is exact or an error.
//!
//! It does not know Python, and holds no thread before the first read of more than one chunk.

pub mod anndata;
mod array;
mod array_field;
pub mod arrow;
mod batch;
mod codec;
mod error;
mod exec;
mod group;
mod hierarchy;
mod memory;
mod missing;
mod open;
mod options;
mod selection;
mod visible;

pub mod metadata;
pub mod store;

pub use array::Array;
pub use array_field::ArrayField;
pub use batch::{read_many, read_many_strided};
pub use error::{Context, Error, ErrorKind, Result};
pub use exec::{Batch, Values, num_threads, set_num_threads};
pub use group::Group;
pub use hierarchy::{
    ArrayBuilder, AttributeChange, Existing, create_array, create_array_with, create_group, new_path,
};
pub use memory::Strided;
pub use metadata::ZarrFormat;
pub use missing::MissingValues;
pub use open::{Node, open, open_with};
pub use options::{DecodeLimits, OpenOptions, WriteOptions};
pub use selection::{AxisIndex, AxisSelection, Index, List, Selection};
pub use visible::visible;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
