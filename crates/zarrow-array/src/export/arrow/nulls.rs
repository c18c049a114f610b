//! Validity of an exported array: the number of nulls, and the bitmap of its mask, packed by
//! [`pack_validity`](crate::pack_validity). Without nulls there is no bitmap.

use crate::Buffer;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use crate::mask::Mask;
use std::sync::Arc;

/// Arrow validity of one array.
#[derive(Default)]
pub struct Validity {
    /// Bits, least significant first, 1 for values; `None` if no element is null.
    pub bitmap: Option<Arc<Buffer>>,
    /// Number of null elements.
    pub null_count: i64,
}

impl Validity {
    /// Returns the validity of `count` elements with or without a mask.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for a mask of another length, [`Error::OutOfMemory`].
    pub fn from_mask(mask: Option<&Mask>, count: usize) -> Result<Validity> {
        let Some(mask) = mask else { return Ok(Validity::default()) };
        if mask.missing().len() != count {
            let actual = mask.missing().len();
            return Err(Error::LengthMismatch { what: "the mask buffer", expected: count, actual });
        }
        Ok(match mask.validity()? {
            None => Validity::default(),
            Some((nulls, bitmap)) => Validity { bitmap: Some(bitmap), null_count: nulls as i64 },
        })
    }

    /// Returns the validity of a tensor with contiguous elements.
    ///
    /// NaT is a value in NumPy but null in Arrow, which would read it as a time 292 billion years ago.
    ///
    /// # Errors
    /// See [`from_mask`](Validity::from_mask); [`Error::NeedsCopy`] for misaligned times.
    pub fn from_tensor(tensor: &SharedTensor, mask: Option<&Mask>) -> Result<Validity> {
        if !matches!(tensor.dtype(), DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. }) {
            return Validity::from_mask(mask, tensor.size());
        }
        let masked = Validity::from_mask(mask, tensor.size())?;
        let mut missing = match mask {
            Some(mask) if masked.null_count > 0 => Buffer::copy_of(mask.missing())?,
            _ => Buffer::zeroed(tensor.size())?,
        };
        let mut places = missing.iter_mut();
        tensor.words::<i64>()?.for_each(|time| {
            if let Some(missing) = places.next() {
                *missing |= u8::from(time == i64::MIN);
            }
        });
        Validity::from_mask(Some(&Mask::new(vec![missing])?), tensor.size())
    }
}
