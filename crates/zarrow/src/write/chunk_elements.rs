//! The elements of a chunk of any layout, ready to be encoded: for layouts and codecs that cannot encode directly from
//! the caller's memory.
//!
//! 1. The elements start as the old chunk, or as the fill value.
//! 2. The written elements overwrite them.

use crate::codec::{ChunkElements, Decoded, Swap, mismatch};
use crate::error::Result;
use crate::metadata::FillValue;
use crate::plan::axis_part::AxisPart;
use crate::plan::output_strides::c_strides;
use crate::write::fill::is_filled;
use crate::write::values::{Data, Level, Memory};
use zarrow_array::{DataType, allocation, shape};

impl<'a> ChunkElements<'a> {
    /// `count` times the fill value (step 1).
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`]; [`crate::ErrorKind::Internal`] if value and type do not match, which the
    /// metadata check rules out.
    pub fn repeated(data_type: &DataType, value: &'a FillValue, count: usize) -> Result<ChunkElements<'a>> {
        Ok(match (data_type, value) {
            (DataType::Optional(inner), FillValue::Present(value)) => ChunkElements::Optional {
                missing: allocation::filled(0u8, count)?,
                data: Box::new(Self::repeated(inner, value, count)?),
            },
            (DataType::Optional(inner), FillValue::Missing) => ChunkElements::Optional {
                missing: allocation::filled(1u8, count)?,
                data: Box::new(Self::nothing(inner, count)?),
            },
            (_, FillValue::Fixed(item)) => {
                let mut bytes = allocation::filled(0u8, shape::nbytes(&[count as u64], item.len())?)?;
                for place in bytes.chunks_exact_mut(item.len().max(1)) {
                    place.copy_from_slice(item);
                }
                ChunkElements::Fixed(bytes)
            }
            (_, FillValue::Variable(item)) => ChunkElements::Variable(allocation::filled(&item[..], count)?),
            _ => return Err(mismatch()),
        })
    }

    /// Allocates `count` missing elements.
    fn nothing(data_type: &DataType, count: usize) -> Result<ChunkElements<'a>> {
        Ok(match (data_type, data_type.item_size()) {
            (DataType::Optional(inner), _) => ChunkElements::Optional {
                missing: allocation::filled(1u8, count)?,
                data: Box::new(Self::nothing(inner, count)?),
            },
            (_, None) => ChunkElements::Variable(allocation::filled(&[][..], count)?),
            (_, Some(size)) => {
                ChunkElements::Fixed(allocation::filled(0u8, shape::nbytes(&[count as u64], size)?)?)
            }
        })
    }

    /// The elements of a decoded chunk (step 1).
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn new(decoded: &'a Decoded, count: usize) -> Result<ChunkElements<'a>> {
        Ok(match decoded {
            Decoded::Fixed { bytes, swap } => {
                let (mut bytes, item_size) = (allocation::copied(bytes)?, bytes.len() / count.max(1));
                swap.in_place(&mut bytes, item_size);
                ChunkElements::Fixed(bytes)
            }
            Decoded::Variable(chunk) => ChunkElements::Variable(allocation::try_collected(
                (0..count).map(|index| chunk.element(index)),
            )?),
            Decoded::Optional { missing, data } => {
                let missing = allocation::copied(missing)?;
                ChunkElements::Optional { missing, data: Box::new(Self::new(data, count)?) }
            }
        })
    }

    /// Puts the values of `part` into a chunk of `shape` (step 2), at byte `offset` of each element if elements have a
    /// fixed size.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Shape`] if values are out of bounds of their memory; [`crate::ErrorKind::Internal`] for
    /// values of another layout.
    pub(super) fn put(
        &mut self,
        values: Level<'_, 'a>,
        part: &[AxisPart<'_>],
        shape: &[u64],
        (offset, item_size): (usize, usize),
    ) -> Result<()> {
        match (self, values.data) {
            (ChunkElements::Optional { missing, data }, _) => {
                let (mask, values) = values.split();
                let present = Memory::nothing_missing(part);
                mask.unwrap_or(&present).gather_over(part, missing, &c_strides(shape, 1), &Swap::None)?;
                missing.iter_mut().for_each(|missing| *missing = u8::from(*missing != 0));
                data.put(values, part, shape, (offset, item_size))
            }
            (ChunkElements::Fixed(bytes), Data::Fixed(memory, swap)) => {
                let bytes = bytes.get_mut(offset..).ok_or_else(mismatch)?;
                memory.gather_over(part, bytes, &c_strides(shape, item_size), swap)
            }
            (ChunkElements::Variable(elements), Data::Variable(values)) => {
                values.each(part, &c_strides(shape, 1), |place, element| {
                    *elements.get_mut(place).ok_or_else(mismatch)? = element;
                    Ok(())
                })
            }
            _ => Err(mismatch()),
        }
    }

    /// Whether all elements equal the fill value, bit by bit.
    pub fn are(&self, value: &FillValue) -> bool {
        match (self, value) {
            (ChunkElements::Fixed(bytes), FillValue::Fixed(item)) => is_filled(bytes, item),
            (ChunkElements::Variable(elements), FillValue::Variable(item)) => {
                elements.iter().all(|element| *element == &item[..])
            }
            (ChunkElements::Optional { missing, .. }, FillValue::Missing) => {
                missing.iter().all(|missing| *missing != 0)
            }
            (ChunkElements::Optional { missing, data }, FillValue::Present(value)) => {
                missing.iter().all(|missing| *missing == 0) && data.are(value)
            }
            _ => false,
        }
    }
}
