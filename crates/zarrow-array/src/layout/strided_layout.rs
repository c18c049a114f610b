//! Where the elements of a tensor lie from its first one on: extents and strides, whatever memory they are of.

use crate::error::{Error, Result};
use crate::shape::{self, Axes};

/// The extents and strides of a tensor, in elements.
///
/// Views of a layout are checked against it, so that what lay inside the memory stays inside.
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

/// What a view does with one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStep {
    /// Takes one position and drops the axis.
    At(i64),
    /// Takes `count` positions from `start` on, `step` apart (any sign, not 0).
    Range {
        /// The first position.
        start: i64,
        /// The distance of neighbours.
        step: i64,
        /// How many.
        count: i64,
    },
    /// Adds an axis of one position.
    New,
}

impl StridedLayout {
    /// The layout of elements of which the caller knows that they lie inside some memory.
    #[must_use]
    pub fn new(shape: Axes<i64>, strides: Axes<i64>) -> StridedLayout {
        StridedLayout { shape, strides }
    }

    /// Elements in C order without gaps.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] where an extent or a stride does not fit.
    pub fn c_order(extents: &[u64]) -> Result<StridedLayout> {
        let overflow = || Error::ShapeOverflow { shape: extents.to_vec(), item_size: 1 };
        if extents.iter().any(|extent| i64::try_from(*extent).is_err()) {
            return Err(overflow());
        }
        let shape: Axes<i64> = extents.iter().map(|extent| *extent as i64).collect();
        let strides = shape::c_strides(&shape).ok_or_else(overflow)?;
        Ok(StridedLayout { shape, strides: strides.into() })
    }

    /// Extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Distances of neighbours on each axis, in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        // Whoever made the layout checked the product; that of an empty tensor's other extents may not fit.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().map(|extent| *extent as usize).product() }
    }

    /// Whether the elements lie in C order without gaps.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        shape::is_c_contiguous(&self.shape, &self.strides)
    }

    /// A view by basic indexing, and the element that it begins with, counted from the layout's first one: one step for
    /// each axis, and [`IndexStep::New`] anywhere.
    ///
    /// # Errors
    /// [`Error::BadView`] where a position lies outside its axis, or the steps are not one for each axis.
    pub fn view(&self, steps: &[IndexStep]) -> Result<(i64, StridedLayout)> {
        let outside =
            |axis: usize| Error::BadView(format!("index outside axis {axis} of shape {:?}", self.shape));
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
            return Err(Error::BadView(format!("{axis} indices for {} axes", self.shape.len())));
        }
        let offset = if empty_result { 0 } else { offset };
        Ok((offset, StridedLayout { shape, strides }))
    }

    /// The same elements with their axes in another order.
    ///
    /// # Errors
    /// [`Error::BadView`] where `axes` is not a permutation.
    pub fn transpose(&self, axes: &[usize]) -> Result<StridedLayout> {
        let mut seen = vec![false; self.shape.len()];
        for axis in axes {
            match seen.get_mut(*axis) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(Error::BadView(format!("{axes:?} is not an order of {} axes", seen.len()))),
            }
        }
        if axes.len() != seen.len() {
            return Err(Error::BadView(format!("{axes:?} is not an order of {} axes", seen.len())));
        }
        let pick = |values: &[i64]| axes.iter().map(|axis| values[*axis]).collect();
        Ok(StridedLayout { shape: pick(&self.shape), strides: pick(&self.strides) })
    }

    /// The same elements with another shape.
    ///
    /// # Errors
    /// [`Error::BadView`] where the number of elements differs, [`Error::NeedsCopy`] where no strides over the
    /// same memory have that shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<StridedLayout> {
        let extents: Option<Vec<u64>> = shape.iter().map(|extent| u64::try_from(*extent).ok()).collect();
        let count = extents.and_then(|extents| shape::element_count(&extents).ok());
        if count != Some(self.size() as u64) {
            return Err(Error::BadView(format!("cannot reshape {:?} to {shape:?}", self.shape)));
        }
        let strides = shape::reshaped_strides(&self.shape, &self.strides, shape)
            .ok_or(Error::NeedsCopy { protocol: "reshape", what: "a tensor that is not contiguous" })?;
        Ok(StridedLayout { shape: shape.into(), strides: strides.into() })
    }
}
