//! Points: lists of several axes that are taken together, the first position of each, the second of each, and so on.
//!
//! 1. The lists have been broadcast to one shape, and enumerate it in C order.
//! 2. If the lists and integers stand side by side in the index, the axes of that shape take their place in the result.
//!    Otherwise they come before all others.
//! 3. For a read, `plan/chunk_parts` groups the points by chunk.
//!
//! Source: NumPy, "Advanced indexing" and "Combining advanced and basic indexing".

use crate::error::{ErrorKind, Result};
use crate::selection::basic::Index;
use crate::selection::orthogonal::{AxisIndex, per_axis, positions};
use crate::selection::{AxisSelection, Points, Selection};
use std::sync::Arc;
use zarrow_array::allocation::{self, Grow};

impl Selection {
    /// Selects the points with the coordinates in `indices`: one list per axis, each of the length of `points_shape`,
    /// in C order. For axes with a slice, each point takes the whole slice.
    ///
    /// ```
    /// use zarrow::{AxisIndex, Index, Selection};
    /// let (rows, columns) = (AxisIndex::List(&[0, 0, 9]), AxisIndex::List(&[0, -1, 3]));
    /// let selection = Selection::points(&[10, 4, 6], &[rows, columns], &[3])?;
    /// assert_eq!(selection.shape(), [3, 6]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] as [`Selection::orthogonal`], and if a list has another length;
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn points(shape: &[u64], indices: &[AxisIndex<'_>], points_shape: &[u64]) -> Result<Selection> {
        let count = points_shape.iter().try_fold(1u64, |count, extent| count.checked_mul(*extent));
        let indices = per_axis(shape, indices)?;
        let is_advanced =
            |index: AxisIndex<'_>| !matches!(index, AxisIndex::Basic(Index::Slice { .. } | Index::Ellipsis));
        let advanced: Vec<bool> = indices.clone().map(|(_, _, index)| is_advanced(index)).collect();
        let axes = indices.map(|(axis, extent, index)| match positions(axis, extent, index)? {
            Err(basic) => AxisSelection::new(axis, extent, basic),
            Ok(positions) if Some(positions.len() as u64) == count => {
                Ok(AxisSelection::Points(Arc::new(positions)))
            }
            Ok(positions) => {
                let found = positions.len();
                let text = format!(
                    "axis {axis} has {found} indices, which do not match points of shape {points_shape:?}"
                );
                Err(ErrorKind::Index(text).into())
            }
        });
        let axes = axes.collect::<Result<Vec<_>>>()?;
        let points = axes.iter().any(|axis| matches!(axis, AxisSelection::Points(_))).then(|| {
            let first = advanced.iter().position(|advanced| *advanced).unwrap_or(0);
            let last = advanced.iter().rposition(|advanced| *advanced).unwrap_or(0);
            let neighbours = advanced[first..=last].iter().all(|advanced| *advanced);
            Points { shape: points_shape.to_vec(), at: if neighbours { first } else { 0 } }
        });
        Ok(Selection { axes, points })
    }

    /// Selects the elements of an array of `shape` at the true positions of `mask`, which has the same shape: one
    /// axis, in C order.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if the mask and the array differ in length; [`zarrow_array::Error::OutOfMemory`].
    pub fn mask(shape: &[u64], mask: &[bool]) -> Result<Selection> {
        if let [_] = shape {
            return Selection::orthogonal(shape, &[AxisIndex::Mask(mask)]);
        }
        if shape.is_empty() {
            return Err(ErrorKind::Index(
                "a 0-d array has no axis for a mask: index it with ... or ()".into(),
            )
            .into());
        }
        let size = shape.iter().try_fold(1u64, |size, extent| size.checked_mul(*extent));
        if size != Some(mask.len() as u64) {
            let text = format!("the mask has {} values, the array has shape {shape:?}", mask.len());
            return Err(ErrorKind::Index(text).into());
        }
        let count = mask.iter().filter(|taken| **taken).count();
        let mut coordinates = Vec::with_capacity(shape.len());
        // Number of elements between neighbours of an axis.
        let mut stride = mask.len() as u64;
        for extent in shape {
            // If an extent is 0, there are no elements, and no distance.
            stride = stride.checked_div(*extent).unwrap_or(0);
            let mut positions = allocation::with_capacity(count)?;
            let taken = (0u64..).zip(mask).filter(|(_, taken)| **taken);
            positions.try_extend(taken.map(|(element, _)| element / stride % extent))?;
            coordinates.push(AxisSelection::Points(Arc::new(positions)));
        }
        Ok(Selection { axes: coordinates, points: Some(Points { shape: vec![count as u64], at: 0 }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_of_points_are_placed_as_in_numpy() {
        let (two, at, all) = (AxisIndex::List(&[0, 1]), AxisIndex::Basic(Index::At(0)), AxisIndex::ALL);
        for (indices, shape) in [
            (&[two, two, all][..], &[1u64, 2, 5][..]),
            (&[all, two, two], &[3, 1, 2]),
            (&[two, all, two], &[1, 2, 4]),
            (&[two, all, at], &[1, 2, 4]),
            (&[at, two, all], &[1, 2, 5]),
            (&[AxisIndex::Basic(Index::Ellipsis), two], &[3, 4, 1, 2]),
            (&[two, two, two], &[1, 2]),
        ] {
            let selection = Selection::points(&[3, 4, 5], indices, &[1, 2]).unwrap();
            assert_eq!(selection.shape(), shape, "{indices:?}");
        }
    }

    #[test]
    fn outputs_are_axes_of_the_flat_shape() {
        let (two, all) = (AxisIndex::List(&[0, 1]), AxisIndex::ALL);
        let outputs = |indices: &[AxisIndex<'_>]| {
            Selection::points(&[3, 4, 5, 6], indices, &[2]).unwrap().outputs().collect::<Vec<_>>()
        };
        assert_eq!(outputs(&[all, two, two, all]), [Some(0), Some(1), None, Some(2)]);
        assert_eq!(outputs(&[all, two, all, two]), [Some(1), Some(0), Some(2), None]);
        assert_eq!(
            outputs(&[all, AxisIndex::Basic(Index::At(1)), two, all]),
            [Some(0), None, Some(1), Some(2)]
        );
    }

    #[test]
    fn masks_are_the_points_where_they_are_true() {
        let mask = [false, true, false, false, true, true];
        let selection = Selection::mask(&[2, 3], &mask).unwrap();
        assert_eq!(selection.shape(), [3]);
        assert_eq!(selection.axes()[0].positions(), [0, 1, 1]);
        assert_eq!(selection.axes()[1].positions(), [1, 1, 2]);
        assert_eq!(Selection::mask(&[6], &mask).unwrap().axes()[0].positions(), [1, 4, 5]);
        assert_eq!(Selection::mask(&[4, 0, 2], &[]).unwrap().shape(), [0]);
        assert!(Selection::mask(&[2, 3], &mask[..5]).is_err());
        assert!(Selection::mask(&[], &[true]).is_err());
        assert!(Selection::mask(&[1 << 40, 1 << 40], &mask).is_err());
    }

    #[test]
    fn lists_of_other_lengths_are_refused() {
        let lists = [AxisIndex::List(&[0, 1]), AxisIndex::List(&[0])];
        assert!(Selection::points(&[3, 3], &lists, &[2]).is_err());
        assert!(Selection::points(&[3, 3], &lists[..1], &[u64::MAX, 2]).is_err());
    }
}
