//! Which elements are null: Arrow's bitmap, and none where no element is.

use crate::Buffer;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use crate::mask::Mask;
use std::sync::Arc;

/// Arrow's validity of one array.
#[derive(Default)]
pub struct Validity {
    /// Least bit first, 1 where there is a value; `None` where all are.
    pub bitmap: Option<Arc<Buffer>>,
    /// How many elements are null.
    pub null_count: i64,
}

impl Validity {
    /// The validity of `count` elements with a mask, or without one.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for a mask of another length, [`Error::OutOfMemory`].
    pub fn of_mask(mask: Option<&Mask>, count: usize) -> Result<Validity> {
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

    /// The validity of a tensor, whose elements are one run of memory.
    ///
    /// NaT is a value to NumPy and null to Arrow, which would read it as a time 292 billion years ago.
    ///
    /// # Errors
    /// As [`of_mask`](Validity::of_mask); [`Error::NeedsCopy`] for times that are not aligned.
    pub fn of_tensor(tensor: &SharedTensor, mask: Option<&Mask>) -> Result<Validity> {
        if !matches!(tensor.dtype(), DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. }) {
            return Validity::of_mask(mask, tensor.size());
        }
        let masked = Validity::of_mask(mask, tensor.size())?;
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
        Validity::of_mask(Some(&Mask::new(vec![missing])?), tensor.size())
    }
}
