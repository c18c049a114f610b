//! From the protocols of other libraries to the four layouts: the memory as it lies, whoever owns it.
//!
//! Nothing that a producer says is believed: extents, strides, addresses and types are checked before a byte is
//! read, and what cannot be is an error. That the addresses are the producer's memory is its promise.

pub mod arrow;
pub mod dlpack;
pub mod element;
mod imported;

pub use imported::Imported;
