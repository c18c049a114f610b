//! Effects of filters: on elements, on words, on the shape.

use crate::codec::user_codecs::UserCodec;
use crate::codec::{ChunkElements, Decoded};
use crate::error::Result;
use std::fmt::Debug;
use zarrow_array::DataType;

/// A filter of elements of a fixed size.
pub trait Values: Debug + Send + Sync {
    /// Encodes the elements.
    ///
    /// # Errors
    /// [`BadValue`](crate::ErrorKind::BadValue) if an element cannot be stored by this filter;
    /// [`zarrow_array::Error::OutOfMemory`].
    fn encode(&self, elements: Vec<u8>) -> Result<Vec<u8>>;

    /// Decodes `count` elements.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt); [`zarrow_array::Error::OutOfMemory`].
    fn decode(&self, stored: Vec<u8>, count: usize) -> Result<Vec<u8>>;

    /// Returns the stored shape of a chunk of `shape`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::ShapeOverflow`].
    fn stored_shape(&self, shape: &[u64]) -> Result<Vec<u64>> {
        Ok(shape.to_vec())
    }
}

/// A filter that turns words into numbers.
pub trait Words: Debug + Send + Sync {
    /// Returns the numbers of these words.
    ///
    /// # Errors
    /// [`BadValue`](crate::ErrorKind::BadValue) if a word's number does not fit the type;
    /// [`zarrow_array::Error::OutOfMemory`].
    fn encode(&self, words: ChunkElements<'_>) -> Result<Vec<u8>>;

    /// Returns the words of these numbers, at most `limit` bytes.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit); [`zarrow_array::Error::OutOfMemory`].
    fn decode(&self, stored: &[u8], limit: usize) -> Result<Decoded>;
}

/// A filter of the shape alone: the elements do not change, in C order.
pub trait Shape: Debug + Send + Sync {
    /// Returns the stored shape of a chunk of `shape`.
    ///
    /// # Errors
    /// [`BadCodec`](crate::ErrorKind::BadCodec) if the stored shape would have another number of elements.
    fn stored(&self, shape: &[u64]) -> Result<Vec<u64>>;
}

/// Effect of a filter.
#[derive(Debug)]
pub enum Filter {
    /// Changes the elements, which are stored in this type.
    Values(Box<dyn Values>, DataType),
    /// Turns words into numbers of this type.
    Words(Box<dyn Words>, DataType),
    /// Changes the shape.
    Shape(Box<dyn Shape>),
    /// A user-defined codec: any effect that keeps the number of elements and their type.
    UserCodec(UserCodec),
}

impl Filter {
    /// Returns the type of the stored elements, for elements of `data_type`.
    pub fn stored_type(&self, data_type: &DataType) -> DataType {
        match self {
            Filter::Values(_, stored) | Filter::Words(_, stored) => stored.clone(),
            Filter::Shape(_) | Filter::UserCodec(_) => data_type.clone(),
        }
    }

    /// Returns the stored shape of a chunk of `shape`.
    ///
    /// # Errors
    /// As [`Shape::stored`].
    pub fn stored_shape(&self, shape: &[u64]) -> Result<Vec<u64>> {
        match self {
            Filter::Values(values, _) => values.stored_shape(shape),
            Filter::Shape(filter) => filter.stored(shape),
            Filter::Words(..) | Filter::UserCodec(_) => Ok(shape.to_vec()),
        }
    }
}
