//! The bytes of a strided tensor, computed without trusting any of its numbers.
//!
//! 1. Extents are not negative, and their product, in bytes, fits an `isize`. Zeros count as ones in this product,
//!    as in NumPy, so that every C-order stride fits too.
//! 2. Strides are normalized: producers leave arbitrary strides on axes of length 1 and in empty tensors, so these
//!    are replaced by those of C order.
//! 3. The first and the last byte follow from the sums of the negative and of the positive steps.

use std::ops::Range;

use crate::{DLDataType, Error, MAX_NDIM};

/// Result of [`Layout::check`].
#[derive(Debug)]
pub(crate) struct Layout {
    /// Normalized strides in elements, if they differ from the producer's.
    pub(crate) strides: Option<Box<[i64]>>,
    /// Byte range of the elements, counted from the element at index 0 of every axis.
    pub(crate) extent: Range<isize>,
}

impl Layout {
    /// Checks `shape` and `strides` (`None` for C order), at most [`MAX_NDIM`] axes each.
    ///
    /// Elements of a sub-byte `dtype` are bit-packed if `packed`, else padded to a byte each.
    pub(crate) fn check(
        shape: &[i64],
        strides: Option<&[i64]>,
        dtype: DLDataType,
        packed: bool,
    ) -> Result<Self, Error> {
        let item_size = i64::try_from(dtype.item_size()).map_err(|_| Error::Overflow)?;
        let mut normal = [0; MAX_NDIM];
        let normal = &mut normal[..shape.len()];
        let count = write_c_order(shape, normal)?;
        if count.checked_mul(item_size).and_then(|bytes| isize::try_from(bytes).ok()).is_none() {
            return Err(Error::Overflow);
        }

        let empty = shape.contains(&0);
        let mut compact = true;
        if let Some(strides) = strides.filter(|_| !empty) {
            for ((normal, &stride), &extent) in normal.iter_mut().zip(strides).zip(shape) {
                if extent != 1 && stride != *normal {
                    *normal = stride;
                    compact = false;
                }
            }
        }

        let packed = packed && dtype.is_sub_byte();
        if packed && !compact {
            return Err(Error::StridedSubByte);
        }
        let extent = match (empty, packed) {
            (true, _) => 0..0,
            (false, true) => 0..packed_bytes(count, dtype).ok_or(Error::Overflow)?,
            (false, false) => byte_range(shape, normal, item_size).ok_or(Error::Overflow)?,
        };
        let strides = (strides != Some(&*normal)).then(|| Box::from(&*normal));
        Ok(Self { strides, extent })
    }
}

/// Step 1: writes the strides of C order and returns the number of elements, counting zeros as ones.
fn write_c_order(shape: &[i64], strides: &mut [i64]) -> Result<i64, Error> {
    let mut count: i64 = 1;
    for (axis, (&extent, stride)) in shape.iter().zip(strides).enumerate().rev() {
        if extent < 0 {
            return Err(Error::NegativeExtent { axis, extent });
        }
        *stride = count;
        count = count.checked_mul(extent.max(1)).ok_or(Error::Overflow)?;
    }
    Ok(count)
}

/// Returns the bytes of `count` bit-packed elements.
fn packed_bytes(count: i64, dtype: DLDataType) -> Option<isize> {
    let bits = i128::from(count) * i128::from(dtype.bits) * i128::from(dtype.lanes);
    isize::try_from((bits + 7) / 8).ok()
}

