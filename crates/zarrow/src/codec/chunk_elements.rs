//! The elements of a chunk of any layout, ready for encoding.

use crate::error::{Error, ErrorKind, Result};

/// The elements of a chunk in the C order of its stored axes.
pub enum ChunkElements<'a> {
    /// Elements of a fixed size, native-endian.
    Fixed(Vec<u8>),
    /// Strings or bytes.
    Variable(Vec<&'a [u8]>),
    /// Elements that may be missing.
    Optional {
        /// 1 for a missing element.
        missing: Vec<u8>,
        /// The elements, with space for the missing ones.
        data: Box<ChunkElements<'a>>,
    },
}

/// Error for elements with another layout than the codec's: a checked plan rules it out.
pub fn mismatch() -> Error {
    ErrorKind::Internal("values are not of the array's type".into()).into()
}

impl<'a> ChunkElements<'a> {
    /// Returns the bytes of elements of a fixed size.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for elements of another layout.
    pub fn into_fixed(self) -> Result<Vec<u8>> {
        match self {
            ChunkElements::Fixed(bytes) => Ok(bytes),
            _ => Err(mismatch()),
        }
    }

    /// Returns strings or bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for elements of another layout.
    pub fn into_variable(self) -> Result<Vec<&'a [u8]>> {
        match self {
            ChunkElements::Variable(elements) => Ok(elements),
            _ => Err(mismatch()),
        }
    }

    /// Returns the elements that are not missing.
    pub fn present(self, missing: &[u8], item_size: usize) -> ChunkElements<'a> {
        /// The elements are compacted in place.
        fn keep<T: Copy>(items: &mut Vec<T>, missing: &[u8], size: usize) {
            let mut kept = 0;
            for at in missing.iter().enumerate().filter(|(_, missing)| **missing == 0).map(|(at, _)| at) {
                items.copy_within(at * size..(at + 1) * size, kept);
                kept += size;
            }
            items.truncate(kept);
        }
        match self {
            ChunkElements::Fixed(mut bytes) => {
                keep(&mut bytes, missing, item_size);
                ChunkElements::Fixed(bytes)
            }
            ChunkElements::Variable(mut elements) => {
                keep(&mut elements, missing, 1);
                ChunkElements::Variable(elements)
            }
            ChunkElements::Optional { missing: mut inner, data } => {
                keep(&mut inner, missing, 1);
                ChunkElements::Optional { data: Box::new(data.present(missing, item_size)), missing: inner }
            }
        }
    }
}
