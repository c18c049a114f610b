//! Export protocols, one file each.

pub mod array_interface;
pub mod arrow;
pub mod buffer_producer;
pub mod buffer_protocol;
pub mod data_type;
pub mod dlpack;
pub mod exchange_api;
pub mod exchange_table;
pub mod jax;
pub mod numpy;
pub mod numpy_api;
pub mod numpy_string;
pub mod torch;
