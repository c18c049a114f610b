//! The memory that a read fills: many workers write to it at once, each to elements of its own.
//!
//! What makes the writes sound:
//! 1. every range is checked here against the memory's length before a byte is written, so that no write leaves it;
//! 2. no two writers have an element in common: the contract of every method that writes, which a
//!    [`Want`](crate::exec::want::Want) keeps;
//! 3. nobody reads the memory before all writes are done.

use crate::codec::Swap;
use crate::error::{ErrorKind, Result};
use crate::exec::part::{AxisPart, PerAxis};
use crate::exec::placement::{Axis, copy};
use crate::exec::sink::c_strides;
use crate::exec::stream;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Elements of one size, to be filled.
pub struct Destination<'a> {
    pointer: *mut u8,
    nbytes: usize,
    item_size: usize,
    /// Bytes from the start of the memory to the position 0 on every axis.
    origin: isize,
    /// Bytes from one position to the next on each output axis.
    strides: PerAxis<isize>,
    memory: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

// SAFETY: workers write to disjoint elements (point 2).
unsafe impl Send for Destination<'_> {}
// SAFETY: as above.
unsafe impl Sync for Destination<'_> {}

/// A source of elements: their bytes, where the first lies, and how far apart they are.
pub struct Source<'a> {
    /// The bytes that hold the elements.
    pub bytes: &'a [u8],
    /// Bytes from the start of `bytes` to the position 0 on every axis; may be negative where `bytes` begins
    /// later.
    pub origin: isize,
    /// Bytes from one position to the next on each axis of the part.
    pub strides: &'a [isize],
    /// What of each element is reversed on the way.
    pub swap: &'a Swap,
}

impl<'a> Destination<'a> {
    /// C-contiguous elements of `item_size` bytes in `memory`, which has the bytes of `shape`.
    pub fn new(memory: &'a mut [MaybeUninit<u8>], shape: &[u64], item_size: usize) -> Destination<'a> {
        let strides = c_strides(shape, item_size);
        let (pointer, nbytes) = (memory.as_mut_ptr().cast(), memory.len());
        Destination { pointer, nbytes, item_size, origin: 0, strides, memory: PhantomData }
    }

    /// Elements in the caller's memory, as far apart as it says.
    ///
    /// # Safety
    /// The `nbytes` bytes from `pointer` on may be written during `'a`, nobody else reads or writes them then, and
    /// `strides` give different positions different places.
    pub unsafe fn strided(
        pointer: *mut u8,
        nbytes: usize,
        item_size: usize,
        origin: isize,
        strides: PerAxis<isize>,
    ) -> Destination<'a> {
        Destination { pointer, nbytes, item_size, origin, strides, memory: PhantomData }
    }

    /// Bytes of one element.
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// Where the first element of `part` goes, and how far apart its elements are on each axis; `None` where it
    /// would leave the memory.
    fn place(&self, part: &[AxisPart]) -> Option<(usize, PerAxis<isize>)> {
        let (mut first, mut low, mut high) = (self.origin, 0isize, 0isize);
        let mut steps = PerAxis::new();
        for axis in part {
            let stride = match axis.output {
                Some(output) => *self.strides.get(output)?,
                None => 0,
            };
            first = first.checked_add(stride.checked_mul(isize::try_from(axis.place).ok()?)?)?;
            let step = if axis.reversed { -stride } else { stride };
            let reach = step.checked_mul(isize::try_from(axis.count - 1).ok()?)?;
            let side = if reach < 0 { &mut low } else { &mut high };
            *side = side.checked_add(reach)?;
            steps.push(step);
        }
        let lowest = usize::try_from(first.checked_add(low)?).ok();
        let end = first.checked_add(high)?.checked_add(isize::try_from(self.item_size).ok()?)?;
        let inside = lowest.is_some() && usize::try_from(end).is_ok_and(|end| end <= self.nbytes);
        inside.then_some((usize::try_from(first).ok()?, steps))
    }

