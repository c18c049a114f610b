//! The part of a chunk selected by a read, and the place of each of its elements in the output.
//!
//! A selection is one [`AxisPart`] per axis: evenly spaced positions, or an [`IndexList`] of single positions. The
//! sections that [`chunk_parts`](super::chunk_parts) cuts from it for a chunk are again one [`AxisPart`] per axis.
//!
//! Points have lists on several axes, which are paired: the first position of each, the second of each, and so on. The
//! axis mapped to the output's axis counts all points, and the others count one, so that the product of the counts is
//! the number of elements.

use crate::selection::{AxisSelection, Selection};
use smallvec::SmallVec;

/// One value per axis, stored inline for as many axes as most arrays have.
pub type PerAxis<T> = SmallVec<[T; 4]>;

/// The output axis of an array axis; `None` for a dropped axis.
pub type OutputAxis = Option<usize>;

/// The positions taken along one axis: `start + k × step` goes to `place + k × direction`, unless `list` overrides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisPart<'a> {
    /// The first position, counted from the start of the array or chunk; the lowest one of a list.
    pub start: u64,
    /// The distance between neighbouring positions, at least 1.
    pub step: u64,
    /// The number of positions, at least 1.
    pub count: u64,
    /// Index of the first position on the output's axis.
    pub place: u64,
    /// Whether positions map to descending output indexes.
    pub reversed: bool,
    /// The output's axis.
    pub output: OutputAxis,
    /// The positions, if they are not evenly spaced.
    pub list: Option<IndexList<'a>>,
}

/// Explicitly listed positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexList<'a> {
    /// The positions, counted `origin` before the start of the array or chunk; rising, but for points.
    pub positions: &'a [u64],
    /// Index of each position on the output's axis; `None` if they are consecutive.
    pub places: Option<&'a [u64]>,
    /// Subtracted from each position.
    pub origin: u64,
    /// Whether the positions are paired with the positions of other axes.
    pub vectorized: bool,
}

impl<'a> IndexList<'a> {
    /// `count` of them, after the first `skipped`.
    pub fn skip(self, skipped: u64, count: u64) -> IndexList<'a> {
        // Lists are in memory, so their indexes fit.
        let range = skipped as usize..(skipped + count) as usize;
        IndexList {
            positions: &self.positions[range.clone()],
            places: self.places.map(|places| &places[range]),
            ..self
        }
    }

    /// The positions, counted from the start of the array or chunk.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.positions.iter().map(move |position| position - self.origin)
    }

    /// The lowest position.
    fn first(self) -> u64 {
        let first = if self.vectorized { self.positions.iter().min() } else { self.positions.first() };
        first.map_or(0, |first| first - self.origin)
    }

    /// The highest position.
    fn last(self) -> u64 {
        let last = if self.vectorized { self.positions.iter().max() } else { self.positions.last() };
        last.map_or(0, |last| last - self.origin)
    }
}

impl<'a> AxisPart<'a> {
    /// Converts an axis's `selection`, relative to its lowest position; `None` if it is empty.
    fn new(selection: &'a AxisSelection, output: OutputAxis) -> Option<AxisPart<'a>> {
        let listed = |positions: &'a [u64], places, vectorized| {
            let list = IndexList { positions, places, origin: 0, vectorized };
            let count = if vectorized && output.is_none() { 1 } else { positions.len() as u64 };
            let part = AxisPart { start: 0, step: 1, count, place: 0, reversed: false, output, list: None };
            (!positions.is_empty()).then(|| part.with_list(list))
        };
        match selection {
            AxisSelection::Even { start, step, count, .. } => {
                let reach = count.checked_sub(1)?.checked_mul(step.unsigned_abs())?;
                let reversed = *step < 0;
                let (start, place) =
                    if reversed { (start.checked_sub(reach)?, count - 1) } else { (*start, 0) };
                let (step, count) = (step.unsigned_abs(), *count);
                Some(AxisPart { start, step, count, place, reversed, output, list: None })
            }
            AxisSelection::List(list) => {
                let (positions, places) = list.sorted();
                listed(positions, places, false)
            }
            AxisSelection::Points(coordinates) => listed(coordinates, None, true),
        }
    }

