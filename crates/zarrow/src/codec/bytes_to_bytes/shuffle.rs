//! `numcodecs.shuffle`: the first bytes of all elements, then the second bytes, and so on.
//!
//! In numcodecs, a missing `elementsize` means 4 in version 2 and the array's element size in version 3. An element
//! size of one changes nothing. Trailing bytes after the last whole element stay in place: numcodecs refuses them, but
//! HDF5 stores them this way, and references can point to its chunks.

use super::setting;
use crate::codec::blosc::shuffle::{shuffle, unshuffle};
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Refusal};
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Decoder, Encoder, Scratch, Uninit};
use crate::error::{ErrorKind, Result};
use crate::metadata::NumcodecsForm;
use crate::metadata::{CodecMetadata, ZarrFormat};
use serde_json::{Value, json};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.shuffle"],
    parameters: &[("elementsize", ParameterType::Integer)],
    numcodecs: Some(NumcodecsForm {
        read: |configuration, item_size, format| {
            let size = configuration.entry("elementsize").or_insert(Value::Null);
            if *size == json!(0) && item_size == 1 {
                // Shuffling by one byte is the same as not shuffling.
                *size = json!(1);
            } else if size.is_null() {
                *size = if format == ZarrFormat::V2 { json!(4) } else { json!(item_size) };
            }
            Ok(false)
        },
        ..NumcodecsForm::SAME
    }),
    stage: Stage::Compressor {
        decoder: |metadata| Ok(Box::new(Shuffle::parse(metadata)?)),
        encoder: |metadata| Ok(Box::new(Shuffle::parse(metadata)?)),
    },
    ..Definition::PLAIN
};

/// Bytes of an element, at least 1.
#[derive(Debug)]
struct Shuffle {
    element_size: usize,
}

impl Shuffle {
    /// Parses the configuration.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for an element size that is not a positive integer; [`ErrorKind::Unsupported`] for zero.
    fn parse(metadata: &CodecMetadata) -> Result<Shuffle> {
        match setting::integer(metadata, "elementsize", 4, 0, i64::from(i32::MAX))? {
            0 => {
                let text = "elementsize is 0, which netCDF-C writes for the size of the data type, \
                            but numcodecs for no shuffle: the chunks do not show which one applies";
                Err(ErrorKind::Unsupported(text.into()).into())
            }
            size => Ok(Shuffle { element_size: size as usize }),
        }
    }
}

impl Decoder for Shuffle {
    fn decode(&self, source: &[u8], destination: &mut Uninit, _: &mut Codecs) -> Result<usize, Failure> {
        let destination = destination.get_mut(..source.len()).ok_or(Failure::TooSmall)?;
        let count = source.len() / self.element_size;
        let (planes, rest) = source.split_at(count * self.element_size);
        let (elements, leftover) = destination.split_at_mut(planes.len());
        leftover.write_copy_of_slice(rest);
        unshuffle(planes, count, elements, self.element_size);
        Ok(source.len())
    }

    fn max_ratio(&self) -> usize {
        1
    }

    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        Ok(source.len())
    }

    fn encoded_size(&self, nbytes: usize) -> Option<usize> {
        Some(nbytes)
    }
}

impl Encoder for Shuffle {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, _: &mut Codecs) -> Result<usize> {
        if !source.len().is_multiple_of(self.element_size) {
            let (nbytes, size) = (source.len(), self.element_size);
            let text = format!("{nbytes} bytes are not a whole number of elements of {size} bytes");
            return Err(Refusal::Unsupported(text).into());
        }
        let destination = scratch.take(source.len())?;
        let count = source.len() / self.element_size;
        shuffle(source.into(), destination, count, self.element_size);
        Ok(source.len())
    }
}
