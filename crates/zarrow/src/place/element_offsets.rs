//! The memory layout of a part's elements, in the chunk or in the output.
//!
//! A move has one layout for its source and one for its destination. Both have the array's axes, with the axes of
//! points counted as one. Along each axis the elements have either a fixed stride or individual offsets.

use crate::error::Result;
use crate::place::axis::Axis;
use crate::plan::axis_part::{AxisPart, IndexList, PerAxis};
use crate::plan::output_strides::OutputStrides;
use std::ops::Range;
use zarrow_array::allocation::{self, Grow};

/// The memory layout of a part's elements.
#[derive(Debug)]
pub struct StridedLayout {
    /// Start of the axes: the offset of the first element, if all steps are even.
    pub first: isize,
    /// Offsets of the elements from there, per axis.
    pub axes: PerAxis<Steps>,
    /// The lowest and the highest offset.
    reach: (isize, isize),
}

/// Offsets of one axis's positions from the start of the axis.
#[derive(Debug)]
pub enum Steps {
    /// Multiples of one distance.
    Even {
        /// The number of positions.
        count: usize,
        /// The distance.
        step: isize,
    },
    /// Individual offsets.
    Each(Vec<isize>),
}

impl Steps {
    /// The number of positions.
    fn count(&self) -> usize {
        match self {
            Steps::Even { count, .. } => *count,
            Steps::Each(offsets) => offsets.len(),
        }
    }

    /// The offset of position `number`.
    fn offset(&self, number: usize) -> isize {
        match self {
            Steps::Even { step, .. } => number as isize * step,
            Steps::Each(offsets) => offsets[number],
        }
    }

    /// The same, one by one.
    fn each(&mut self) -> Result<&[isize]> {
        if let Steps::Even { count, step } = *self {
            *self = Steps::Each(allocation::collected((0..count).map(|number| number as isize * step))?);
        }
        Ok(match self {
            Steps::Each(offsets) => offsets,
            Steps::Even { .. } => &[],
        })
    }
}

impl StridedLayout {
    fn new(origin: isize) -> StridedLayout {
        StridedLayout { first: origin, axes: PerAxis::new(), reach: (0, 0) }
    }

