//! Selections of an array's elements, checked against its shape.
//!
//! 1. [`basic`]: integers, slices and `...`. Each axis has evenly spaced positions.
//! 2. [`orthogonal`]: an axis may have a list of positions instead, in any order and repeated; the axes are combined
//!    as by `numpy.ix_`.
//! 3. [`points`]: lists of several axes that are taken together, position by position.
//! 4. [`blocks`]: chunks of the array's grid.
//! 5. [`ranges`]: the same as 1, in Rust's syntax.
//! 6. [`bounded_parts`]: a selection split along the chunks, for memory that holds only part of the result at a time.
//!
//! Each results in one [`AxisSelection`] per axis, with all positions inside the axis.

mod basic;
mod blocks;
mod bounded_parts;
mod list;
mod orthogonal;
mod points;
mod ranges;

pub use basic::Index;
pub use bounded_parts::Part;
pub use list::List;
pub use orthogonal::AxisIndex;
pub use ranges::IntoSelection;

use std::sync::Arc;
use zarrow_array::shape::Axes;

/// Selected positions of one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisSelection {
    /// Positions `start, start + step, …`.
    Even {
        /// First position.
        start: u64,
        /// Distance of neighbours, not 0; negative runs backwards.
        step: i64,
        /// Number of positions.
        count: u64,
        /// Whether the axis is dropped from the result.
        dropped: bool,
    },
    /// Individual positions.
    List(List),
    /// Coordinate on this axis of each of the selection's points.
    Points(Arc<Vec<u64>>),
}

impl AxisSelection {
    /// Selects all of an axis.
    fn whole(extent: u64) -> AxisSelection {
        AxisSelection::Even { start: 0, step: 1, count: extent, dropped: false }
    }

    /// Returns the number of positions.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            AxisSelection::Even { count, .. } => *count,
            AxisSelection::List(list) => list.len() as u64,
            AxisSelection::Points(coordinates) => coordinates.len() as u64,
        }
    }

    /// Returns the position with index `number`, which is below the count.
    ///
    /// # Panics
    /// If `number` is not below the count.
    #[must_use]
    pub fn position(&self, number: u64) -> u64 {
        match self {
            AxisSelection::Even { start, step, .. } => {
                start.wrapping_add_signed((number as i64).wrapping_mul(*step))
            }
            AxisSelection::List(list) => list.position(number),
            AxisSelection::Points(coordinates) => coordinates[number as usize],
        }
    }

    /// Returns all positions in the caller's order.
    #[must_use]
    pub fn positions(&self) -> Vec<u64> {
        match self {
            AxisSelection::List(list) => list.positions(),
            axis => (0..axis.count()).map(|number| axis.position(number)).collect(),
        }
    }

    /// Whether no axis of the result belongs to this axis alone.
    fn is_dropped(&self) -> bool {
        matches!(self, AxisSelection::Even { dropped: true, .. } | AxisSelection::Points(_))
    }

    /// Whether all positions are below `extent`.
    fn fits(&self, extent: u64) -> bool {
        match self {
            AxisSelection::Even { start, step, count, .. } => {
                let reach = count.saturating_sub(1).checked_mul(step.unsigned_abs());
                let last = reach.and_then(|reach| match *step > 0 {
                    true => start.checked_add(reach),
                    false => start.checked_sub(reach),
                });
                *count == 0 || (*start < extent && last.is_some_and(|last| last < extent))
            }
            AxisSelection::List(list) => list.last().is_none_or(|last| last < extent),
            AxisSelection::Points(coordinates) => coordinates.iter().all(|position| *position < extent),
        }
    }
}

/// Position of a selection's points in its result.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Points {
    /// Shape of the points.
    shape: Vec<u64>,
    /// Number of other axes before them.
    at: usize,
}

impl Points {
    fn count(&self) -> u64 {
        // Each list has this many positions.
        self.shape.iter().product()
    }
}

/// A selection within one shape.
///
/// ```
/// use zarrow::{Index, Selection};
/// let rows = Index::Slice { start: Some(-2), stop: None, step: None };
/// let selection = Selection::new(&[10, 4, 6], &[rows, Index::Ellipsis, Index::At(-1)])?;
/// assert_eq!(selection.shape(), [2, 4]);
/// assert!(Selection::new(&[10], &[Index::At(10)]).is_err());
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    axes: Vec<AxisSelection>,
    points: Option<Points>,
}

impl Selection {
    /// Selects every position of `shape`.
    #[must_use]
    pub fn all(shape: &[u64]) -> Selection {
        Selection { axes: shape.iter().map(|extent| AxisSelection::whole(*extent)).collect(), points: None }
    }

    /// Returns the positions of each axis of the array.
    #[must_use]
    pub fn axes(&self) -> &[AxisSelection] {
        &self.axes
    }

    /// Whether every position is inside `shape`.
    #[must_use]
    pub fn fits(&self, shape: &[u64]) -> bool {
        self.axes.len() == shape.len() && self.axes.iter().zip(shape).all(|(axis, extent)| axis.fits(*extent))
    }

    /// Returns the shape of the result: the axes that are not dropped, and the axes of the points.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        let mut shape = Vec::with_capacity(self.axes.len());
        shape.extend(self.kept());
        if let Some(points) = &self.points {
            shape.splice(points.at..points.at, points.shape.iter().copied());
        }
        shape
    }

    /// Returns the shape of the result with all axes of the points flattened to one.
    pub(crate) fn flat_shape(&self) -> Axes<u64> {
        let mut shape: Axes<u64> = self.kept().collect();
        if let Some(points) = &self.points {
            shape.insert(points.at, points.count());
        }
        shape
    }

    /// Returns the extents of the axes that are neither dropped nor of points.
    fn kept(&self) -> impl Iterator<Item = u64> {
        self.axes.iter().filter(|axis| !axis.is_dropped()).map(AxisSelection::count)
    }

    /// Returns the points' axis in [`flat_shape`](Selection::flat_shape), and their shape in the result; `None` for a
    /// selection without points.
    pub(crate) fn axes_of_points(&self) -> Option<(usize, &[u64])> {
        self.points.as_ref().map(|points| (points.at, &points.shape[..]))
    }

    /// Returns the axis of [`flat_shape`](Selection::flat_shape) for each axis of the array: `None` for a dropped
    /// axis, and for the points' axes after the first.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        let mut of_points = self.points.as_ref().map(|points| points.at);
        let reserved = of_points;
        let mut kept = 0usize;
        self.axes.iter().map(move |axis| match axis {
            AxisSelection::Points(_) => of_points.take(),
            axis if axis.is_dropped() => None,
            _ => {
                let number = kept;
                kept += 1;
                Some(number + usize::from(reserved.is_some_and(|at| number >= at)))
            }
        })
    }
}
