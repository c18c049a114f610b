//! The four layouts as Python classes.

pub mod arrow_stream;
pub mod categorical;
pub mod consumers;
pub mod decoded_array;
pub mod masked_tensor;
pub mod masked_variable;
pub mod memory;
pub mod rebuild;
pub mod recycled_memory;
pub mod shown;
pub mod tensor;
pub mod variable;