    /// Returns the same part with this list, which must have at least one position.
    pub fn with_list(self, list: IndexList<'a>) -> AxisPart<'a> {
        AxisPart { start: list.first(), list: Some(list), ..self }
    }

    /// Whether the positions are paired with the positions of other axes.
    pub fn is_vectorized(&self) -> bool {
        self.list.is_some_and(|list| list.vectorized)
    }

    /// The last position.
    pub fn last(&self) -> u64 {
        match self.list {
            None => self.start + (self.count - 1) * self.step,
            Some(list) => list.last(),
        }
    }

    /// `count` of its positions, after the first `skipped`; an axis that is vectorized is not skipped by itself.
    pub fn skip(&self, skipped: u64, count: u64) -> AxisPart<'a> {
        let place = if self.reversed { self.place - skipped } else { self.place + skipped };
        match self.list {
            None => AxisPart { start: self.start + skipped * self.step, count, place, ..*self },
            Some(list) => AxisPart { count, place, ..*self }.with_list(list.skip(skipped, count)),
        }
    }

    /// Drops the list if its positions turn out to be evenly spaced: regular parts are read faster.
    pub fn evened(self) -> AxisPart<'a> {
        let Some(IndexList { positions, places, origin, vectorized: false }) = self.list else { return self };
        let rises =
            |values: &[u64], by: u64| values.windows(2).all(|pair| pair[0].checked_add(by) == Some(pair[1]));
        let step = positions.get(..2).map_or(1, |pair| pair[1] - pair[0]);
        let reversed = places.is_some_and(|places| places.len() > 1 && places[1] < places[0]);
        let is_even = step > 0
            && rises(positions, step)
            && places.is_none_or(|places| match reversed {
                true => places.windows(2).all(|pair| pair[1].checked_add(1) == Some(pair[0])),
                false => rises(places, 1),
            });
        if !is_even {
            return self;
        }
        let place = places.map_or(self.place, |places| places[0]);
        AxisPart { start: positions[0] - origin, step, place, reversed, list: None, ..self }
    }
}

/// Returns `count` positions of one axis of a part, after the first `skipped`, and all positions of the other axes. If
/// the axis belongs to points, the axes of those points are narrowed together.
pub fn narrowed<'a>(part: &[AxisPart<'a>], axis: usize, skipped: u64, count: u64) -> PerAxis<AxisPart<'a>> {
    let mut narrowed = PerAxis::from_slice(part);
    narrowed[axis] = part[axis].skip(skipped, count);
    if part[axis].is_vectorized() {
        for (other, piece) in narrowed.iter_mut().enumerate() {
            if let Some(list) = piece.list.filter(|list| list.vectorized && other != axis) {
                *piece = piece.with_list(list.skip(skipped, count));
            }
        }
    }
    narrowed
}

/// Returns share `number` of `count` of a part, split along its outermost axis with several positions; `None` if the
/// share is empty.
pub fn share_of<'a>(part: &[AxisPart<'a>], number: u64, count: u64) -> Option<PerAxis<AxisPart<'a>>> {
    let Some(axis) = part.iter().position(|axis| axis.count > 1) else {
        return (number == 0).then(|| PerAxis::from_slice(part));
    };
    // Counts fit into memory, and there are few shares.
    let bound =
        |number: u64| u64::try_from(u128::from(part[axis].count) * u128::from(number) / u128::from(count));
    let (first, last) = (bound(number).ok()?, bound(number + 1).ok()?);
    let positions = last.checked_sub(first).filter(|positions| *positions > 0)?;
    Some(narrowed(part, axis, first, positions))
}