    /// The memory of `part`, where it is one run of bytes in which the elements lie in the part's own C order.
    ///
    /// # Safety
    /// While the slice lives, nobody else writes to an element of the part.
    #[allow(clippy::mut_from_ref, reason = "the contract rules out a second one")]
    pub unsafe fn contiguous(&self, part: &[AxisPart]) -> Option<&mut [MaybeUninit<u8>]> {
        let (first, steps) = self.place(part)?;
        let mut expected = self.item_size as isize;
        for (axis, step) in part.iter().zip(&steps).rev() {
            if axis.count != 1 {
                if *step != expected {
                    return None;
                }
                expected = expected.checked_mul(isize::try_from(axis.count).ok()?)?;
            }
        }
        let nbytes = usize::try_from(expected).ok()?;
        // SAFETY: `place` checked that the part's elements, which here are one run of `nbytes` bytes from
        // `first`, lie inside the memory (point 1); no other part has them (point 2).
        Some(unsafe { std::slice::from_raw_parts_mut(self.pointer.add(first).cast(), nbytes) })
    }

    /// Copies the elements of `part` from `source`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where source or destination do not have them, which a checked plan rules out.
    ///
    /// # Safety
    /// During the call nobody else writes to an element of the part.
    pub unsafe fn scatter(&self, part: &[AxisPart], source: &Source<'_>) -> Result<()> {
        let outside = || ErrorKind::Internal("a part lies outside its chunk or output".into());
        let (first, steps) = self.place(part).ok_or_else(outside)?;
        let (start, axes) = self.source_axes(part, &steps, source).ok_or_else(outside)?;
        // SAFETY: `place` and `source_axes` checked every element's range on both sides (point 1), and no other
        // part has these elements (point 2). Source and destination are different memory: the source is a chunk
        // or a scratch, which no read fills.
        unsafe {
            copy(
                self.item_size,
                source.swap,
                &axes,
                source.bytes.as_ptr().add(start),
                self.pointer.add(first),
                self.nbytes >= stream::RESULT_NBYTES,
            );
        }
        Ok(())
    }

    /// Where the part starts in the source, and both sides' steps; `None` where it would leave the source.
    fn source_axes(
        &self,
        part: &[AxisPart],
        steps: &[isize],
        source: &Source<'_>,
    ) -> Option<(usize, PerAxis<Axis>)> {
        let (mut first, mut low, mut high) = (source.origin, 0isize, 0isize);
        let mut axes = PerAxis::new();
        for ((axis, destination), stride) in part.iter().zip(steps).zip(source.strides) {
            first = first.checked_add(stride.checked_mul(isize::try_from(axis.start).ok()?)?)?;
            let step = stride.checked_mul(isize::try_from(axis.step).ok()?)?;
            let reach = step.checked_mul(isize::try_from(axis.count - 1).ok()?)?;
            let side = if reach < 0 { &mut low } else { &mut high };
            *side = side.checked_add(reach)?;
            axes.push(Axis {
                count: usize::try_from(axis.count).ok()?,
                source: step,
                destination: *destination,
            });
        }
        let lowest = usize::try_from(first.checked_add(low)?).ok();
        let end = first.checked_add(high)?.checked_add(isize::try_from(self.item_size).ok()?)?;
        let inside = lowest.is_some() && usize::try_from(end).is_ok_and(|end| end <= source.bytes.len());
        (inside && axes.len() == part.len()).then_some((usize::try_from(first).ok()?, axes))
    }

    /// Calls `each` with every run of bytes that the elements of `part` fill, and where in the memory it begins, until
    /// it says false; returns whether it never did.
    ///
    /// # Safety
    /// The elements of the part have been written, and during the call nobody writes to them.
    pub unsafe fn each_run(&self, part: &[AxisPart], each: &mut dyn FnMut(usize, &[u8]) -> bool) -> bool {
        let Some((mut first, steps)) = self.place(part) else { return false };
        // Axes of several elements, the widest steps first, all of them forwards.
        let mut axes: PerAxis<(usize, usize)> = PerAxis::new();
        for (axis, step) in part.iter().zip(&steps).filter(|(axis, _)| axis.count > 1) {
            let (count, width) = (axis.count as usize, step.unsigned_abs());
            if *step < 0 {
                first -= (count - 1) * width;
            }
            axes.push((width, count));
        }
        axes.sort_unstable_by(|a, b| b.cmp(a));
        let mut run = self.item_size;
        while let Some((width, count)) = axes.last().copied()
            && width == run
        {
            run *= count;
            axes.pop();
        }
        let total: usize = axes.iter().map(|(_, count)| count).product();
        (0..total).all(|number| {
            let (mut at, mut rest) = (first, number);
            for (width, count) in axes.iter().rev() {
                at += rest % count * width;
                rest /= count;
            }
            // SAFETY: `place` checked that the part's elements lie inside the memory (point 1); the caller's contract.
            each(at, unsafe { std::slice::from_raw_parts(self.pointer.add(at), run) })
        })
    }

