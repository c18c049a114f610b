//! Reading: from a selection to filled memory.

mod chunk;
mod destination;
mod input;
mod part;
mod placement;
mod pool;
mod read;
mod scratch;
mod sink;
mod variable;
mod whole;

pub use pool::{num_threads, set_num_threads};

pub(crate) use read::{Reader, read};
pub(crate) use scratch::Codecs;
