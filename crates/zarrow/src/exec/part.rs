//! The part of a chunk that a read wants, and where each of its elements goes.
//!
//! A selection is one [`AxisPart`] an axis. Cutting it along a chunk grid gives, for each axis on its own, the
//! cells that it touches and what it takes from each: a chunk's part is one such piece an axis. Cutting a
//! chunk's part along the grid of a shard's inner chunks is the same step once more.

use crate::selection::{AxisSelection, Selection};
use smallvec::SmallVec;

/// One value an axis, in place for as many axes as most arrays have.
pub type PerAxis<T> = SmallVec<[T; 4]>;

/// The axis of the output that an axis of the array fills; a dropped axis fills none.
pub type OutputAxis = Option<usize>;

/// What is taken along one axis: positions `start + k × step` go to `place + k × direction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisPart {
    /// The first position, counted from the start of the array or chunk.
    pub start: u64,
    /// The distance of neighbours, at least 1.
    pub step: u64,
    /// How many positions, at least 1.
    pub count: u64,
    /// Where the first one goes on the output's axis.
    pub place: u64,
    /// Whether the next ones go backwards on the output's axis.
    pub reversed: bool,
    /// The output's axis.
    pub output: OutputAxis,
}

impl AxisPart {
    /// `selection` of an axis, seen from its lowest position; `None` where it is empty.
    fn new(selection: &AxisSelection, output: OutputAxis) -> Option<AxisPart> {
        let AxisSelection { start, step, count, .. } = *selection;
        let reach = count.checked_sub(1)?.checked_mul(step.unsigned_abs())?;
        let reversed = step < 0;
        let (start, place) = if reversed { (start.checked_sub(reach)?, count - 1) } else { (start, 0) };
        Some(AxisPart { start, step: step.unsigned_abs(), count, place, reversed, output })
    }

    /// The last position.
    pub fn last(&self) -> u64 {
        self.start + (self.count - 1) * self.step
    }

    /// `count` of its positions, after the first `skipped`.
    pub fn skip(&self, skipped: u64, count: u64) -> AxisPart {
        let place = if self.reversed { self.place - skipped } else { self.place + skipped };
        AxisPart { start: self.start + skipped * self.step, count, place, ..*self }
    }

    /// What of this part lies in the cell `[origin, origin + extent)`, counted from the cell's start; the
    /// positions before the cell, `skipped` in number, were taken already.
    fn within(&self, skipped: u64, origin: u64, extent: u64) -> AxisPart {
        let start = self.start + skipped * self.step - origin;
        let room = (extent - start).div_ceil(self.step);
        AxisPart { start, ..self.skip(skipped, room.min(self.count - skipped)) }
    }

    /// The cells that this part touches and what it takes from each, in rising order; `None` where a list of them is
    /// longer than any honest grid's.
    ///
    /// `cell_of` gives the cell that holds a position, with its origin and extent.
    pub fn cut(&self, cell_of: impl Fn(u64) -> (u64, u64, u64)) -> Option<AxisCells> {
        /// More edges than anybody writes out, since a grid of equal chunks needs none.
        const MOST: usize = 1 << 22;
        let mut cells = Vec::new();
        let mut taken = 0u64;
        while taken < self.count {
            let (cell, origin, extent) = cell_of(self.start + taken * self.step);
            let piece = self.within(taken, origin, extent);
            taken += piece.count;
            cells.push((cell, piece));
            if cells.len() > MOST {
                return None;
            }
        }
        Some(AxisCells::Listed(cells))
    }

    /// The cells of one extent that this part touches, found when asked for.
    pub fn cut_regular(&self, extent: u64) -> AxisCells {
        let count = match self.step <= extent {
            true => self.last() / extent - self.start / extent + 1,
            // No cell holds two positions.
            false => self.count,
        };
        AxisCells::Regular { part: *self, extent, count }
    }
}

