//! Reading: from a selection to filled memory.

mod batch;
mod cache;
mod chunk;
mod destination;
mod input;
mod job;
mod part;
mod placement;
mod pool;
mod range;
mod read;
mod result;
mod scratch;
mod shard;
mod sink;
mod stream;
mod turns;
mod variable;
mod want;
mod whole;

pub use batch::Batch;
pub use pool::{num_threads, set_num_threads};

pub(crate) use batch::{Item, read_each, read_into as read_many_into, read_many};
pub(crate) use cache::Cache;
pub(crate) use destination::Destination;
pub(crate) use part::{AxisPart, whole_part};
pub(crate) use pool::generation;
pub(crate) use read::{Reader, read};
pub(crate) use scratch::{Codecs, Scratch, Worker};
pub(crate) use shard::read_index;
pub(crate) use sink::{Sink, c_strides};
