//! GPU tensors, and reads and writes with them.

pub mod arguments;
mod arrow;
mod arrow_import;
pub mod decompress;
mod dlpack;
pub mod import;
mod interface;
pub mod memory;
pub mod read;
mod staged;
pub mod tensor;
pub mod write;
