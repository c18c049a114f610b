//! Export of arrays to other libraries: DLPack tensors and Arrow arrays over the same memory.

pub mod arrow;
pub mod arrow_abi;
pub mod arrow_stream;
pub mod dlpack;
