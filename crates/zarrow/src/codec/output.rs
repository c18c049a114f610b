//! Output of a decoder: memory of the expected size, or a vector.

use std::mem::MaybeUninit;

/// Output of a chain's last stage.
#[derive(Debug)]
pub enum Output<'a> {
    /// Memory to fill completely.
    Exact(&'a mut [MaybeUninit<u8>]),
    /// An empty vector, and its maximum length.
    Growing(&'a mut Vec<u8>, usize),
}
