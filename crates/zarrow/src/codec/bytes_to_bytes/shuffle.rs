//! `numcodecs.shuffle`: the first bytes of all elements, then the second bytes, and so on.
//!
//! numcodecs: `elementsize` is 4 where version 2 leaves it out, and version 3 means the array's then. An element size of
//! one changes nothing. The bytes are a whole number of elements.

use super::setting;
use crate::codec::native::Failure;
use crate::error::{ErrorKind, Result};
use crate::metadata::CodecMetadata;
use std::mem::MaybeUninit;

/// Bytes of an element, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    element_size: usize,
}

impl Shuffle {
    /// The codec's name in metadata.
    pub const NAME: &'static str = "numcodecs.shuffle";

    /// Reads the configuration.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for an element size that is no positive integer; [`ErrorKind::Unsupported`] for zero.
    pub fn parse(metadata: &CodecMetadata) -> Result<Shuffle> {
        match setting::integer(metadata, "elementsize", 4, 0, i64::from(i32::MAX))? {
            0 => {
                let text = "elementsize is 0, which netCDF-C wrote where it shuffled by the size of its own type, \
                            and which numcodecs takes for no shuffle: the bytes do not say which they are";
                Err(ErrorKind::Unsupported(text.into()).into())
            }
            size => Ok(Shuffle { element_size: size as usize }),
        }
    }

    /// Undoes the shuffle of `source` to the start of `destination`; returns the bytes written.
    pub fn decode(self, source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, Failure> {
        let destination = destination.get_mut(..source.len()).ok_or(Failure::TooSmall)?;
        let count = self.count(source.len()).map_err(Failure::Corrupt)?;
        match self.element_size {
            1 => {
                destination.write_copy_of_slice(source);
            }
            2 => gather::<2>(source, destination, count),
            4 => gather::<4>(source, destination, count),
            8 => gather::<8>(source, destination, count),
            size => {
                for (position, plane) in source.chunks_exact(count.max(1)).enumerate() {
                    for (element, byte) in destination.chunks_exact_mut(size).zip(plane) {
                        element[position].write(*byte);
                    }
                }
            }
        }
        Ok(source.len())
    }

    /// Shuffles `source` to the start of `destination`; returns the bytes written.
    pub fn encode(self, source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, String> {
        let destination =
            destination.get_mut(..source.len()).ok_or("shuffle needs as much memory as it has bytes")?;
        let count = self.count(source.len())?;
        for (position, plane) in destination.chunks_exact_mut(count.max(1)).enumerate() {
            for (element, byte) in source.chunks_exact(self.element_size).zip(plane) {
                byte.write(element[position]);
            }
        }
        Ok(source.len())
    }

    fn count(self, nbytes: usize) -> Result<usize, String> {
        if nbytes.is_multiple_of(self.element_size) {
            return Ok(nbytes / self.element_size);
        }
        Err(format!("{nbytes} bytes are no whole number of elements of {} bytes", self.element_size))
    }
}

/// Writes elements of `N` bytes, each from its place in every plane: one pass over the destination.
fn gather<const N: usize>(source: &[u8], destination: &mut [MaybeUninit<u8>], count: usize) {
    let planes: [&[u8]; N] = std::array::from_fn(|position| &source[position * count..][..count]);
    for (number, element) in destination.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        for (byte, plane) in element.iter_mut().zip(planes) {
            byte.write(plane[number]);
        }
    }
}
