//! What part of an array is asked for, checked against its shape.
//!
//! 1. [`basic`]: integers, slices and `...`. Each axis has positions that are evenly spaced.
//! 2. [`orthogonal`]: an axis may have a list of positions instead, in any order and repeated; the axes are combined,
//!    as `numpy.ix_` does.
//! 3. [`points`]: lists of several axes that are taken together, position by position.
//! 4. [`blocks`]: chunks of the array's grid.
//! 5. [`ranges`]: the same as 1, as Rust writes it.
//! 6. [`parts`]: a selection cut along the chunks, for memory that holds some of the result at a time.
//!
//! What each gives is one [`AxisSelection`] an axis, all of whose positions lie inside the axis.

mod basic;
mod blocks;
mod list;
mod orthogonal;
mod parts;
mod points;
mod ranges;

pub use basic::Index;
pub use list::List;
pub use orthogonal::AxisIndex;
pub use parts::Part;
pub use ranges::IntoSelection;

use std::sync::Arc;
use zarrow_array::shape::Axes;

/// The positions of one axis that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisSelection {
    /// Positions `start, start + step, …`.
    Even {
        /// The first position.
        start: u64,
        /// The distance of neighbours, not 0; negative runs backwards.
        step: i64,
        /// How many positions.
        count: u64,
        /// Whether the axis is dropped from the result.
        dropped: bool,
    },
    /// Positions one by one.
    List(List),
    /// The coordinate on this axis of each of the selection's points.
    Points(Arc<Vec<u64>>),
}

impl AxisSelection {
    /// All of an axis.
    fn whole(extent: u64) -> AxisSelection {
        AxisSelection::Even { start: 0, step: 1, count: extent, dropped: false }
    }

    /// How many positions.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            AxisSelection::Even { count, .. } => *count,
            AxisSelection::List(list) => list.len() as u64,
            AxisSelection::Points(coordinates) => coordinates.len() as u64,
        }
    }

    /// The position `number`, which is below the count.
    ///
    /// # Panics
    /// Where it is not.
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

    /// All positions, as the caller ordered them.
    #[must_use]
    pub fn positions(&self) -> Vec<u64> {
        match self {
            AxisSelection::List(list) => list.positions(),
            axis => (0..axis.count()).map(|number| axis.position(number)).collect(),
        }
    }

    /// Whether the axis has no axis of the result to itself.
    fn is_dropped(&self) -> bool {
        matches!(self, AxisSelection::Even { dropped: true, .. } | AxisSelection::Points(_))
    }

    /// Whether all positions lie below `extent`.
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

/// Where a selection's points stand in its result.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Points {
    /// The axes that they have.
    shape: Vec<u64>,
    /// How many other axes stand before these.
    at: usize,
}

impl Points {
    fn count(&self) -> u64 {
        // As many as each list has.
        self.shape.iter().product()
    }
}

/// A selection that fits one shape.
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
    /// Every position of `shape`.
    #[must_use]
    pub fn all(shape: &[u64]) -> Selection {
        Selection { axes: shape.iter().map(|extent| AxisSelection::whole(*extent)).collect(), points: None }
    }

    /// The positions of each axis of the array.
    #[must_use]
    pub fn axes(&self) -> &[AxisSelection] {
        &self.axes
    }

    /// Whether every position lies inside `shape`.
    #[must_use]
    pub fn fits(&self, shape: &[u64]) -> bool {
        self.axes.len() == shape.len() && self.axes.iter().zip(shape).all(|(axis, extent)| axis.fits(*extent))
    }

    /// The shape of the result: the axes that are not dropped, and those of the points.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        let mut shape = Vec::with_capacity(self.axes.len());
        shape.extend(self.kept());
        if let Some(points) = &self.points {
            shape.splice(points.at..points.at, points.shape.iter().copied());
        }
        shape
    }

    /// The shape of the result where points are one axis, however many they have.
    pub(crate) fn flat_shape(&self) -> Axes<u64> {
        let mut shape: Axes<u64> = self.kept().collect();
        if let Some(points) = &self.points {
            shape.insert(points.at, points.count());
        }
        shape
    }

    /// The extents of the axes that are neither dropped nor of points.
    fn kept(&self) -> impl Iterator<Item = u64> {
        self.axes.iter().filter(|axis| !axis.is_dropped()).map(AxisSelection::count)
    }

    /// The axis of [`flat_shape`](Selection::flat_shape) that the points are, and the axes that they have in the result;
    /// `None` where the selection has no points.
    pub(crate) fn axes_of_points(&self) -> Option<(usize, &[u64])> {
        self.points.as_ref().map(|points| (points.at, &points.shape[..]))
    }

    /// The axis of [`flat_shape`](Selection::flat_shape) that each axis of the array fills: `None` for a dropped one,
    /// and for all of the points' axes but the first.
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
