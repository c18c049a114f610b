//! Splits a selection into parts, for memory that holds only part of the result at a time.
//!
//! 1. Axes are split between units (chunks), so that each unit is in one part. Lists of positions and points are never
//!    split.
//! 2. The outermost axis is split first: a part is then contiguous in the result. An inner axis is split only if one
//!    unit of all outer axes is too large already.
//! 3. Parts are as large as possible. One unit of every axis may be too large; then it is a part nevertheless.

use super::{AxisSelection, Selection};

/// Part of a selection, and its position in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Positions in the array.
    pub selection: Selection,
    /// Position of the first element, on each axis of the whole selection's shape.
    pub start: Vec<u64>,
}

/// A splittable axis: its index in the array and in the result, and the end of each unit, in positions of the
/// selection.
struct Cut {
    axis: usize,
    output: usize,
    ends: Vec<u64>,
}

impl Selection {
    /// Splits the selection into parts of at most `max_nbytes` bytes, as far as units of `unit` positions, such as
    /// chunks, allow it. Together they contain each element once, in the order of the result along its outer axes.
    ///
    /// ```
    /// use zarrow::Selection;
    /// let parts = Selection::all(&[6, 4]).parts(&[2, 4], 1, 16);
    /// assert_eq!(parts.len(), 2);
    /// assert_eq!((&parts[1].start[..], &parts[1].selection.shape()[..]), (&[4, 0][..], &[2, 4][..]));
    /// ```
    #[must_use]
    pub fn parts(&self, unit: &[u64], item_size: usize, max_nbytes: usize) -> Vec<Part> {
        let shape = self.shape();
        if shape.contains(&0) {
            return Vec::new();
        }
        let nbytes = |shape: &[u64]| {
            shape.iter().fold(item_size as u64, |nbytes, extent| nbytes.saturating_mul(*extent))
        };
        let mut part = nbytes(&shape);
        let mut parts = vec![Part { selection: self.clone(), start: vec![0; shape.len()] }];
        for mut cut in self.cuts(unit) {
            if part <= max_nbytes as u64 {
                break;
            }
            let count = cut.ends.last().copied().unwrap_or(1);
            // The largest unit decides how many fit: units differ at the edges, and a step may skip positions.
            let widest = widths(&cut.ends).max().unwrap_or(1);
            let outside = part / count.max(1);
            let together = (max_nbytes as u64 / outside.saturating_mul(widest).max(1)).max(1);
            let last = cut.ends.len().saturating_sub(1);
            let mut number = 0;
            cut.ends.retain(|_| {
                number += 1;
                (number as u64).is_multiple_of(together) || number - 1 == last
            });
            part = outside.saturating_mul(widths(&cut.ends).max().unwrap_or(1));
            parts = parts.iter().flat_map(|part| cut.divide(part)).collect();
        }
        parts
    }

    /// Step 1: the splittable axes, in the order of the result.
    fn cuts(&self, unit: &[u64]) -> Vec<Cut> {
        let points = self.points.as_ref().map_or((usize::MAX, 0), |points| (points.at, points.shape.len()));
        let mut output = 0;
        let mut cuts = Vec::new();
        for (axis, (selection, unit)) in self.axes.iter().zip(unit).enumerate() {
            if selection.is_dropped() {
                continue;
            }
            let place = if output >= points.0 { output + points.1 } else { output };
            output += 1;
            if let AxisSelection::Even { start, step, count, .. } = *selection {
                cuts.push(Cut { axis, output: place, ends: ends(start, step, count, (*unit).max(1)) });
            }
        }
        cuts
    }
}

/// Returns the end of each unit among the evenly spaced positions from `start` on.
fn ends(start: u64, step: i64, count: u64, unit: u64) -> Vec<u64> {
    let mut ends = Vec::new();
    let mut number = 0;
    while number < count {
        let position = start.wrapping_add_signed((number as i64).wrapping_mul(step));
        // Remaining positions of the unit, from this one on.
        let left = if step > 0 { unit - position % unit } else { position % unit + 1 };
        number = number.saturating_add(left.div_ceil(step.unsigned_abs().max(1))).min(count);
        ends.push(number);
    }
    ends
}

fn widths(ends: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, end)| end - start)
}