/// Step 3, for a non-empty tensor.
fn byte_range(shape: &[i64], strides: &[i64], item_size: i64) -> Option<Range<isize>> {
    let (mut first, mut last): (i64, i64) = (0, 0);
    for (&extent, &stride) in shape.iter().zip(strides) {
        let reach = (extent - 1).checked_mul(stride)?;
        let end = if reach < 0 { &mut first } else { &mut last };
        *end = end.checked_add(reach)?;
    }
    let start = first.checked_mul(item_size)?;
    let end = last.checked_add(1)?.checked_mul(item_size)?;
    Some(isize::try_from(start).ok()?..isize::try_from(end).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;

    fn check(
        shape: &[i64],
        strides: Option<&[i64]>,
        dtype: Dtype,
    ) -> Result<(Vec<i64>, Range<isize>), Error> {
        let layout = Layout::check(shape, strides, DLDataType::from_dtype(dtype), true)?;
        let own = || strides.map(<[i64]>::to_vec).unwrap_or_default();
        Ok((layout.strides.map_or_else(own, Vec::from), layout.extent))
    }

    /// Visits every index of a small shape to compute the touched bytes by brute force.
    fn touched(shape: &[i64], strides: &[i64], item_size: i64) -> Range<isize> {
        let mut offsets = vec![0];
        for (&extent, &stride) in shape.iter().zip(strides) {
            offsets = offsets
                .iter()
                .flat_map(|start| (0..extent).map(move |index| start + index * stride))
                .collect();
        }
        match (offsets.iter().min(), offsets.iter().max()) {
            (Some(first), Some(last)) => (first * item_size) as isize..((last + 1) * item_size) as isize,
            _ => 0..0,
        }
    }

    #[test]
    fn byte_extent_is_what_the_elements_touch() {
        let strides = [-7, -2, -1, 0, 1, 3, 100];
        for extents in [[0, 2, 3], [1, 1, 1], [2, 1, 5], [4, 3, 2]] {
            for a in strides {
                for b in strides {
                    for c in strides {
                        let (_, extent) = check(&extents, Some(&[a, b, c]), Dtype::Int32).unwrap();
                        assert_eq!(extent, touched(&extents, &[a, b, c], 4), "{extents:?} {a} {b} {c}");
                    }
                }
            }
        }
    }

    #[test]
    fn axes_never_stepped_along_get_c_order_strides() {
        let garbage = i64::MIN;
        assert_eq!(check(&[2, 3], None, Dtype::Int8), Ok((vec![3, 1], 0..6)));
        assert_eq!(check(&[4, 1], Some(&[8, garbage]), Dtype::Int8), Ok((vec![8, 1], 0..25)));
        assert_eq!(check(&[1, 2, 3], Some(&[garbage, 3, 1]), Dtype::Int8), Ok((vec![6, 3, 1], 0..6)));
        assert_eq!(check(&[2, 0, 3], Some(&[garbage, 5, garbage]), Dtype::Int8), Ok((vec![3, 3, 1], 0..0)));
        assert_eq!(check(&[], None, Dtype::Float64), Ok((vec![], 0..8)));
    }

    #[test]
    fn normal_strides_need_no_allocation() {
        let int8 = DLDataType::from_dtype(Dtype::Int8);
        assert!(Layout::check(&[2, 3], Some(&[3, 1]), int8, true).unwrap().strides.is_none());
        assert!(Layout::check(&[2, 3], Some(&[1, 2]), int8, true).unwrap().strides.is_none());
        assert!(Layout::check(&[2, 1], Some(&[1, 7]), int8, true).unwrap().strides.is_some());
    }

    #[test]
    fn numbers_that_do_not_fit_are_errors() {
        let half = i64::MAX / 2;
        assert_eq!(check(&[half, 3], None, Dtype::Int8), Err(Error::Overflow));
        assert_eq!(check(&[half, 0, 3], None, Dtype::Int8), Err(Error::Overflow));
        assert_eq!(check(&[half], None, Dtype::Int32), Err(Error::Overflow));
        assert_eq!(check(&[3], Some(&[half + 1]), Dtype::Int8), Err(Error::Overflow));
        assert_eq!(check(&[2, 2], Some(&[i64::MAX, i64::MAX]), Dtype::Int8), Err(Error::Overflow));
        assert_eq!(check(&[2, 2], Some(&[i64::MIN, i64::MIN]), Dtype::Int8), Err(Error::Overflow));
        assert_eq!(check(&[2], Some(&[half]), Dtype::Int16), Err(Error::Overflow));
        assert_eq!(check(&[i64::MAX], None, Dtype::Int8), Ok((vec![1], 0..isize::MAX)));
        assert_eq!(check(&[2, -1], None, Dtype::Int8), Err(Error::NegativeExtent { axis: 1, extent: -1 }));
    }

    #[test]
    fn packed_elements_share_bytes_and_cannot_be_strided() {
        assert_eq!(check(&[3], None, Dtype::Float4E2M1Fn), Ok((vec![1], 0..2)));
        assert_eq!(check(&[3, 3], None, Dtype::Float6E2M3Fn), Ok((vec![3, 1], 0..7)));
        assert_eq!(check(&[5, 1], Some(&[1, 9]), Dtype::Int2), Ok((vec![1, 1], 0..2)));
        assert_eq!(check(&[3], Some(&[2]), Dtype::Int4), Err(Error::StridedSubByte));
        let int4 = DLDataType::from_dtype(Dtype::Int4);
        assert_eq!(Layout::check(&[3], Some(&[2]), int4, false).unwrap().extent, 0..5);
    }
}
