//! From the protocols of other libraries to the four layouts, over the memory where it lies.
//!
//! Nothing that a producer says is trusted: extents, strides, addresses and types are checked before a byte is read, and
//! what fails the check is an error. That the addresses are the producer's memory is its promise.

pub mod arrow;
pub mod dlpack;
pub mod element;
mod imported;

pub use imported::Imported;