/// The cells that a part touches on one axis.
#[derive(Debug)]
pub enum AxisCells {
    /// Cells of one extent.
    Regular {
        /// The part of the axis.
        part: AxisPart,
        /// The cells' extent.
        extent: u64,
        /// How many are touched.
        count: u64,
    },
    /// Any cells, one by one.
    Listed(Vec<(u64, AxisPart)>),
}

impl AxisCells {
    /// How many cells are touched.
    pub fn count(&self) -> u64 {
        match self {
            AxisCells::Regular { count, .. } => *count,
            AxisCells::Listed(cells) => cells.len() as u64,
        }
    }

    /// The cell `number`, which is below the count, and what is taken from it.
    pub fn get(&self, number: u64) -> (u64, AxisPart) {
        match self {
            AxisCells::Regular { part, extent, .. } if part.step <= *extent => {
                let cell = part.start / extent + number;
                let origin = cell * extent;
                let skipped = origin.saturating_sub(part.start).div_ceil(part.step);
                (cell, part.within(skipped, origin, *extent))
            }
            AxisCells::Regular { part, extent, .. } => {
                let cell = (part.start + number * part.step) / extent;
                (cell, part.within(number, cell * extent, *extent))
            }
            AxisCells::Listed(cells) => cells[number as usize],
        }
    }
}

/// The `number`th of `count` shares of a part, cut along its outermost axis of several positions; `None` where the share
/// is empty.
pub fn share_of(part: &[AxisPart], number: u64, count: u64) -> Option<PerAxis<AxisPart>> {
    let mut share = PerAxis::from_slice(part);
    match share.iter_mut().find(|axis| axis.count > 1) {
        Some(axis) => {
            // Counts fit into memory, and shares are few.
            let bound =
                |number: u64| u64::try_from(u128::from(axis.count) * u128::from(number) / u128::from(count));
            let (first, last) = (bound(number).ok()?, bound(number + 1).ok()?);
            *axis = axis.skip(first, last.checked_sub(first).filter(|positions| *positions > 0)?);
        }
        None if number > 0 => return None,
        None => {}
    }
    Some(share)
}

/// The first element of a part and their number, where they are one run of a chunk of `shape`, in its order.
pub fn run_of(part: &[AxisPart], shape: &[u64]) -> Option<(u64, u64)> {
    let (mut first, mut count, mut stride) = (0u64, 1u64, 1u64);
    let mut whole = true;
    for (axis, extent) in part.iter().zip(shape).rev() {
        if axis.count > 1 && (!whole || axis.step != 1) {
            return None;
        }
        whole &= axis.count == *extent;
        first = first.checked_add(axis.start.checked_mul(stride)?)?;
        count = count.checked_mul(axis.count)?;
        stride = stride.checked_mul(*extent)?;
    }
    Some((first, count))
}

/// One part an axis of the array; `None` where the selection is empty.
pub fn whole_part(selection: &Selection) -> Option<PerAxis<AxisPart>> {
    let mut next = 0usize;
    selection
        .axes()
        .iter()
        .map(|axis| {
            let output = (!axis.dropped).then(|| {
                next += 1;
                next - 1
            });
            AxisPart::new(axis, output)
        })
        .collect()
}

/// The cells that a part touches on each axis, whose combinations are numbered in C order: the plan of a read.
#[derive(Debug)]
pub struct Cells {
    axes: PerAxis<AxisCells>,
    count: u64,
}

impl Cells {
    /// The combinations of these cells; `None` where there are more than can be counted.
    pub fn new(axes: PerAxis<AxisCells>) -> Option<Cells> {
        let count = axes.iter().try_fold(1u64, |product, axis| product.checked_mul(axis.count()))?;
        Some(Cells { axes, count })
    }

