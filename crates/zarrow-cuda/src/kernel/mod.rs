//! The kernels: loaded once per device, and launched.
//!
//! The CUDA C++ source is in the crate's folder `kernels`. It is compiled before publication to PTX for CUDA 12.0
//! and compute capability 7.0, which every later driver compiles for its device on load.

pub mod functions;
mod launch;
pub mod structs;
pub mod walk;

/// Returns the largest kernel width that divides elements of `item_nbytes`.
#[must_use]
pub fn width(item_nbytes: usize) -> usize {
    1 << item_nbytes.trailing_zeros().min(4)
}