impl Cut {
    /// Splits a part along this axis.
    fn divide(&self, part: &Part) -> Vec<Part> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let pieces = starts.zip(&self.ends).map(|(from, to)| {
            let mut piece = part.clone();
            if let AxisSelection::Even { start, step, count, .. } = &mut piece.selection.axes[self.axis] {
                *start = start.wrapping_add_signed((from as i64).wrapping_mul(*step));
                *count = to - from;
            }
            piece.start[self.output] = from;
            piece
        });
        pieces.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::{AxisIndex, Index};

    fn slice(start: i64, stop: i64, step: i64) -> Index {
        let stop = if stop == i64::MIN { None } else { Some(stop) };
        Index::Slice { start: Some(start), stop, step: Some(step) }
    }

    /// Every element of the selection, by its position in the array, in the order of the result.
    fn elements(selection: &Selection) -> Vec<Vec<u64>> {
        let mut result = vec![vec![]];
        for axis in selection.axes() {
            let positions = axis.positions();
            result = result
                .iter()
                .flat_map(|outer| positions.iter().map(move |position| [&outer[..], &[*position]].concat()))
                .collect();
        }
        result
    }

    #[test]
    fn parts_have_each_element_once_and_no_unit_twice() {
        let shape = [23, 9, 5];
        let unit = [4, 3, 5];
        for first in
            [slice(0, 23, 1), slice(1, 22, 2), slice(21, i64::MIN, -3), slice(3, 23, 7), Index::At(5)]
        {
            for second in [slice(0, 9, 1), slice(8, i64::MIN, -1), slice(2, 8, 4), Index::At(0)] {
                let selection = Selection::new(&shape, &[first, second, Index::Ellipsis]).unwrap();
                let all = elements(&selection);
                for max_nbytes in [1, 7, 30, 60, 100, 1000, 100_000] {
                    let parts = selection.parts(&unit, 2, max_nbytes);
                    let mut found: Vec<_> = parts.iter().flat_map(|part| elements(&part.selection)).collect();
                    let mut units: Vec<Vec<Vec<u64>>> = parts
                        .iter()
                        .map(|part| {
                            let unit_of = |element: Vec<u64>| {
                                element.iter().zip(unit).map(|(at, unit)| at / unit).collect()
                            };
                            let mut units: Vec<Vec<u64>> =
                                elements(&part.selection).into_iter().map(unit_of).collect();
                            units.sort();
                            units.dedup();
                            units
                        })
                        .collect();
                    found.sort();
                    let mut expected = all.clone();
                    expected.sort();
                    assert_eq!(found, expected);
                    let count: usize = units.iter().map(Vec::len).sum();
                    let mut distinct = units.drain(..).flatten().collect::<Vec<_>>();
                    distinct.sort();
                    distinct.dedup();
                    assert_eq!(count, distinct.len());
                    for part in &parts {
                        let nbytes = elements(&part.selection).len() * 2;
                        let is_one_unit = {
                            let mut units: Vec<Vec<u64>> = elements(&part.selection)
                                .iter()
                                .map(|element| element.iter().zip(unit).map(|(at, unit)| at / unit).collect())
                                .collect();
                            units.sort();
                            units.dedup();
                            units.len() == 1
                        };
                        assert!(nbytes <= max_nbytes || is_one_unit, "{nbytes} of {max_nbytes}");
                    }
                }
            }
        }
    }

    #[test]
    fn starts_are_places_in_the_result() {
        let selection =
            Selection::new(&[8, 3, 6], &[slice(7, i64::MIN, -1), Index::At(1), slice(0, 6, 1)]).unwrap();
        let parts = selection.parts(&[2, 3, 6], 1, 24);
        assert_eq!(parts.iter().map(|part| part.start.clone()).collect::<Vec<_>>(), [[0, 0], [4, 0]]);
        assert_eq!(parts[1].selection.axes()[0].positions(), [3, 2, 1, 0]);
        assert!(Selection::new(&[8], &[slice(3, 3, 1)]).unwrap().parts(&[2], 1, 4).is_empty());
    }

    #[test]
    fn lists_and_points_stay_whole() {
        let shape = [6, 8, 10];
        let indices = [AxisIndex::Basic(slice(0, 6, 1)), AxisIndex::List(&[5, 0, 3]), AxisIndex::ALL];
        let selection = Selection::orthogonal(&shape, &indices).unwrap();
        let parts = selection.parts(&[2, 2, 10], 1, 60);
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.selection.shape() == [2, 3, 10]));
    }
}
