//! The memory filled by a read: many workers write to it at once, each to its own elements.
//!
//! The writes are sound because:
//! 1. every range is checked here against the memory's length before a byte is written, so that no write is out of
//!    bounds;
//! 2. no two writers share an element: the contract of every method that writes, upheld by
//!    [`OutputClaim`](crate::place::output_claim::OutputClaim);
//! 3. the memory is not read before all writes are done.

use crate::codec::Swap;
use crate::error::{ErrorKind, Result};
use crate::place::element_offsets::{Steps, StridedLayout};
use crate::place::nontemporal_copy;
use crate::place::placement::copy;
use crate::plan::axis_part::{AxisPart, PerAxis};
use crate::plan::field::FieldPlace;
use crate::plan::output_strides::{OutputStrides, c_strides};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use zarrow_array::FreshPages;

/// Elements of one size, to be filled.
pub struct Destination<'a> {
    pointer: *mut u8,
    nbytes: usize,
    item_size: usize,
    /// Byte offset of position 0 on every axis from the start of the memory.
    origin: isize,
    /// Bytes from one position to the next on each output axis.
    strides: OutputStrides,
    /// The field of the stored elements to write here; `None` for whole elements.
    field: Option<&'a FieldPlace>,
    /// The memory's pages, if freshly allocated.
    pages: Option<&'a FreshPages>,
    /// Whether the byte behind the memory may be overwritten together with the last element.
    has_spare: bool,
    memory: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

// SAFETY: workers write to disjoint elements (point 2).
unsafe impl Send for Destination<'_> {}
// SAFETY: as above.
unsafe impl Sync for Destination<'_> {}

/// A source of elements: their bytes, the offset of the first, and the strides.
pub struct Source<'a> {
    /// The bytes that hold the elements.
    pub bytes: &'a [u8],
    /// Byte offset of position 0 on every axis from the start of `bytes`; may be negative if `bytes` begins later.
    pub origin: isize,
    /// Bytes from one position to the next on each axis of the part.
    pub strides: &'a [isize],
    /// The byte swap applied to each element.
    pub swap: &'a Swap,
}

impl<'a> Destination<'a> {
    /// C-contiguous elements of `item_size` bytes in `memory`, which has the bytes of `shape`.
    pub fn new(memory: &'a mut [MaybeUninit<u8>], shape: &[u64], item_size: usize) -> Destination<'a> {
        let strides = c_strides(shape, item_size).into();
        // SAFETY: the slice is exclusive during `'a`, and C order gives different positions different places.
        unsafe { Destination::strided(memory.as_mut_ptr().cast(), memory.len(), item_size, 0, strides) }
    }

    /// Elements in the caller's memory, with the caller's strides.
    ///
    /// # Safety
    /// The `nbytes` bytes from `pointer` on may be written during `'a`, no other code reads or writes them then, and
    /// `strides` give different positions different places.
    pub unsafe fn strided(
        pointer: *mut u8,
        nbytes: usize,
        item_size: usize,
        origin: isize,
        strides: OutputStrides,
    ) -> Destination<'a> {
        let (field, pages, has_spare, memory) = (None, None, false, PhantomData);
        Destination { pointer, nbytes, item_size, origin, strides, field, pages, has_spare, memory }
    }

