//! The strides of a result, or of values to be written.
//!
//! The plan counts all axes of points as one axis. Foreign memory may have any stride on each of these axes: then each
//! place along the combined axis is split into positions on the separate axes.

use crate::plan::axis_part::PerAxis;
use crate::selection::Selection;

/// A combined axis: its index, and the extent and stride of each of its memory axes.
type Folded = (usize, PerAxis<(u64, isize)>);

/// Distance from one position to the next on each axis of the plan's output, in bytes or elements.
#[derive(Debug, Clone, Default)]
pub struct OutputStrides {
    axes: PerAxis<isize>,
    /// The axis that combines several memory axes, with the extent and stride of each.
    folded: Option<Box<Folded>>,
}

impl From<PerAxis<isize>> for OutputStrides {
    fn from(axes: PerAxis<isize>) -> OutputStrides {
        OutputStrides { axes, folded: None }
    }
}

impl OutputStrides {
    /// The strides of memory with the same axes as the result of `selection`.
    pub fn new(strides: &[isize], selection: &Selection) -> OutputStrides {
        let mut axes = PerAxis::from_slice(strides);
        let Some((axis, shape)) = selection.axes_of_points() else { return axes.into() };
        // If there are fewer strides than result axes, the error is reported when an element is placed.
        let (start, end) = (axis.min(axes.len()), (axis + shape.len()).min(axes.len()));
        let of_points: PerAxis<isize> = axes.drain(start..end).collect();
        axes.insert(start, of_points.first().copied().unwrap_or(0));
        let folded =
            (shape.len() > 1).then(|| Box::new((axis, shape.iter().copied().zip(of_points).collect())));
        OutputStrides { axes, folded }
    }

    /// The stride of each axis; not meaningful for a combined axis.
    pub fn axes(&self) -> &[isize] {
        &self.axes
    }

    /// Returns the stride of an axis; 0 if `axis` is `None`, and `None` if there is no such axis.
    pub fn stride(&self, axis: Option<usize>) -> Option<isize> {
        axis.map_or(Some(0), |axis| self.axes.get(axis).copied())
    }

    /// Whether an axis combines several memory axes.
    pub fn is_folded(&self, axis: Option<usize>) -> bool {
        self.folded.as_ref().is_some_and(|folded| Some(folded.0) == axis)
    }

    /// Returns the offset of `place` along an axis; `None` if it overflows.
    pub fn offset(&self, axis: Option<usize>, place: u64) -> Option<isize> {
        let far = |stride: isize, place: u64| stride.checked_mul(isize::try_from(place).ok()?);
        match self.folded.as_deref() {
            Some((folded, axes)) if Some(*folded) == axis => {
                let mut rest = place;
                axes.iter().rev().try_fold(0isize, |offset, (extent, stride)| {
                    let position = rest.checked_rem(*extent)?;
                    rest /= extent;
                    offset.checked_add(far(*stride, position)?)
                })
            }
            _ => far(self.stride(axis)?, place),
        }
    }
}

/// Returns the strides of a C-contiguous chunk, in bytes. They cannot overflow, since the chunk fits into memory.
pub fn c_strides(shape: &[u64], item_size: usize) -> PerAxis<isize> {
    let mut strides = PerAxis::from_elem(0isize, shape.len());
    let mut stride = item_size as isize;
    for (extent, place) in shape.iter().zip(&mut strides).rev() {
        *place = stride;
        stride = stride.saturating_mul(isize::try_from(*extent).unwrap_or(isize::MAX));
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::{AxisIndex, Index};
    use proptest::prelude::*;

    proptest! {
        /// Places along the points' axis use the strides of the separate axes, and other axes keep their strides.
        #[test]
        fn places_of_points_lie_where_their_axes_do(
            extents in prop::collection::vec(1u64..4, 0..4), steps in prop::collection::vec(-5isize..6, 5), before: bool,
        ) {
            let count = extents.iter().product::<u64>();
            let (list, slice) = (vec![0i64; count as usize], AxisIndex::Basic(Index::ALL));
            let mut indices = vec![AxisIndex::List(&list), slice];
            if before {
                indices.reverse();
            }
            let selection = Selection::points(&[2, 2], &indices, &extents).unwrap();
            let strides = &steps[..extents.len() + 1];
            let output = OutputStrides::new(strides, &selection);
            let (points, slice) = (usize::from(before), usize::from(!before));
            let of_slice = if before { 0 } else { extents.len() };
            prop_assert_eq!(output.offset(Some(slice), 3), Some(3 * strides[of_slice]));
            prop_assert_eq!(output.is_folded(Some(points)), extents.len() > 1);
            for place in 0..count {
                let (mut rest, mut offset) = (place, 0isize);
                for (axis, extent) in extents.iter().enumerate().rev() {
                    offset += (rest % extent) as isize * strides[axis + usize::from(before)];
                    rest /= extent;
                }
                prop_assert_eq!(output.offset(Some(points), place), Some(offset));
            }
        }
    }
}