    /// Sets every element of `part` to `item`.
    ///
    /// # Errors
    /// As [`scatter`](Destination::scatter).
    ///
    /// # Safety
    /// As [`scatter`](Destination::scatter).
    pub unsafe fn fill(&self, part: &[AxisPart], item: &[u8]) -> Result<()> {
        // SAFETY: the caller's contract.
        if let Some(memory) = unsafe { self.contiguous(part) }
            && item.iter().all(|byte| Some(byte) == item.first())
        {
            memory.fill(MaybeUninit::new(item.first().copied().unwrap_or(0)));
            return Ok(());
        }
        let strides = PerAxis::from_elem(0isize, part.len());
        // SAFETY: the caller's contract.
        unsafe {
            self.scatter(part, &Source { bytes: item, origin: 0, strides: &strides, swap: &Swap::None })
        }
    }
}

/// A slice that many workers write to at once, each to places of its own.
pub struct Disjoint<'a, T> {
    pointer: *mut T,
    length: usize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: workers write to disjoint places (point 2).
unsafe impl<T: Send> Send for Disjoint<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T: Copy> Disjoint<'a, T> {
    /// The places of `slice`.
    pub fn new(slice: &'a mut [T]) -> Disjoint<'a, T> {
        Disjoint { pointer: slice.as_mut_ptr(), length: slice.len(), memory: PhantomData }
    }

    /// Writes `value` to the place `index`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where there is no such place.
    ///
    /// # Safety
    /// During the call nobody else writes to the place.
    pub unsafe fn set(&self, index: usize, value: T) -> Result<()> {
        if index >= self.length {
            return Err(ErrorKind::Internal("a place outside the result".into()).into());
        }
        // SAFETY: the index was checked above (point 1), and no other worker has the place (point 2).
        unsafe { self.pointer.add(index).write(value) };
        Ok(())
    }
}

impl Disjoint<'_, MaybeUninit<u8>> {
    /// `length` places from `start` on; `None` where there are not as many.
    ///
    /// # Safety
    /// While the slice lives, nobody else writes to one of the places.
    #[allow(clippy::mut_from_ref, reason = "the contract rules out a second one")]
    pub unsafe fn slice(&self, start: usize, length: usize) -> Option<&mut [MaybeUninit<u8>]> {
        if start.checked_add(length).is_none_or(|end| end > self.length) {
            return None;
        }
        // SAFETY: the range was checked above (point 1), and no other worker has it (point 2).
        Some(unsafe { std::slice::from_raw_parts_mut(self.pointer.add(start), length) })
    }

    /// Copies `bytes` to the places from `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where there are not as many.
    ///
    /// # Safety
    /// During the call nobody else writes to one of the places.
    pub unsafe fn copy(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.length) {
            return Err(ErrorKind::Internal("a place outside the result".into()).into());
        }
        // SAFETY: the range was checked above (point 1), no other worker has it (point 2), and the bytes are a
        // chunk's, which is other memory.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer.add(offset).cast(), bytes.len())
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, count: u64, place: u64, output: usize) -> AxisPart {
        AxisPart { start, step: 1, count, place, reversed: false, output: Some(output) }
    }

    #[test]
    fn what_would_leave_the_memory_is_refused() {
        let mut memory = [MaybeUninit::new(0u8); 12];
        let destination = Destination::new(&mut memory, &[3, 4], 1);
        let columns = part(0, 4, 0, 1);
        // SAFETY: one thread writes, one call after the other.
        let run = |rows| unsafe { destination.contiguous(&[rows, columns]).map(|run| run.len()) };
        assert_eq!((run(part(0, 2, 1, 0)), run(part(0, 3, 1, 0))), (Some(8), None));
        // SAFETY: as above.
        assert!(unsafe { destination.fill(&[part(0, 1, 3, 0), part(0, 1, 0, 1)], &[1]) }.is_err());
        for (bytes, origin) in [(&[1u8, 2, 3][..], 0), (&[1, 2, 3, 4], -1)] {
            let source = Source { bytes, origin, strides: &[4, 1], swap: &Swap::None };
            // SAFETY: as above.
            assert!(unsafe { destination.scatter(&[part(0, 1, 0, 0), columns], &source) }.is_err());
        }
    }
}
