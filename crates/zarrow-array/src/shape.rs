//! Checked arithmetic for shapes and strides. Every product of extents is computed here.

use crate::error::{Error, Result};
use smallvec::SmallVec;

/// One number per axis; up to four are stored inline.
pub type Axes<T> = SmallVec<[T; 4]>;

/// Returns the number of elements of `shape`; 1 for a 0-dimensional shape.
///
/// # Errors
/// [`Error::ShapeOverflow`] if the product does not fit.
pub fn element_count(shape: &[u64]) -> Result<u64> {
    checked_product(shape).ok_or_else(|| Error::ShapeOverflow { shape: shape.to_vec(), item_size: 1 })
}

/// Returns the bytes of a C-contiguous array of `shape`, at most `isize::MAX`.
///
/// # Errors
/// [`Error::ShapeOverflow`] if the product exceeds `isize::MAX`.
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

/// Returns the product of the extents; 0 if any extent is 0, however large the others are.
fn checked_product(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent))
}

/// Returns the strides of a C-contiguous array, in elements; `None` on overflow. Extents of 0 count as 1.
///
/// ```
/// assert_eq!(zarrow_array::shape::c_strides(&[2, 3, 4]).as_deref(), Some(&[12, 4, 1][..]));
/// ```
#[must_use]
pub fn c_strides(shape: &[i64]) -> Option<Axes<i64>> {
    let mut strides = Axes::from_elem(1i64, shape.len());
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].checked_mul(shape[axis].max(1))?;
    }
    Some(strides)
}

/// Returns whether memory with these strides (in elements) is C-contiguous; axes of length 1 may have any stride.
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

/// Returns the strides for a view of the same memory with the shape `new`; `None` if the view would need a copy, or
/// if the numbers of elements differ.
///
/// The shapes are split into runs of axes with equal numbers of elements. In each run, the old axes must be contiguous
/// with each other, so that the new axes can divide them. Source: NumPy, `_attempt_nocopy_reshape`.
///
/// ```
/// use zarrow_array::shape::reshaped_strides;
/// assert_eq!(reshaped_strides(&[4, 6], &[12, 2], &[2, 2, 3, 2]), Some(vec![24, 12, 4, 2]));
/// assert_eq!(reshaped_strides(&[4, 6], &[1, 4], &[24]), None);
/// ```
#[must_use]
pub fn reshaped_strides(shape: &[i64], strides: &[i64], new: &[i64]) -> Option<Vec<i64>> {
    if is_c_contiguous(shape, strides) {
        return c_strides(new).map(Axes::into_vec);
    }
    let mut old = shape.iter().zip(strides).filter(|(extent, _)| **extent != 1);
    let mut result = Vec::with_capacity(new.len());
    let mut run = new.iter().copied().peekable();
    while run.peek().is_some() {
        let mut extents = vec![];
        let (mut new_count, mut old_count) = (1i64, 1i64);
        let mut step = None;
        loop {
            if new_count <= old_count {
                let Some(extent) = run.next() else { break };
                new_count = new_count.checked_mul(extent)?;
                extents.push(extent);
            } else {
                let (extent, stride) = old.next()?;
                old_count = old_count.checked_mul(*extent)?;
                // The stride of the next slower axis must equal the size of this axis: there is no gap.
                if step.is_some_and(|slower| Some(slower) != stride.checked_mul(*extent)) {
                    return None;
                }
                step = Some(*stride);
            }
            // A run ends when both shapes have the same number of elements; following axes of length 1 belong to it.
            if new_count == old_count && run.peek() != Some(&1) {
                break;
            }
        }
        if new_count != old_count {
            return None;
        }
        let mut stride = step.unwrap_or(1);
        let start = result.len();
        for extent in extents.iter().rev() {
            result.insert(start, stride);
            stride = stride.checked_mul(*extent)?;
        }
    }
    old.next().is_none().then_some(result)
}

/// Returns the lowest and the highest element offset of a view; `None` for an empty view.
///
/// # Errors
/// [`Error::BadView`] if an offset does not fit.
pub fn element_bounds(shape: &[i64], strides: &[i64]) -> Result<Option<(i64, i64)>> {
    if shape.contains(&0) {
        return Ok(None);
    }
    let overflow = || Error::BadView(format!("strides {strides:?} with shape {shape:?} overflow"));
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
    fn contiguity_ignores_axes_of_length_one() {
        assert!(is_c_contiguous(&[2, 1, 3], &[3, 77, 1]));
        assert!(!is_c_contiguous(&[2, 3], &[1, 2]));
        assert!(is_c_contiguous(&[0, 3], &[9, 9]));
    }

    #[test]
    fn reshaped_strides_visit_the_same_elements() {
        assert_eq!(reshaped_strides(&[2, 3, 4], &[24, 8, 2], &[24]), Some(vec![2]));
        assert_eq!(reshaped_strides(&[2, 3, 4], &[24, 8, 2], &[1, 6, 1, 4, 1]), Some(vec![1, 8, 8, 2, 2]));
        assert_eq!(reshaped_strides(&[6], &[-1], &[2, 3]), Some(vec![-3, -1]));
        assert_eq!(reshaped_strides(&[2, 3], &[1, 2], &[3, 2]), None);
        assert_eq!(reshaped_strides(&[2, 3], &[1, 2], &[2, 1, 3]), Some(vec![1, 1, 2]));
        assert_eq!(reshaped_strides(&[1, 1], &[5, 7], &[]), Some(vec![]));
        assert_eq!(reshaped_strides(&[4], &[2], &[2]), None);
        assert_eq!(reshaped_strides(&[2], &[2], &[2, 2]), None);
    }

    #[test]
    fn bounds_of_negative_strides() {
        assert_eq!(element_bounds(&[3, 2], &[-2, 1]).unwrap(), Some((-4, 1)));
        assert_eq!(element_bounds(&[0], &[5]).unwrap(), None);
        assert!(element_bounds(&[i64::MAX, 2], &[i64::MAX, 1]).is_err());
    }
}