    /// How many combinations there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The combination `number`: writes its cell on each axis and what is taken from it.
    pub fn get(&self, number: u64, cell: &mut PerAxis<u64>, part: &mut PerAxis<AxisPart>) {
        cell.clear();
        part.clear();
        let mut rest = number;
        for axis in self.axes.iter().rev() {
            let (index, piece) = axis.get(rest % axis.count());
            rest /= axis.count();
            cell.push(index);
            part.push(piece);
        }
        cell.reverse();
        part.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Index;
    use proptest::prelude::*;

    proptest! {
        /// Every selected position is taken once, from the cell that holds it, and goes where NumPy puts it.
        #[test]
        fn cutting_takes_each_position_once(
            length in 1u64..40, extent in 1u64..9, start in proptest::option::of(-45i64..45),
            stop in proptest::option::of(-45i64..45), step in (-7i64..8).prop_filter("not 0", |step| *step != 0),
        ) {
            let selection = Selection::new(&[length], &[Index::Slice { start, stop, step: Some(step) }]).unwrap();
            let axis = selection.axes()[0];
            let mut found = vec![None; axis.count as usize];
            let cells = whole_part(&selection).map(|part| part[0].cut_regular(extent));
            let cut = whole_part(&selection).and_then(|part| part[0].cut(|at| (at / extent, at / extent * extent, extent)));
            for number in 0..cells.as_ref().map_or(0, AxisCells::count) {
                let (cell, piece) = cells.as_ref().unwrap().get(number);
                prop_assert_eq!(cut.as_ref().unwrap().get(number), (cell, piece));
                prop_assert!(piece.count > 0 && piece.last() < extent);
                for k in 0..piece.count {
                    let place = if piece.reversed { piece.place - k } else { piece.place + k };
                    let position = cell * extent + piece.start + k * piece.step;
                    prop_assert_eq!(found[place as usize].replace(position), None);
                }
            }
            let expected: Vec<_> =
                (0..axis.count as i64).map(|k| Some((axis.start as i64 + k * axis.step) as u64)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    proptest! {
        /// Shares take each position once, and a run is what a chunk's elements say it is.
        #[test]
        fn shares_and_runs(
            axes in prop::collection::vec((1u64..6, 0u64..4, 1u64..3, 1u64..5), 0..4), count in 1u64..6,
        ) {
            let shape: Vec<u64> = axes.iter().map(|(extent, start, step, n)| extent.max(&(start + step * (n - 1) + 1)).to_owned()).collect();
            let part: Vec<AxisPart> = axes.iter().enumerate().map(|(at, (_, start, step, n))| AxisPart {
                start: *start, step: *step, count: *n, place: 0, reversed: false, output: Some(at),
            }).collect();
            let elements = |part: &[AxisPart]| {
                part.iter().zip(&shape).fold(vec![0u64], |before, (axis, extent)| {
                    before.iter().flat_map(|at| (0..axis.count).map(move |k| at * extent + axis.start + k * axis.step)).collect()
                })
            };
            let all = elements(&part);
            let shared: Vec<u64> = (0..count).filter_map(|number| share_of(&part, number, count)).flat_map(|share| elements(&share)).collect();
            prop_assert_eq!(&shared, &all);
            let is_run = all.windows(2).all(|pair| pair[1] == pair[0] + 1);
            match run_of(&part, &shape) {
                Some((first, count)) => prop_assert_eq!((first, count, is_run), (all[0], all.len() as u64, true)),
                // A run may be missed where an axis that is cut is followed by axes of one position only.
                None => prop_assert!(all.len() > 1),
            }
        }
    }

    #[test]
    fn combinations_run_in_c_order() {
        let axis = |cells: &[u64]| {
            let part = AxisPart { start: 0, step: 1, count: 1, place: 0, reversed: false, output: None };
            AxisCells::Listed(cells.iter().map(|cell| (*cell, part)).collect())
        };
        let cells = Cells::new(PerAxis::from_iter([axis(&[3, 5]), axis(&[0, 1, 2])])).unwrap();
        let (mut cell, mut part) = (PerAxis::new(), PerAxis::new());
        let all: Vec<Vec<u64>> = (0..cells.count())
            .map(|number| {
                cells.get(number, &mut cell, &mut part);
                cell.to_vec()
            })
            .collect();
        assert_eq!(all, [[3, 0], [3, 1], [3, 2], [5, 0], [5, 1], [5, 2]]);
    }
}
