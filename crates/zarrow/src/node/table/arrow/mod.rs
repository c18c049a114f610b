//! Arrays and groups as Arrow streams: tables that are read while they are consumed.
//!
//! - A [`Table`] has columns of equal length; it knows their types without reading data.
//! - [`Table::stream`] returns an Arrow C stream. Each batch is read when a consumer requests it, from whole chunks if
//!   the columns' chunks are aligned, so that one batch bounds the memory.
//! - A stream of a single [`Array`](crate::Array) is one unnamed column: its rows along the first axis.

mod batches;
mod column;
mod table;

pub use column::{Column, MaskChoice};
pub use table::{Table, TableOptions};