    /// Returns the layout of `part` in a chunk with position 0 at `origin` and these axis strides; `None` if an offset
    /// overflows.
    pub fn in_chunk(
        part: &[AxisPart<'_>],
        origin: isize,
        strides: &[isize],
    ) -> Result<Option<StridedLayout>> {
        let mut layout = StridedLayout::new(origin);
        for (number, (axis, stride)) in part.iter().zip(strides).enumerate() {
            let added = match axis.list {
                None => {
                    let step = to_isize(axis.step).and_then(|step| stride.checked_mul(step));
                    step.and_then(|step| layout.even(axis.start, axis.count, *stride, step))
                }
                // Its positions are counted on the output axis of the points.
                Some(IndexList { vectorized: true, .. }) if axis.output.is_none() => Some(()),
                Some(_) => offsets(part, number, strides)?.and_then(|offsets| layout.each(offsets)),
            };
            if added.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(layout))
    }

    /// Returns the layout of `part` in an output with position 0 at `origin` and these axis strides; `None` if an
    /// offset overflows.
    pub fn in_output(
        part: &[AxisPart<'_>],
        origin: isize,
        strides: &OutputStrides,
    ) -> Result<Option<StridedLayout>> {
        let mut layout = StridedLayout::new(origin);
        for axis in part {
            let Some(stride) = strides.stride(axis.output) else { return Ok(None) };
            let offset = |place: u64| strides.offset(axis.output, place);
            let added = match axis.list {
                None => {
                    let step = if axis.reversed { stride.checked_neg() } else { Some(stride) };
                    step.and_then(|step| layout.even(axis.place, axis.count, stride, step))
                }
                // Its positions are counted on the output axis of the points.
                Some(IndexList { vectorized: true, .. }) if axis.output.is_none() => Some(()),
                Some(IndexList { places: Some(places), .. }) => {
                    all(places.iter().map(|place| offset(*place)))?.and_then(|offsets| layout.each(offsets))
                }
                Some(_) if strides.is_folded(axis.output) => {
                    let place = |number: usize| axis.place.checked_add(number as u64).and_then(offset);
                    let count = usize::try_from(axis.count).unwrap_or(usize::MAX);
                    all((0..count).map(place))?.and_then(|offsets| layout.each(offsets))
                }
                Some(_) => layout.even(axis.place, axis.count, stride, stride),
            };
            if added.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(layout))
    }

    /// Adds an axis that begins at position `start` and has `count` positions.
    fn even(&mut self, start: u64, count: u64, stride: isize, step: isize) -> Option<()> {
        self.first = self.first.checked_add(stride.checked_mul(to_isize(start)?)?)?;
        let reach = step.checked_mul(to_isize(count.checked_sub(1)?)?)?;
        self.extend(reach.min(0), reach.max(0))?;
        self.axes.push(Steps::Even { count: usize::try_from(count).ok()?, step });
        Some(())
    }

    /// Adds an axis with individual offsets.
    fn each(&mut self, offsets: Vec<isize>) -> Option<()> {
        self.extend(*offsets.iter().min()?, *offsets.iter().max()?)?;
        self.axes.push(Steps::Each(offsets));
        Some(())
    }

    fn extend(&mut self, low: isize, high: isize) -> Option<()> {
        self.reach = (self.reach.0.checked_add(low)?, self.reach.1.checked_add(high)?);
        Some(())
    }

    /// Returns the byte range of all elements, of `item_size` bytes each; `None` if it begins before the memory.
    pub fn range(&self, item_size: usize) -> Option<Range<usize>> {
        let low = self.first.checked_add(self.reach.0)?;
        let high = self.first.checked_add(self.reach.1)?;
        Some(usize::try_from(low).ok()?..usize::try_from(high).ok()?.checked_add(item_size)?)
    }

    /// Returns the size in bytes of the elements, of `item_size` bytes each, if they are one run in the part's C order.
    pub fn run(&self, item_size: usize) -> Option<usize> {
        let mut expected = to_isize(item_size as u64)?;
        for steps in self.axes.iter().rev() {
            match steps {
                Steps::Even { count: 1, .. } => {}
                Steps::Even { count, step } if *step == expected => {
                    expected = expected.checked_mul(to_isize(*count as u64)?)?;
                }
                _ => return None,
            }
        }
        usize::try_from(expected).ok()
    }

    /// The axes of a move from this layout to the `other` of the same part.
    pub fn axes_to<'a>(&'a mut self, other: &'a mut StridedLayout) -> Result<PerAxis<Axis<'a>>> {
        let pairs = self.axes.iter_mut().zip(&mut other.axes);
        pairs
            .map(|(from, to)| match (from, to) {
                (Steps::Even { count, step: source }, Steps::Even { step: destination, .. }) => {
                    Ok(Axis::Even { count: *count, source: *source, destination: *destination })
                }
                (from, to) => Ok(Axis::Each { source: from.each()?, destination: to.each()? }),
            })
            .collect()
    }

    /// Iterates over the offset of each element, in the part's C order, cyclically.
    pub fn iter(&self) -> ElementOffsets<'_> {
        let at = self.axes.iter().fold(self.first, |at, steps| at.wrapping_add(steps.offset(0)));
        ElementOffsets { layout: self, numbers: PerAxis::from_elem(0, self.axes.len()), at }
    }
}

fn to_isize(number: u64) -> Option<isize> {
    isize::try_from(number).ok()
}

/// Returns the offsets of an axis's positions from position 0, in a chunk with these axis strides; for points, the
/// offset over all their axes. `None` if an offset overflows.
pub fn offsets(part: &[AxisPart<'_>], axis: usize, strides: &[isize]) -> Result<Option<Vec<isize>>> {
    let vectorized = part[axis].is_vectorized();
    let axes = part.iter().zip(strides).enumerate();
    let mut own = axes.filter(|(other, (part, _))| *other == axis || vectorized && part.is_vectorized());
    let offset = |position: u64, stride: isize| stride.checked_mul(to_isize(position)?);
    let Some((_, (first, stride))) = own.next() else { return Ok(None) };
    let Some(list) = first.list else { return Ok(None) };
    let Some(sums) = all(list.iter().map(|position| offset(position, *stride)))? else { return Ok(None) };
    Ok(own.try_fold(sums, |mut sums, (_, (part, stride))| {
        for (sum, position) in sums.iter_mut().zip(part.list?.iter()) {
            *sum = sum.checked_add(offset(position, *stride)?)?;
        }
        Some(sums)
    }))
}

/// Collects the numbers; `None` if any is `None`.
fn all(numbers: impl ExactSizeIterator<Item = Option<isize>>) -> Result<Option<Vec<isize>>> {
    let mut list = allocation::with_capacity(numbers.len())?;
    for number in numbers {
        let Some(number) = number else { return Ok(None) };
        list.try_push(number)?;
    }
    Ok(Some(list))
}

/// Iterates over the offsets of a layout's elements.
pub struct ElementOffsets<'a> {
    layout: &'a StridedLayout,
    /// The next position on each axis.
    numbers: PerAxis<usize>,
    /// Byte offset of the first element.
    at: isize,
}

impl Iterator for ElementOffsets<'_> {
    type Item = isize;