/// Returns the first element of a part and the number of elements, if they are one run of a chunk of `shape`, in C
/// order.
pub fn run_of(part: &[AxisPart<'_>], shape: &[u64]) -> Option<(u64, u64)> {
    let (mut first, mut count, mut stride) = (0u64, 1u64, 1u64);
    let mut whole = true;
    for (axis, extent) in part.iter().zip(shape).rev() {
        if axis.list.is_some() || axis.count > 1 && (!whole || axis.step != 1) {
            return None;
        }
        whole &= axis.count == *extent;
        first = first.checked_add(axis.start.checked_mul(stride)?)?;
        count = count.checked_mul(axis.count)?;
        stride = stride.checked_mul(*extent)?;
    }
    Some((first, count))
}

/// Whether a part is a whole chunk of `shape`, in C order.
pub fn is_whole(part: &[AxisPart<'_>], shape: &[u64]) -> bool {
    let whole = |(axis, extent): (&AxisPart<'_>, &u64)| {
        axis.step == 1 && axis.count == *extent && axis.list.is_none()
    };
    part.iter().zip(shape).all(whole)
}

/// Returns one part per axis of the array; `None` if the selection is empty.
pub fn whole_part(selection: &Selection) -> Option<PerAxis<AxisPart<'_>>> {
    let mut part = PerAxis::new();
    for (axis, output) in selection.axes().iter().zip(selection.outputs()) {
        part.push(AxisPart::new(axis, output)?);
    }
    Some(part)
}

/// Selections, and the positions of a part enumerated one by one: the oracle of the plan's tests.
#[cfg(test)]
pub mod oracle {
    use super::{AxisPart, PerAxis};
    use crate::selection::{AxisIndex, Index, Selection};
    use proptest::prelude::*;

    /// The position in the chunk and the place in the output (as `flat_shape` has its axes) of each element of a part,
    /// in its C order.
    pub fn elements(part: &[AxisPart<'_>]) -> Vec<(PerAxis<u64>, PerAxis<u64>)> {
        let outputs = part.iter().filter_map(|axis| axis.output).max().map_or(0, |last| last + 1);
        let mut elements = vec![(PerAxis::from_elem(0, part.len()), PerAxis::from_elem(0, outputs))];
        let counting = part.iter().position(|axis| axis.is_vectorized() && axis.output.is_some());
        for (number, axis) in part.iter().enumerate() {
            if axis.is_vectorized() && Some(number) != counting {
                continue;
            }
            elements = elements
                .iter()
                .flat_map(|(position, place)| {
                    (0..axis.count).map(move |at| {
                        let (mut position, mut place) = (position.clone(), place.clone());
                        let mut to = if axis.reversed { axis.place - at } else { axis.place + at };
                        for (other, vectorized) in part.iter().enumerate() {
                            match vectorized.list {
                                Some(list)
                                    if other == number
                                        || axis.is_vectorized() && vectorized.is_vectorized() =>
                                {
                                    position[other] = list.positions[at as usize] - list.origin;
                                    to = list.places.map_or(to, |places| places[at as usize]);
                                }
                                None if other == number => {
                                    position[other] = vectorized.start + at * vectorized.step
                                }
                                _ => {}
                            }
                        }
                        if let Some(output) = axis.output {
                            place[output] = to;
                        }
                        (position, place)
                    })
                })
                .collect();
        }
        elements
    }

    /// The positions of a selection, enumerated one by one.
    pub fn selected(selection: &Selection) -> Vec<(PerAxis<u64>, PerAxis<u64>)> {
        let shape = selection.flat_shape();
        let of_points = selection.axes_of_points().map(|(axis, _)| axis);
        let axes: Vec<Vec<u64>> = selection.axes().iter().map(|axis| axis.positions()).collect();
        let is_points = |axis| matches!(selection.axes()[axis], crate::AxisSelection::Points(_));
        let numbers = shape.iter().fold(vec![PerAxis::new()], |before: Vec<PerAxis<u64>>, extent| {
            let more = before.iter().flat_map(|place| {
                (0..*extent).map(move |number| place.iter().copied().chain([number]).collect())
            });
            more.collect()
        });
        let position = |place: &PerAxis<u64>| {
            let outputs = selection.outputs().enumerate().map(|(axis, output)| {
                let output = if is_points(axis) { of_points } else { output };
                axes[axis][output.map_or(0, |output| place[output] as usize)]
            });
            outputs.collect()
        };
        numbers.into_iter().map(|place| (position(&place), place)).collect()
    }

    /// Shapes, with basic, orthogonal or point selections of them.
    pub fn selections() -> impl Strategy<Value = (Vec<u64>, Selection)> {
        let axis = (1u64..12).prop_flat_map(|extent| {
            let length = extent as i64;
            let slice = (0..length, 0..=length, prop::sample::select(vec![-3i64, -1, 1, 2, 5]));
            let list = prop::collection::vec(-length..length, 0..9);
            (Just(extent), 0..4u8, -length..length, slice, list, prop::collection::vec(-length..length, 5))
        });
        (prop::collection::vec(axis, 0..4), any::<bool>(), 0usize..6).prop_map(|(axes, of_points, count)| {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let indices: Vec<AxisIndex<'_>> = axes
                .iter()
                .map(|(_, kind, at, (start, stop, step), list, points)| match kind {
                    0 => Index::At(*at).into(),
                    1 => Index::Slice { start: Some(*start), stop: Some(*stop), step: Some(*step) }.into(),
                    _ if of_points => AxisIndex::List(&points[..count.min(5)]),
                    _ => AxisIndex::List(list),
                })
                .collect();
            let selection = match of_points {
                true => Selection::points(&shape, &indices, &[count.min(5) as u64]),
                false => Selection::orthogonal(&shape, &indices),
            };
            (shape, selection.unwrap())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::oracle::{elements, selected, selections};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_parts_take_what_is_selected((_, selection) in selections()) {
            let mut taken = whole_part(&selection).map_or(Vec::new(), |part| elements(&part));
            let mut expected = selected(&selection);
            if selection.axes().is_empty() || selection.flat_shape().is_empty() {
                expected.truncate(1);
            }
            taken.sort();
            expected.sort();
            prop_assert_eq!(taken, expected);
        }

        /// Shares take each position once, in order, and a run matches the chunk's elements.
        #[test]
        fn shares_and_runs((shape, selection) in selections(), count in 1u64..6) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let part: PerAxis<_> = part.iter().map(|axis| axis.evened()).collect();
            let all = elements(&part);
            let shares = (0..count).filter_map(|number| share_of(&part, number, count));
            let shared: Vec<_> = shares.flat_map(|share| elements(&share)).collect();
            prop_assert_eq!(&shared, &all);
            let number = |position: &PerAxis<u64>| {
                position.iter().zip(&shape).fold(0, |at, (position, extent)| at * extent + position)
            };
            let is_run = all.windows(2).all(|pair| number(&pair[1].0) == number(&pair[0].0) + 1);
            match run_of(&part, &shape) {
                Some((first, count)) => prop_assert_eq!((first, count, is_run), (number(&all[0].0), all.len() as u64, true)),
                // A run may be missed if a split axis is followed by axes with one position only, and by points.
                None => prop_assert!(all.len() > 1 || part.iter().any(AxisPart::is_vectorized)),
            }
            let whole = all.len() as u64 == shape.iter().product::<u64>() && is_run;
            prop_assert!(!is_whole(&part, &shape) || whole);
        }

        /// An evenly spaced list stays the same part without its list.
        #[test]
        fn evening_changes_no_element(start in 0u64..9, step in 0u64..3, count in 1u64..5, first in 0u64..9, turn: bool, odd in 0usize..12) {
            let mut positions: Vec<u64> = (0..count).map(|at| start + at * step).collect();
            let mut places: Vec<u64> = (0..count).map(|at| if turn { first + count - at } else { first + at }).collect();
            if let Some(place) = places.get_mut(odd) {
                *place += 17;
            }
            if let Some(position) = positions.get_mut(odd + 1) {
                *position += 1;
            }
            positions.sort_unstable();
            for places in [Some(&places[..]), None] {
                let list = IndexList { positions: &positions, places, origin: 0, vectorized: false };
                let part = AxisPart { start: 0, step: 1, count, place: 3, reversed: false, output: Some(0), list: None }.with_list(list);
                prop_assert_eq!(elements(&[part.evened()]), elements(&[part]));
                let even = odd as u64 >= count && step > 0;
                prop_assert!(!even || part.evened().list.is_none());
            }
        }
    }
}
