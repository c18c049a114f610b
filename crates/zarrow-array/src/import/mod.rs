//! Import from other libraries to the four layouts, without a copy.
//!
//! The producer's description is not trusted: extents, strides, addresses and types are checked before a byte is
//! read, and failures are errors. That the addresses belong to the producer's memory is its promise.

pub mod arrow;
pub mod dlpack;
pub mod element;
mod imported;

pub use imported::Imported;
