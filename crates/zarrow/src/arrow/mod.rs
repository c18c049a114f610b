//! Arrays and groups as Arrow streams: tables that are read while they are consumed.
//!
//! - A [`Table`] is columns of one length; it knows its types and reads nothing.
//! - [`Table::stream`] gives Arrow's C stream: each batch is read when a consumer asks for it, from whole chunks where
//!   the columns' chunks go together, so that memory is bounded by a batch.
//! - A stream of an [`Array`](crate::Array) by itself is one column without a name: its rows along the first axis.

mod batches;
mod column;
mod table;

pub use column::{Column, MaskChoice};
pub use table::{Table, TableOptions};
