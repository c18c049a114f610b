//! One side of a move: where the elements of a part lie in one memory, the chunk's or the output's.

use crate::exec::part::{AxisPart, PerAxis};
use crate::exec::placement::Axis;
use std::ops::Range;

/// Where the elements of a part lie.
#[derive(Debug)]
pub struct Side {
    /// Where the first one lies.
    pub first: isize,
    /// How many positions each axis has, and how far apart they are.
    axes: PerAxis<(usize, isize)>,
    /// The lowest and the highest of them, from the first on.
    reach: (isize, isize),
}

impl Side {
    /// Where `part` lies in a chunk, whose position 0 lies at `origin` and whose axes have these strides.
    pub fn in_chunk(part: &[AxisPart], origin: isize, strides: &[isize]) -> Option<Side> {
        let mut side = Side { first: origin, axes: PerAxis::new(), reach: (0, 0) };
        for (axis, stride) in part.iter().zip(strides) {
            side.axis(axis.start, axis.count, *stride, stride.checked_mul(to_isize(axis.step)?)?)?;
        }
        Some(side)
    }

    /// Where `part` lies in an output, whose position 0 lies at `origin` and whose axes have these strides.
    pub fn in_output(part: &[AxisPart], origin: isize, strides: &[isize]) -> Option<Side> {
        let mut side = Side { first: origin, axes: PerAxis::new(), reach: (0, 0) };
        for axis in part {
            let stride = match axis.output {
                Some(output) => *strides.get(output)?,
                None => 0,
            };
            side.axis(
                axis.place,
                axis.count,
                stride,
                if axis.reversed { stride.checked_neg()? } else { stride },
            )?;
        }
        Some(side)
    }

    fn axis(&mut self, start: u64, count: u64, stride: isize, step: isize) -> Option<()> {
        self.first = self.first.checked_add(stride.checked_mul(to_isize(start)?)?)?;
        let reach = step.checked_mul(to_isize(count.checked_sub(1)?)?)?;
        self.reach = (self.reach.0.checked_add(reach.min(0))?, self.reach.1.checked_add(reach.max(0))?);
        self.axes.push((usize::try_from(count).ok()?, step));
        Some(())
    }

    /// Where all elements, of `item_size` bytes, lie; `None` where that is before the start of the memory.
    pub fn range(&self, item_size: usize) -> Option<Range<usize>> {
        let low = self.first.checked_add(self.reach.0)?;
        let high = self.first.checked_add(self.reach.1)?;
        Some(usize::try_from(low).ok()?..usize::try_from(high).ok()?.checked_add(item_size)?)
    }

    /// Bytes of the elements, of `item_size` bytes, where they are one run in the part's C order.
    pub fn run(&self, item_size: usize) -> Option<usize> {
        let mut expected = to_isize(item_size as u64)?;
        for (count, step) in self.axes.iter().rev().filter(|(count, _)| *count != 1) {
            if *step != expected {
                return None;
            }
            expected = expected.checked_mul(to_isize(*count as u64)?)?;
        }
        usize::try_from(expected).ok()
    }

    /// The axes of a move from this side to the other side of the same part.
    pub fn axes_to(&mut self, other: &mut Side) -> PerAxis<Axis> {
        let pairs = self.axes.iter().zip(&other.axes);
        pairs
            .map(|((count, source), (_, destination))| Axis {
                count: *count,
                source: *source,
                destination: *destination,
            })
            .collect()
    }

    /// Where each element lies, in the part's C order, over and over.
    pub fn iter(&self) -> Elements<'_> {
        Elements { side: self, numbers: PerAxis::from_elem(0, self.axes.len()), at: self.first }
    }
}

fn to_isize(number: u64) -> Option<isize> {
    isize::try_from(number).ok()
}

/// Counts through the elements of a side.
pub struct Elements<'a> {
    side: &'a Side,
    /// The number of the next one on each axis.
    numbers: PerAxis<usize>,
    /// Where it lies.
    at: isize,
}

impl Iterator for Elements<'_> {
    type Item = isize;

    /// Where the next element lies; after the last one the first again.
    fn next(&mut self) -> Option<isize> {
        let at = self.at;
        for ((count, step), number) in self.side.axes.iter().zip(&mut self.numbers).rev() {
            *number += 1;
            if *number < *count {
                self.at = self.at.wrapping_add(*step);
                break;
            }
            self.at = self.at.wrapping_sub(step.wrapping_mul(*count as isize - 1));
            *number = 0;
        }
        Some(at)
    }
}
