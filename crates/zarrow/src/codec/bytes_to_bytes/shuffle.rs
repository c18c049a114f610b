//! `numcodecs.shuffle`: the first bytes of all elements, then the second bytes, and so on.
//!
//! numcodecs: `elementsize` is 4 where version 2 leaves it out, and version 3 means the array's then. An element size of
//! one changes nothing. Bytes that are left over behind the last whole element stay in their place: numcodecs refuses them,
//! and HDF5 stores them so, whose chunks are read as they are by references to them.

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
        let count = source.len() / self.element_size;
        let (planes, rest) = source.split_at(count * self.element_size);
        let (elements, leftover) = destination.split_at_mut(planes.len());
        leftover.write_copy_of_slice(rest);
        match self.element_size {
            1 => {
                elements.write_copy_of_slice(planes);
            }
            2 => gather::<2>(planes, elements, count),
            4 => gather::<4>(planes, elements, count),
            8 => gather::<8>(planes, elements, count),
            size => {
                for (position, plane) in planes.chunks_exact(count.max(1)).enumerate() {
                    for (element, byte) in elements.chunks_exact_mut(size).zip(plane) {
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
        if !source.len().is_multiple_of(self.element_size) {
            return Err(format!(
                "{} bytes are no whole number of elements of {} bytes",
                source.len(),
                self.element_size
            ));
        }
        let count = source.len() / self.element_size;
        for (position, plane) in destination.chunks_exact_mut(count.max(1)).enumerate() {
            for (element, byte) in source.chunks_exact(self.element_size).zip(plane) {
                byte.write(element[position]);
            }
        }
        Ok(source.len())
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
