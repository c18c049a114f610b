//! GPU tensors, and reads and writes with them.

mod arguments;
mod arrow;
mod arrow_import;
pub mod decompress;
mod dlpack;
mod import;
mod interface;
pub mod memory;
pub mod read;
mod staged;
pub mod tensor;
pub mod write;
