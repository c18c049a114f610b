//! Tables: groups with a column in each array.

pub mod anndata;
pub mod arrow;
