//! Blosc 1, in memory that the worker keeps.
//!
//! The frame format is c-blosc's, and the output is byte for byte the same if the compressor inside is the same. Memory
//! is handled differently: c-blosc allocates in each call and does not check for failure.
//!
//! 1. A frame is a header, the starts of its blocks, and the blocks ([`Frame`]). The block size, and whether blocks are
//!    compressed plane by plane, follow from the settings ([`Layout`]).
//! 2. A block is filtered by [`shuffle`] or [`bitshuffle`], which use the processor's widest vectors ([`vector`]), and
//!    then compressed by one of five [`Compressor`]s.
//! 3. [`encode`] reads each byte of its source once if others may write to it: it first moves each block to the
//!    worker's memory, by the filter or by a copy.
//! 4. [`Frame::decode`] and [`Frame::decode_range`] do not trust a frame: it is at most as large as its destination, no
//!    block is larger than the frame, and each block must decode to exactly its size.

mod bitshuffle;
mod codec;
mod compressor;
mod decode;
mod dispatch;
mod encode;
mod frame;
mod layout;
// For other processors, and compared with the other vectors in the tests.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
mod settings;
pub mod shuffle;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use codec::DEFINITION;

#[cfg(test)]
mod tests;