    /// Returns a destination like [`new`](Destination::new), of the first `nbytes` bytes of `memory`. The next byte is
    /// spare.
    pub fn with_spare(
        memory: &'a mut [MaybeUninit<u8>],
        nbytes: usize,
        shape: &[u64],
        item_size: usize,
    ) -> Destination<'a> {
        let (nbytes, has_spare) = (nbytes.min(memory.len()), memory.len() > nbytes);
        Destination { nbytes, has_spare, ..Destination::new(memory, shape, item_size) }
    }

    /// Restricts the output to one field of the stored elements, if given.
    pub fn set_field(&mut self, field: Option<&'a FieldPlace>) {
        self.field = field;
    }

    /// Returns the same memory, backed by these pages if given.
    pub fn with_pages(self, pages: Option<&'a FreshPages>) -> Destination<'a> {
        Destination { pages, ..self }
    }

    /// Provides fresh pages for the elements of `part`; other threads provide theirs.
    ///
    /// # Errors
    /// Errors of `pass` between two pages; [`ErrorKind::Internal`] if the part is outside the output.
    pub fn provide_pages(&self, part: &[AxisPart<'_>], pass: &dyn Fn() -> Result<()>) -> Result<()> {
        let Some(pages) = self.pages.filter(|pages| !pages.all_taken()) else { return Ok(()) };
        let Some(range) = self.place(part)?.and_then(|layout| layout.range(self.item_size)) else {
            return Ok(());
        };
        while pages.provide_next(self.pointer.wrapping_add(range.end)) {
            pass()?;
        }
        Ok(())
    }

    /// Size of one element in bytes.
    pub fn item_size(&self) -> usize {
        self.item_size
    }

    /// Size in bytes of one stored element; larger than the output element if only a field is read.
    pub fn stored_size(&self) -> usize {
        self.field.map_or(self.item_size, |field| field.element_size)
    }

    /// Returns the layout of `part` and the byte range of its elements; `None` if they are out of bounds.
    fn place(&self, part: &[AxisPart<'_>]) -> Result<Option<StridedLayout>> {
        let layout = StridedLayout::in_output(part, self.origin, &self.strides)?;
        Ok(layout.filter(|layout| layout.range(self.item_size).is_some_and(|range| range.end <= self.nbytes)))
    }

    /// Returns the memory of `part` if it is contiguous and holds stored elements in the part's C order.
    ///
    /// # Safety
    /// While the slice lives, no other code writes to an element of the part.
    #[allow(clippy::mut_from_ref, reason = "the contract rules out a second one")]
    pub unsafe fn contiguous(&self, part: &[AxisPart<'_>]) -> Option<&mut [MaybeUninit<u8>]> {
        match self.field {
            // SAFETY: the caller's contract.
            None => unsafe { self.run(part) },
            Some(_) => None,
        }
    }

    /// Returns the memory like [`contiguous`](Destination::contiguous), and its length. The slice may have one spare byte
    /// behind that length.
    ///
    /// # Safety
    /// As [`contiguous`](Destination::contiguous).
    #[allow(clippy::mut_from_ref, reason = "the contract rules out a second one")]
    pub unsafe fn contiguous_and_spare(
        &self,
        part: &[AxisPart<'_>],
    ) -> Option<(&mut [MaybeUninit<u8>], usize)> {
        // SAFETY: the caller's contract.
        let run = unsafe { self.contiguous(part)? };
        let nbytes = run.len();
        let last = self.pointer.wrapping_add(self.nbytes - nbytes);
        if !self.has_spare || nbytes == 0 || run.as_ptr().cast() != last.cast_const() {
            return Some((run, nbytes));
        }
        // SAFETY: the run ends where the memory ends, and the spare byte behind it belongs to the same claim.
        Some((unsafe { std::slice::from_raw_parts_mut(last.cast(), nbytes + 1) }, nbytes))
    }

    /// Same as [`contiguous`](Destination::contiguous), for output elements rather than stored ones.
    ///
    /// # Safety
    /// As [`contiguous`](Destination::contiguous).
    #[allow(clippy::mut_from_ref, reason = "the contract rules out a second one")]
    unsafe fn run(&self, part: &[AxisPart<'_>]) -> Option<&mut [MaybeUninit<u8>]> {
        // If the check itself cannot allocate, assume non-contiguous; the next placement of the part reports the error.
        let layout = self.place(part).ok()??;
        let (first, nbytes) = (usize::try_from(layout.first).ok()?, layout.run(self.item_size)?);
        // SAFETY: `place` checked that the part's elements, which here are one run of `nbytes` bytes from
        // `first`, lie inside the memory (point 1); no other part has them (point 2).
        Some(unsafe { std::slice::from_raw_parts_mut(self.pointer.add(first).cast(), nbytes) })
    }

    /// Copies the elements of `part` from `source`, which holds them in stored form.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the elements are out of bounds of source or destination, which a checked plan rules
    /// out.
    ///
    /// # Safety
    /// During the call no other code writes to an element of the part.
    pub unsafe fn scatter(&self, part: &[AxisPart<'_>], source: &Source<'_>) -> Result<()> {
        let Some(field) = self.field else {
            // SAFETY: the caller's contract.
            return unsafe { self.copy_from(part, source) };
        };
        let origin = source.origin.saturating_add_unsigned(field.offset);
        let source = Source { origin, swap: &field.swap(source.swap), ..*source };
        // SAFETY: the caller's contract.
        unsafe { self.copy_from(part, &source) }
    }

    /// Same as [`scatter`](Destination::scatter), from a source of output elements rather than stored ones.
    ///
    /// # Safety
    /// As [`scatter`](Destination::scatter).
    unsafe fn copy_from(&self, part: &[AxisPart<'_>], source: &Source<'_>) -> Result<()> {
        let outside = || ErrorKind::Internal("a part exceeds its chunk or output".into());
        let mut to = self.place(part)?.ok_or_else(outside)?;
        let mut from = StridedLayout::in_chunk(part, source.origin, source.strides)?.ok_or_else(outside)?;
        let inside = from.range(self.item_size).is_some_and(|range| range.end <= source.bytes.len());
        if !inside || source.strides.len() != part.len() {
            return Err(outside().into());
        }
        let (start, first) = (from.first, to.first);
        let axes = from.axes_to(&mut to)?;
        // SAFETY: every element's range was checked on both sides (point 1), and no other part has these elements
        // (point 2). Source and destination are different memory: the source is a chunk or a scratch, which no read
        // fills. Position 0 of an axis may be outside the memory although the elements are inside, so both addresses
        // are computed as numbers.
        unsafe {
            copy(
                self.item_size,
                source.swap,
                &axes,
                source.bytes.as_ptr().wrapping_offset(start),
                self.pointer.wrapping_offset(first),
                self.nbytes >= nontemporal_copy::RESULT_NBYTES,
            );
        }
        Ok(())
    }

    /// Returns the bytes of `count` elements from `first` on, in memory order, set to 0; `None` if they are out of
    /// bounds.
    ///
    /// # Safety
    /// While the slice lives, no other code writes to any of these elements.
    #[allow(clippy::mut_from_ref, reason = "the contract rules out a second one")]
    pub unsafe fn zeroed(&self, first: usize, count: usize) -> Option<&mut [u8]> {
        let range =
            first.checked_mul(self.item_size)?..first.checked_add(count)?.checked_mul(self.item_size)?;
        if range.end > self.nbytes {
            return None;
        }
        // SAFETY: the range was checked above (point 1), and no other worker has it (point 2).
        Some(unsafe {
            self.pointer.add(range.start).write_bytes(0, range.len());
            std::slice::from_raw_parts_mut(self.pointer.add(range.start), range.len())
        })
    }

    /// Calls `each` with every contiguous run of the bytes of `part`, and the run's offset in the memory, until `each`
    /// returns false. Returns whether all calls returned true.
    ///
    /// # Safety
    /// The elements of the part have been written, and during the call no code writes to them.
    pub unsafe fn each_run(&self, part: &[AxisPart<'_>], each: &mut dyn FnMut(usize, &[u8]) -> bool) -> bool {
        let Ok(Some(layout)) = self.place(part) else { return false };
        let mut first = layout.first;
        // Axes with several elements, widest steps first, all stepping forwards; then the axes with irregular offsets.
        let mut axes: PerAxis<(usize, usize)> = PerAxis::new();
        let mut scattered: PerAxis<&[isize]> = PerAxis::new();
        for steps in &layout.axes {
            match steps {
                // `place` checked that all elements are inside the memory.
                Steps::Even { count, step } if *count > 1 => {
                    first += step.min(&0) * (*count as isize - 1);
                    axes.push((step.unsigned_abs(), *count));
                }
                Steps::Even { .. } => {}
                Steps::Each(offsets) => scattered.push(offsets),
            }
        }
        axes.sort_unstable_by(|a, b| b.cmp(a));
        let mut run = self.item_size;
        while let Some((width, count)) = axes.last().copied()
            && width == run
        {
            run *= count;
            axes.pop();
        }
        let even: usize = axes.iter().map(|(_, count)| count).product();
        let total = scattered.iter().fold(even, |product, offsets| product * offsets.len());
        (0..total).all(|number| {
            let (mut at, mut rest) = (first, number);
            for (width, count) in axes.iter().rev() {
                at += (rest % count * width) as isize;
                rest /= count;
            }
            for offsets in &scattered {
                at += offsets[rest % offsets.len()];
                rest /= offsets.len();
            }
            // SAFETY: `place` checked that the part's elements lie inside the memory (point 1); the caller's contract.
            let bytes = unsafe { std::slice::from_raw_parts(self.pointer.wrapping_offset(at), run) };
            each(at.unsigned_abs(), bytes)
        })
    }

    /// Sets every element of `part` to `item`.
    ///
    /// # Safety
    /// As [`scatter`](Destination::scatter).
    pub unsafe fn fill(&self, part: &[AxisPart<'_>], item: &[u8]) -> Result<()> {
        // SAFETY: the caller's contract.
        if let Some(memory) = unsafe { self.run(part) }
            && item.iter().all(|byte| Some(byte) == item.first())
        {
            memory.fill(MaybeUninit::new(item.first().copied().unwrap_or(0)));
            return Ok(());
        }
        let strides = PerAxis::from_elem(0isize, part.len());
        // SAFETY: the caller's contract.
        unsafe {
            self.copy_from(part, &Source { bytes: item, origin: 0, strides: &strides, swap: &Swap::None })
        }
    }
}

/// A slice that many workers write to at once, each to its own places.
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

    /// Writes `value` at `index`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if `index` is out of bounds.
    ///
    /// # Safety
    /// During the call no other code writes to the place.
    pub unsafe fn set(&self, index: usize, value: T) -> Result<()> {
        if index >= self.length {
            return Err(ErrorKind::Internal("a write exceeds the result".into()).into());
        }
        // SAFETY: the index was checked above (point 1), and no other worker has the place (point 2).
        unsafe { self.pointer.add(index).write(value) };
        Ok(())
    }
}

impl Disjoint<'_, MaybeUninit<u8>> {
    /// Returns `length` places from `start` on; `None` if out of bounds.
    ///
    /// # Safety
    /// While the slice lives, no other code writes to any of the places.
    #[allow(clippy::mut_from_ref, reason = "the contract rules out a second one")]
    pub unsafe fn slice(&self, start: usize, length: usize) -> Option<&mut [MaybeUninit<u8>]> {
        if start.checked_add(length).is_none_or(|end| end > self.length) {
            return None;
        }
        // SAFETY: the range was checked above (point 1), and no other worker has it (point 2).
        Some(unsafe { std::slice::from_raw_parts_mut(self.pointer.add(start), length) })
    }

    /// Copies `bytes` to the places starting at `offset`.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if out of bounds.
    ///
    /// # Safety
    /// During the call no other code writes to any of the places.
    pub unsafe fn copy(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.length) {
            return Err(ErrorKind::Internal("a write exceeds the result".into()).into());
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
    use zarrow_array::{Number, WordRun};

    fn part(start: u64, count: u64, place: u64, output: usize) -> AxisPart<'static> {
        AxisPart { start, step: 1, count, place, reversed: false, output: Some(output), list: None }
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

    #[test]
    fn fields_of_stored_elements_are_selected() {
        let mut memory = [MaybeUninit::new(0u8); 6];
        let field = FieldPlace { data_type: Number::Int16.into(), offset: 3, element_size: 5 };
        let mut destination = Destination::new(&mut memory, &[3], 2);
        destination.set_field(Some(&field));
        let (all, last) = (part(0, 3, 0, 0), part(2, 1, 2, 0));
        // SAFETY: one thread writes, one call after the other.
        assert!(unsafe { destination.contiguous(&[all]) }.is_none());
        let bytes: Vec<u8> = (0..15).collect();
        let swap = Swap::Fields([WordRun { offset: 3, size: 2, count: 1 }].into());
        let source = |bytes, origin| Source { bytes, origin, strides: &[5], swap: &swap };
        // SAFETY: as above.
        unsafe {
            destination.scatter(&[all], &source(&bytes, 0)).unwrap();
            // Bytes that begin at the last element and end with its field, or earlier.
            destination.scatter(&[last], &source(&bytes[..5], -10)).unwrap();
            assert!(destination.scatter(&[last], &source(&bytes[..4], -10)).is_err());
            destination.fill(&[part(1, 1, 1, 0)], &[77, 78]).unwrap();
        }
        // SAFETY: all bytes were there from the start.
        assert_eq!(memory.map(|byte| unsafe { byte.assume_init() }), [4, 3, 77, 78, 4, 3]);
    }
}