    /// The offset of the next element; after the last element it starts again with the first.
    fn next(&mut self) -> Option<isize> {
        let at = self.at;
        for (steps, number) in self.layout.axes.iter().zip(&mut self.numbers).rev() {
            let before = steps.offset(*number);
            *number += 1;
            let is_last = *number == steps.count();
            if is_last {
                *number = 0;
            }
            self.at = self.at.wrapping_add(steps.offset(*number).wrapping_sub(before));
            if !is_last {
                break;
            }
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::axis_part::oracle::{elements, selections};
    use crate::plan::axis_part::whole_part;
    use crate::plan::output_strides::c_strides;
    use proptest::prelude::*;

    proptest! {
        /// Both layouts yield the elements in the same order and at the right offsets, and their range contains every
        /// element.
        #[test]
        fn both_layouts_lie_where_their_elements_do(
            (shape, selection) in selections(), gap in 1isize..4, origin in 0isize..9,
        ) {
            let Some(part) = whole_part(&selection) else { return Ok(()) };
            let strides: PerAxis<isize> = c_strides(&shape, 3);
            let out: PerAxis<isize> = c_strides(&selection.flat_shape(), 1).iter().map(|stride| stride * gap).collect();
            let dot = |position: &[u64], strides: &[isize]| {
                position.iter().zip(strides).map(|(position, stride)| *position as isize * stride).sum::<isize>()
            };
            let mut from = StridedLayout::in_chunk(&part, origin, &strides).unwrap().unwrap();
            let mut to = StridedLayout::in_output(&part, 0, &out.clone().into()).unwrap().unwrap();
            let both: Vec<(isize, isize)> = elements(&part)
                .iter()
                .map(|(position, place)| (origin + dot(position, &strides), dot(place, &out)))
                .collect();
            let places = |from: &StridedLayout, to: &StridedLayout| from.iter().zip(to.iter()).take(both.len()).collect::<Vec<_>>();
            prop_assert_eq!(&places(&from, &to), &both);
            prop_assert_eq!(from.iter().nth(both.len()), Some(both[0].0));
            let lies = |each: fn(&(isize, isize)) -> isize, size: usize| {
                let all = || both.iter().map(each);
                all().min().unwrap() as usize..all().max().unwrap() as usize + size
            };
            prop_assert_eq!(from.range(3), Some(lies(|both| both.0, 3)));
            prop_assert_eq!(to.range(1), Some(lies(|both| both.1, 1)));
            let is_run = both.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1);
            match to.run(1) {
                Some(count) => prop_assert_eq!((count, is_run), (both.len(), true)),
                // A run of listed positions may be missed.
                None => prop_assert!(!is_run || part.iter().any(|axis| axis.list.is_some())),
            }
            prop_assert_eq!(from.axes_to(&mut to).unwrap().len(), to.axes.len());
            prop_assert_eq!(places(&from, &to), both);
        }
    }

    #[test]
    fn layouts_beyond_the_address_space_are_none() {
        let part = AxisPart {
            start: 1 << 62,
            step: 1,
            count: 1,
            place: 1 << 62,
            reversed: false,
            output: Some(0),
            list: None,
        };
        let strides = |axes: &[isize]| OutputStrides::from(PerAxis::from_slice(axes));
        assert!(StridedLayout::in_chunk(&[part], 0, &[8]).unwrap().is_none());
        assert!(StridedLayout::in_output(&[part], 0, &strides(&[8])).unwrap().is_none());
        assert!(StridedLayout::in_output(&[part], 0, &strides(&[])).unwrap().is_none());
        let layout = StridedLayout::in_chunk(&[AxisPart { start: 0, ..part }], -1, &[8]).unwrap().unwrap();
        assert!(layout.range(8).is_none());
    }
}
