//! Output of a decoder: memory of the expected size, or a vector.

use std::mem::MaybeUninit;

/// Memory to fill, which may not be initialized.
pub type Uninit = [MaybeUninit<u8>];

/// Output of a chain's last stage.
#[derive(Debug)]
pub enum Output<'a> {
    /// Memory to fill completely.
    Exact(&'a mut Uninit),
    /// An empty vector, and its maximum length.
    Growing(&'a mut Vec<u8>, usize),
}
