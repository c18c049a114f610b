//! Blosc 1, on memory that the worker keeps.
//!
//! The frame is c-blosc's, and so is what is written, to the byte where the compressor inside is the same one. What is not
//! its own is memory: c-blosc takes some for each call and does not look whether it got any.
//!
//! 1. A frame is a header, the starts of its blocks, and the blocks ([`Frame`]). How large a block is, and whether it is
//!    compressed plane by plane, follows from the settings ([`Layout`]).
//! 2. A block is filtered, by [`shuffle`] or [`bitshuffle`], which work as many bytes at a time as the processor can
//!    ([`vector`]), and then compressed by one of five [`Compressor`]s.
//! 3. [`encode`] reads each byte of its source once, where others may write to it: a block is moved to the worker's memory
//!    first, by its filter or by a copy.
//! 4. [`Frame::decode`] and [`Frame::decode_range`] trust nothing that a frame says: it is at most as large as the
//!    place that it is decoded to, no block is larger than the frame, and each has to give exactly its size.

mod bitshuffle;
mod codec;
mod compressor;
mod decode;
mod encode;
mod frame;
mod layout;
// Where the processor is another one, and beside the others in the tests.
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
