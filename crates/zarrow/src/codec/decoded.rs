//! A decoded chunk of any layout, in owned memory.

use crate::codec::{Swap, VariableChunk};
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use zarrow_array::allocation;

/// A decoded chunk, in the C order of its stored axes.
#[derive(Debug)]
pub enum Decoded {
    /// Elements of a fixed size, still in the stored byte order.
    Fixed {
        /// The elements.
        bytes: Vec<u8>,
        /// The bytes of each element that the move reverses.
        swap: Swap,
    },
    /// Strings or bytes, kept until all chunks are decoded.
    Variable(Arc<VariableChunk>),
    /// Elements that may be missing.
    Optional {
        /// 1 for a missing element.
        missing: Vec<u8>,
        /// The elements, with space for the missing ones.
        data: Box<Decoded>,
    },
}

impl Decoded {
    /// Spreads the elements to the zeros of `missing`; its ones get zero bytes, an empty value or a missing element.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the number of elements differs from the number of zeros.
    pub fn spread(self, missing: &[u8], item_size: usize) -> Result<Decoded> {
        let differ = || ErrorKind::Corrupt("the mask and the data differ in length".into());
        match self {
            Decoded::Fixed { bytes, swap } => {
                let nbytes = missing.len().checked_mul(item_size).ok_or_else(differ)?;
                // Missing elements have a size without any stored byte.
                let mut spread = allocation::filled(0u8, nbytes)?;
                let mut given = bytes.chunks_exact(item_size.max(1));
                for (place, missing) in spread.chunks_exact_mut(item_size.max(1)).zip(missing) {
                    if *missing == 0 {
                        place.copy_from_slice(given.next().ok_or_else(differ)?);
                    }
                }
                if given.next().is_some() {
                    Err(differ().into())
                } else {
                    Ok(Decoded::Fixed { bytes: spread, swap })
                }
            }
            Decoded::Variable(chunk) => {
                let chunk =
                    Arc::try_unwrap(chunk).map_err(|_| ErrorKind::Internal("a shared chunk".into()))?;
                Ok(Decoded::Variable(Arc::new(chunk.spread(missing)?)))
            }
            Decoded::Optional { missing: inner, data } => {
                let mut given = inner.iter();
                let given = |missing: &u8| match *missing {
                    0 => given.next().copied().ok_or_else(|| Error::from(differ())),
                    _ => Ok(1),
                };
                let spread: Vec<u8> = allocation::try_collected(missing.iter().map(given))?;
                Ok(Decoded::Optional { missing: spread, data: Box::new(data.spread(missing, item_size)?) })
            }
        }
    }
}
