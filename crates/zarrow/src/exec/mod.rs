//! Reading, from a selection to filled memory; and writing, from memory to chunks.

mod batch;
mod bitmap;
mod cache;
mod cells;
mod chunk;
mod destination;
mod elements;
mod field;
mod input;
mod job;
mod marked;
mod open_chunk;
mod optional;
mod output_strides;
mod part;
mod placement;
mod pool;
mod range;
mod read;
mod result;
mod scratch;
mod shard;
mod side;
mod sink;
mod stream;
mod transposition;
mod turns;
mod variable;
mod want;
mod write;

pub use batch::Batch;
pub use pool::{num_threads, set_num_threads};
pub use write::Values;

pub(crate) use batch::{Item, read_each, read_into as read_many_into, read_many};
pub(crate) use cache::Cache;
pub(crate) use destination::Destination;
pub(crate) use field::FieldPlace;
pub(crate) use open_chunk::{Located, SharedChunk};
pub(crate) use output_strides::OutputStrides;
pub(crate) use part::{AxisPart, PerAxis, whole_part};
pub(crate) use pool::run;
pub(crate) use read::{Reader, read};
pub(crate) use scratch::{Codecs, Scratch};
pub(crate) use sink::{Decoded, Sink, c_strides};
pub(crate) use write::{Elements, Writer};
