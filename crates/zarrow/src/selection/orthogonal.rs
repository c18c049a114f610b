//! Lists of positions and masks of single axes, combined as by `numpy.ix_`.
//!
//! A list of evenly spaced positions becomes the equivalent slice, so that it is read as fast.

use crate::error::{ErrorKind, Result};
use crate::selection::basic::{Index, length, locate, one_an_axis};
use crate::selection::list::List;
use crate::selection::{AxisSelection, Selection};
use zarrow_array::allocation::{self, Grow};

/// Index of one axis: a basic one, or individual positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisIndex<'a> {
    /// An integer, a slice or an ellipsis.
    Basic(Index),
    /// Positions in any order and repeated, counted from the end if negative.
    List(&'a [i64]),
    /// Whether each position of the axis is selected.
    Mask(&'a [bool]),
}

impl AxisIndex<'_> {
    /// The whole axis, `:`.
    pub const ALL: AxisIndex<'static> = AxisIndex::Basic(Index::ALL);
}

impl From<Index> for AxisIndex<'_> {
    fn from(index: Index) -> Self {
        AxisIndex::Basic(index)
    }
}

impl Selection {
    /// Selects positions on each axis independently: the result has all their combinations.
    ///
    /// ```
    /// use zarrow::{AxisIndex, Index, Selection};
    /// let columns = AxisIndex::Mask(&[true, false, false, true]);
    /// let selection = Selection::orthogonal(&[10, 4, 6], &[AxisIndex::List(&[7, -1, 7]), columns])?;
    /// assert_eq!(selection.shape(), [3, 2, 6]);
    /// assert_eq!(selection.axes()[0].positions(), [7, 9, 7]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] as [`Selection::new`], for a position outside its axis, and for a mask of another length
    /// than its axis; [`zarrow_array::Error::OutOfMemory`].
    pub fn orthogonal(shape: &[u64], indices: &[AxisIndex<'_>]) -> Result<Selection> {
        let axes =
            per_axis(shape, indices)?.map(|(axis, extent, index)| match positions(axis, extent, index)? {
                Err(basic) => AxisSelection::new(axis, extent, basic),
                Ok(positions) => AxisSelection::listed(positions),
            });
        Ok(Selection { axes: axes.collect::<Result<_>>()?, points: None })
    }
}

/// Returns each axis with its extent and its index.
pub fn per_axis<'a>(
    shape: &'a [u64],
    indices: &'a [AxisIndex<'a>],
) -> Result<impl Iterator<Item = (usize, u64, AxisIndex<'a>)> + Clone> {
    let is_ellipsis = |index: &AxisIndex<'_>| *index == AxisIndex::Basic(Index::Ellipsis);
    let indices = one_an_axis(shape.len(), indices, &AxisIndex::ALL, is_ellipsis)?;
    Ok(indices.zip(shape).enumerate().map(|(axis, (index, extent))| (axis, *extent, *index)))
}

/// Resolves and checks the individual positions of an axis; returns a basic index unchanged.
pub fn positions(
    axis: usize,
    extent: u64,
    index: AxisIndex<'_>,
) -> Result<std::result::Result<Vec<u64>, Index>> {
    let mut positions;
    match index {
        AxisIndex::Basic(index) => return Ok(Err(index)),
        AxisIndex::List(list) => {
            let length = length(axis, extent)?;
            positions = allocation::with_capacity(list.len())?;
            for position in list {
                positions.try_push(locate(*position, axis, length)?)?;
            }
        }
        AxisIndex::Mask(mask) => {
            if mask.len() as u64 != extent {
                let text = format!("the mask has {} values, axis {axis} has size {extent}", mask.len());
                return Err(ErrorKind::Index(text).into());
            }
            positions = allocation::with_capacity(mask.iter().filter(|taken| **taken).count())?;
            positions
                .try_extend((0u64..).zip(mask).filter(|(_, taken)| **taken).map(|(position, _)| position))?;
        }
    }
    Ok(Ok(positions))
}

impl AxisSelection {
    /// Selects these positions in this order.
    fn listed(positions: Vec<u64>) -> Result<AxisSelection> {
        let start = positions.first().copied().unwrap_or(0);
        // Positions are below 2⁶³.
        let distance = |pair: &[u64]| pair[1] as i64 - pair[0] as i64;
        let step = positions.get(..2).map_or(1, distance);
        if step != 0 && positions.windows(2).all(|pair| distance(pair) == step) {
            return Ok(AxisSelection::Even { start, step, count: positions.len() as u64, dropped: false });
        }
        Ok(AxisSelection::List(List::new(positions)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The selected positions are the requested ones in their order, and sorted lists give each position's index
        /// in the result.
        #[test]
        fn lists_and_masks_keep_what_they_ask_for(
            list in prop::collection::vec(-9i64..9, 0..12), mask in prop::collection::vec(any::<bool>(), 9),
        ) {
            let selection = Selection::orthogonal(&[9, 9], &[AxisIndex::List(&list), AxisIndex::Mask(&mask)]).unwrap();
            let wrapped: Vec<u64> = list.iter().map(|at| at.rem_euclid(9) as u64).collect();
            let taken: Vec<u64> = (0..9).filter(|at| mask[*at as usize]).collect();
            prop_assert_eq!(selection.shape(), [wrapped.len() as u64, taken.len() as u64]);
            prop_assert_eq!(selection.axes()[0].positions(), wrapped.clone());
            prop_assert_eq!(selection.axes()[1].positions(), taken);
            prop_assert!(selection.fits(&[9, 9]));
            prop_assert_eq!(selection.fits(&[8, 9]), wrapped.iter().all(|at| *at < 8));
            for (number, position) in wrapped.iter().enumerate() {
                prop_assert_eq!(selection.axes()[0].position(number as u64), *position);
            }
            if let AxisSelection::List(list) = &selection.axes()[0] {
                let (positions, places) = list.sorted();
                prop_assert!(positions.is_sorted());
                for (number, position) in positions.iter().enumerate() {
                    prop_assert_eq!(wrapped[places.map_or(number, |places| places[number] as usize)], *position);
                }
            }
        }
    }

    #[test]
    fn evenly_spaced_lists_are_slices() {
        for (list, start, step) in
            [(&[1i64, 3, 5][..], 1, 2), (&[4, 3, 2], 4, -1), (&[-1], 5, 1), (&[], 0, 1)]
        {
            let axis = AxisSelection::Even { start, step, count: list.len() as u64, dropped: false };
            assert_eq!(Selection::orthogonal(&[6], &[AxisIndex::List(list)]).unwrap().axes(), [axis]);
        }
        let repeated = Selection::orthogonal(&[6], &[AxisIndex::List(&[2, 2])]).unwrap();
        assert!(matches!(repeated.axes()[0], AxisSelection::List(_)));
    }

    #[test]
    fn positions_out_of_bounds_are_refused() {
        for index in [
            AxisIndex::List(&[0, 6]),
            AxisIndex::List(&[-7]),
            AxisIndex::List(&[i64::MIN]),
            AxisIndex::Mask(&[true; 5]),
            AxisIndex::Mask(&[]),
        ] {
            assert!(Selection::orthogonal(&[6], &[index]).is_err(), "{index:?}");
        }
    }
}
