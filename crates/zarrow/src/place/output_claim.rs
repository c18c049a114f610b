//! A claim on elements of a result: only the holder may write them.
//!
//! Many threads write a result's memory at once. This is sound because no two claims of one read share an element:
//! making a claim is `unsafe` and must state why that holds; writing through it is safe.

use crate::codec::Decoded;
use crate::error::Result;
use crate::metadata::FillValue;
use crate::place::destination::Source;
use crate::place::sink::{Sink, mismatch};
use crate::plan::axis_part::{AxisPart, is_whole};
use std::mem::MaybeUninit;

/// Memory to be written.
type Places<'a> = &'a mut [MaybeUninit<u8>];

/// A part of a chunk, and its destination.
pub struct OutputClaim<'a> {
    part: &'a [AxisPart<'a>],
    sink: &'a Sink<'a>,
}

impl<'a> OutputClaim<'a> {
    /// A claim on the places of `part` in `sink`.
    ///
    /// # Safety
    /// While the claim is used to write, no other claim that is used to write has one of these places. (Splitting it
    /// into smaller claims is not writing.)
    pub unsafe fn new(part: &'a [AxisPart<'a>], sink: &'a Sink<'a>) -> OutputClaim<'a> {
        OutputClaim { part, sink }
    }

    /// The part of the chunk.
    pub fn part(&self) -> &'a [AxisPart<'a>] {
        self.part
    }

    /// The destination.
    pub fn sink(&self) -> &'a Sink<'a> {
        self.sink
    }

    /// Whether the claim covers a whole chunk of `shape`, in C order.
    pub fn is_whole(&self, shape: &[u64]) -> bool {
        is_whole(self.part, shape)
    }

    /// Returns the places, if they are one run of bytes in the part's C order and elements have a fixed size.
    pub fn contiguous(&mut self) -> Option<&mut [MaybeUninit<u8>]> {
        // SAFETY: the claim is the only one on these places, and `&mut self` the only use of it.
        unsafe { self.sink.fixed()?.contiguous(self.part) }
    }

    /// Returns the memory like [`contiguous`](OutputClaim::contiguous), and its length. The slice may have one spare byte
    /// behind that length, so that one read shows that a value is too long.
    pub fn contiguous_and_spare(&mut self) -> Option<(Places<'_>, usize)> {
        // SAFETY: as for `contiguous`.
        unsafe { self.sink.fixed()?.contiguous_and_spare(self.part) }
    }

    /// Copies elements of a fixed size to their places.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the elements are out of bounds of source or result, which a checked plan rules out.
    pub fn scatter(&mut self, source: &Source<'_>) -> Result<()> {
        let destination = self.sink.fixed().ok_or_else(mismatch)?;
        // SAFETY: as for `contiguous`.
        unsafe { destination.scatter(self.part, source) }
    }

    /// Returns the places of masks and of elements, if both are one run of bytes in the part's C order.
    pub fn contiguous_optional(&mut self) -> Option<(Places<'_>, Places<'_>)> {
        let Sink::Optional { missing, inner, .. } = self.sink else { return None };
        let Sink::Fixed(data) = &**inner else { return None };
        // SAFETY: as for `contiguous`; the two memories are different.
        unsafe { Some((missing.contiguous(self.part)?, data.contiguous(self.part)?)) }
    }

    /// Packs the mask into Arrow's bitmap.
    ///
    /// # Safety
    /// Every place of the mask has been written.
    pub unsafe fn pack(&mut self) {
        if let Sink::Optional { missing, bitmap: Some(bitmap), .. } = self.sink {
            // SAFETY: as for `contiguous`, and the caller's contract.
            unsafe { bitmap.pack(missing, self.part) }
        }
    }

    /// Marks the elements with sentinel values as missing, if there are sentinel values.
    ///
    /// # Safety
    /// Every place of the elements has been written.
    pub unsafe fn mark(&mut self) -> Result<()> {
        // SAFETY: as for `contiguous`, and the caller's contract.
        unsafe { self.sink.mark(self.part) }
    }

    /// Places the elements of a chunk of `shape`; `decoded` holds its elements from index `first` on, in C order.
    pub fn place(&mut self, decoded: &Decoded, first: usize, shape: &[u64]) -> Result<()> {
        // SAFETY: as for `contiguous`.
        unsafe { self.sink.place(decoded, first, shape, self.part) }
    }

    /// Sets all elements to the fill value.
    pub fn fill(&mut self, value: &FillValue) -> Result<()> {
        // SAFETY: as for `contiguous`.
        unsafe { self.sink.fill(self.part, value) }
    }
}
