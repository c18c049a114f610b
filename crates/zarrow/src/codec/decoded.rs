//! A decoded chunk of any layout, in memory of its own.

use crate::codec::{Swap, VariableChunk};
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use zarrow_array::allocation;

/// A decoded chunk, in the C order of its stored axes.
#[derive(Debug)]
pub enum Decoded {
    /// Elements of a fixed size, still in the byte order of the store.
    Fixed {
        /// The elements.
        bytes: Vec<u8>,
        /// What of each element is reversed by the move.
        swap: Swap,
    },
    /// Strings or bytes, kept until all chunks are there.
    Variable(Arc<VariableChunk>),
    /// Elements of which some are missing.
    Optional {
        /// 1 where an element is missing.
        missing: Vec<u8>,
        /// The elements, with room for the missing ones.
        data: Box<Decoded>,
    },
}

impl Decoded {
    /// The elements spread to where `missing` has a 0, and zero bytes, nothing or missing where it has a 1.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where there are not as many elements as zeros.
    pub fn spread(self, missing: &[u8], item_size: usize) -> Result<Decoded> {
        let differ = || ErrorKind::Corrupt("the mask and the data differ in length".into());
        match self {
            Decoded::Fixed { bytes, swap } => {
                let nbytes = missing.len().checked_mul(item_size).ok_or_else(differ)?;
                // Missing elements have a size that no stored byte stands for.
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
