//! Plans: which chunks a selection touches, which part of each, and its place in the result.

pub(crate) mod axis_grid;
pub(crate) mod axis_part;
pub(crate) mod chunk_parts;
pub(crate) mod field;
pub(crate) mod output_strides;
pub(crate) mod points_by_chunk;
