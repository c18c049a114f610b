//! Shape and strides of a tensor, independent of its memory.

use crate::error::{Error, Result};
use crate::shape::{self, Axes};

/// Shape and strides of a tensor, in elements.
///
/// Views are checked against their layout, so they never exceed its memory.
///
/// ```
/// use zarrow_array::{IndexStep, StridedLayout};
/// let layout = StridedLayout::c_order(&[2, 3]).unwrap();
/// let (offset, column) = layout.view(&[IndexStep::Range { start: 0, step: 1, count: 2 }, IndexStep::At(1)]).unwrap();
/// assert_eq!((offset, column.shape(), column.strides()), (1, &[2][..], &[3][..]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StridedLayout {
    shape: Axes<i64>,
    strides: Axes<i64>,
}

/// How a view indexes one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStep {
    /// Selects one position and drops the axis.
    At(i64),
    /// Selects `count` positions from `start`, `step` apart (any sign, not 0).
    Range {
        /// First position.
        start: i64,
        /// Distance between positions.
        step: i64,
        /// Number of positions.
        count: i64,
    },
    /// Inserts an axis of length 1.
    New,
}

impl StridedLayout {
    /// Creates a layout. The caller must ensure that its elements are inside the memory it is used for.
    #[must_use]
    pub fn new(shape: Axes<i64>, strides: Axes<i64>) -> StridedLayout {
        StridedLayout { shape, strides }
    }

    /// Creates the layout of C-contiguous elements.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if an extent or a stride does not fit.
    pub fn c_order(extents: &[u64]) -> Result<StridedLayout> {
        let overflow = || Error::ShapeOverflow { shape: extents.to_vec(), item_size: 1 };
        if extents.iter().any(|extent| i64::try_from(*extent).is_err()) {
            return Err(overflow());
        }
        let shape: Axes<i64> = extents.iter().map(|extent| *extent as i64).collect();
        let strides = shape::c_strides(&shape).ok_or_else(overflow)?;
        Ok(StridedLayout { shape, strides })
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the strides in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        // The product was checked on creation; but if an extent is 0, the product of the others may overflow.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().map(|extent| *extent as usize).product() }
    }

    /// Returns whether the elements are C-contiguous.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        shape::is_c_contiguous(&self.shape, &self.strides)
    }

    /// Returns a view by basic indexing, and the offset of its first element: one step per axis, and
    /// [`IndexStep::New`] anywhere.
    ///
    /// # Errors
    /// [`Error::BadView`] if a position is outside its axis, or the number of steps is wrong.
    pub fn view(&self, steps: &[IndexStep]) -> Result<(i64, StridedLayout)> {
        let outside =
            |axis: usize| Error::BadView(format!("index is outside axis {axis} of shape {:?}", self.shape));
        let (mut shape, mut strides) = (Axes::new(), Axes::new());
        let (mut offset, mut axis) = (0i64, 0usize);
        let empty_result = steps.iter().any(|step| matches!(step, IndexStep::Range { count: 0, .. }));
        for step in steps {
            if *step == IndexStep::New {
                shape.push(1);
                strides.push(0);
                continue;
            }
            let (extent, stride) =
                self.shape.get(axis).zip(self.strides.get(axis)).ok_or_else(|| outside(axis))?;
            let inside = |position: i64| (0..*extent).contains(&position);
            match *step {
                IndexStep::At(position) => {
                    if !inside(position) {
                        return Err(outside(axis));
                    }
                    offset += position * stride;
                }
                IndexStep::Range { start, step, count } => {
                    let last =
                        count.checked_sub(1).and_then(|gaps| gaps.checked_mul(step)?.checked_add(start));
                    if count < 0 || (count > 0 && (!inside(start) || !last.is_some_and(inside))) {
                        return Err(outside(axis));
                    }
                    if count > 0 {
                        offset += start * stride;
                    }
                    shape.push(count);
                    strides.push(if count > 1 { stride * step } else { *stride });
                }
                IndexStep::New => {}
            }
            axis += 1;
        }
        if axis != self.shape.len() {
            return Err(Error::BadView(format!("got {axis} indices for {} axes", self.shape.len())));
        }
        let offset = if empty_result { 0 } else { offset };
        Ok((offset, StridedLayout { shape, strides }))
    }

    /// Permutes the axes.
    ///
    /// # Errors
    /// [`Error::BadView`] if `axes` is not a permutation.
    pub fn transpose(&self, axes: &[usize]) -> Result<StridedLayout> {
        let mut seen = vec![false; self.shape.len()];
        for axis in axes {
            match seen.get_mut(*axis) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(Error::BadView(format!(
                        "{axes:?} is not a permutation of {} axes",
                        seen.len()
                    )));
                }
            }
        }
        if axes.len() != seen.len() {
            return Err(Error::BadView(format!("{axes:?} is not a permutation of {} axes", seen.len())));
        }
        let pick = |values: &[i64]| axes.iter().map(|axis| values[*axis]).collect();
        Ok(StridedLayout { shape: pick(&self.shape), strides: pick(&self.strides) })
    }

    /// Changes the shape without moving elements.
    ///
    /// # Errors
    /// [`Error::BadView`] if the number of elements differs, [`Error::NeedsCopy`] if no strides give that shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<StridedLayout> {
        let extents: Option<Vec<u64>> = shape.iter().map(|extent| u64::try_from(*extent).ok()).collect();
        let count = extents.and_then(|extents| shape::element_count(&extents).ok());
        if count != Some(self.size() as u64) {
            return Err(Error::BadView(format!("cannot reshape {:?} to {shape:?}", self.shape)));
        }
        let strides = shape::reshaped_strides(&self.shape, &self.strides, shape)
            .ok_or(Error::NeedsCopy { protocol: "reshape", what: "a non-contiguous tensor" })?;
        Ok(StridedLayout { shape: shape.into(), strides: strides.into() })
    }
}
