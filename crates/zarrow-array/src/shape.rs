//! Arithmetic of shapes and strides, all of it checked: the one place where extents are multiplied.

use crate::error::{Error, Result};

/// The number of elements of `shape`; a shape of no axes has one.
///
/// # Errors
/// [`Error::ShapeOverflow`] where the product does not fit.
pub fn element_count(shape: &[u64]) -> Result<u64> {
    checked_product(shape).ok_or_else(|| Error::ShapeOverflow { shape: shape.to_vec(), item_size: 1 })
}

/// The bytes of a C-contiguous array of `shape`, at most what a pointer can span.
///
/// # Errors
/// [`Error::ShapeOverflow`] where it is more than `isize::MAX`.
///
/// ```
/// use zarrow_array::shape::nbytes;
/// assert_eq!(nbytes(&[2, 3], 4).unwrap(), 24);
/// assert!(nbytes(&[1 << 40, 1 << 40], 1).is_err());
/// ```
pub fn nbytes(shape: &[u64], item_size: usize) -> Result<usize> {
    checked_product(shape)
        .and_then(|count| count.checked_mul(item_size as u64))
        .and_then(|nbytes| usize::try_from(nbytes).ok())
        .filter(|nbytes| *nbytes <= isize::MAX as usize)
        .ok_or_else(|| Error::ShapeOverflow { shape: shape.to_vec(), item_size })
}

/// The product of the extents; 0 where one of them is 0, however large the others are.
fn checked_product(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent))
}

/// The strides of a C-contiguous array, in elements; `None` where one does not fit.
///
/// Extents of 0 count as 1, so that the strides of an empty array are those of a real one.
///
/// ```
/// assert_eq!(zarrow_array::shape::c_strides(&[2, 3, 4]), Some(vec![12, 4, 1]));
/// ```
#[must_use]
pub fn c_strides(shape: &[i64]) -> Option<Vec<i64>> {
    let mut strides = vec![1i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].checked_mul(shape[axis].max(1))?;
    }
    Some(strides)
}

/// Whether memory with these strides (in elements) is C-contiguous; axes of one element may have any stride.
#[must_use]
pub fn is_c_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1i64;
    for (extent, stride) in shape.iter().zip(strides).rev() {
        if *extent != 1 {
            if *stride != expected {
                return false;
            }
            expected = expected.saturating_mul(*extent);
        }
    }
    true
}

/// The lowest and the highest element offset that a view touches; `None` for an empty view.
///
/// # Errors
/// [`Error::BadView`] where an offset does not fit.
pub fn element_bounds(shape: &[i64], strides: &[i64]) -> Result<Option<(i64, i64)>> {
    if shape.contains(&0) {
        return Ok(None);
    }
    let overflow = || Error::BadView(format!("strides {strides:?} of shape {shape:?} overflow"));
    let (mut low, mut high) = (0i64, 0i64);
    for (extent, stride) in shape.iter().zip(strides) {
        let reach = (extent - 1).checked_mul(*stride).ok_or_else(overflow)?;
        let side = if reach < 0 { &mut low } else { &mut high };
        *side = side.checked_add(reach).ok_or_else(overflow)?;
    }
    Ok(Some((low, high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_checked() {
        assert_eq!(element_count(&[]).unwrap(), 1);
        assert_eq!(element_count(&[0, u64::MAX, u64::MAX]).unwrap(), 0);
        assert!(element_count(&[u64::MAX, 2]).is_err());
        assert!(nbytes(&[1 << 62], 4).is_err());
        assert!(nbytes(&[1 << 63], 1).is_err());
    }

    #[test]
    fn contiguity_ignores_axes_of_one() {
        assert!(is_c_contiguous(&[2, 1, 3], &[3, 77, 1]));
        assert!(!is_c_contiguous(&[2, 3], &[1, 2]));
        assert!(is_c_contiguous(&[0, 3], &[9, 9]));
    }

    #[test]
    fn bounds_of_negative_strides() {
        assert_eq!(element_bounds(&[3, 2], &[-2, 1]).unwrap(), Some((-4, 1)));
        assert_eq!(element_bounds(&[0], &[5]).unwrap(), None);
        assert!(element_bounds(&[i64::MAX, 2], &[i64::MAX, 1]).is_err());
    }
}
