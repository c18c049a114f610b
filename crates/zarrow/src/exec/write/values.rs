//! What is written: elements in the caller's memory, which are read where they lie.

use crate::codec::{Chain, Swap};
use crate::error::{ErrorKind, Result};
use crate::exec::field::FieldPlace;
use crate::exec::output_strides::OutputStrides;
use crate::exec::part::{AxisPart, PerAxis};
use crate::exec::placement::copy;
use crate::exec::side::Side;
use crate::exec::sink::c_strides;
use crate::exec::write::chunk::covers;
use crate::selection::Selection;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use zarrow_array::{DataType, DecodedArray, Mask, Number, Tensor, Variable};

/// Elements of one type and shape in the caller's memory, to be written to an array.
///
/// Nothing is copied to make one: not to repeat an element, to turn an axis round, or for elements in another byte order.
///
/// ```
/// use zarrow::Values;
/// use zarrow_array::Number;
/// let row = [1i16, 2, 3];
/// let bytes: Vec<u8> = row.iter().flat_map(|item| item.to_ne_bytes()).collect();
/// let values = Values::contiguous(&bytes, Number::Int16.into(), &[3])?;
/// assert_eq!(values.broadcast(&[4, 3])?.shape(), [4, 3]);
/// assert!(values.broadcast(&[4]).is_err());
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Values<'a> {
    dtype: DataType,
    shape: Vec<u64>,
    /// Where an element is missing at each level of an optional type, the outermost first.
    masks: Vec<Memory<'a>>,
    data: Data<'a>,
    /// Which field of the stored elements they are, where they are not whole ones.
    field: Option<FieldPlace>,
}

/// The elements behind all masks.
#[derive(Debug, Clone)]
pub(super) enum Data<'a> {
    /// Elements of a fixed size, and what of each is reversed on the way to a chunk in which `swap` is.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for others, which a check before rules out.
    pub fn fixed(self, chain: &Chain, swap: &Swap) -> Result<(&'v Memory<'a>, Swap)> {
        let (size, swap) = match self.field {
            Some(field) => (field.data_type.item_size(), field.swap(swap)),
            None => (chain.item_size(), swap.clone()),
        };
        match self.data {
            Data::Fixed(memory, own) if Some(memory.item_size) == size => Ok((memory, own.and(&swap))),
            _ => Err(mismatch()),
        }
    }

    /// Whether they are all that a chunk with these bounds has, where they are of `part`.
    pub fn cover(self, part: &[AxisPart<'_>], bounds: &[u64]) -> bool {
        self.field.is_none() && covers(part, bounds)
    }

    /// Bytes from the start of a stored element to where a value goes.
    pub fn offset(self) -> usize {
        self.field.map_or(0, |field| field.offset)
    }
}

/// Values and an array that do not go together: a check before rules that out.
pub(super) fn mismatch() -> crate::Error {
    ErrorKind::Internal("values of another type than the array's".into()).into()
}

fn outside() -> crate::Error {
    ErrorKind::Shape("values lie outside of their memory".into()).into()
}

impl<'a> Memory<'a> {
    /// Where the elements of `part` lie; `None` where that is not in the memory.
    fn side(&self, part: &[AxisPart<'_>]) -> Option<Side> {
        let side = Side::in_output(part, self.origin, &self.strides)?;
        (side.range(self.item_size)?.end <= self.nbytes).then_some(side)
    }

    /// The bytes of `part`, where they are one run in the part's own C order.
    pub fn run(&self, part: &[AxisPart<'_>]) -> Option<&'a [u8]> {
        let side = self.side(part)?;
        let (first, nbytes) = (usize::try_from(side.first).ok()?, side.run(self.item_size)?);
        // SAFETY: `side` checked that the run lies inside the memory, which can be read during `'a`, and is not written
        // to, by the contract of `Values::strided`.
        Some(unsafe { std::slice::from_raw_parts(self.pointer.add(first), nbytes) })
    }

    /// Copies the elements of `part` to their places in a chunk, whose elements lie as far apart as
    /// the strides say, so many bytes behind the start of each; what `swap` says is turned round.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where elements lie outside of the memory or of the chunk.
    pub fn gather(
        &self,
        part: &[AxisPart<'_>],
        chunk: &mut [MaybeUninit<u8>],
        (offset, strides): (usize, &[isize]),
        swap: &Swap,
    ) -> Result<()> {
        let mut from = self.side(part).ok_or_else(outside)?;
        let origin = isize::try_from(offset).unwrap_or(isize::MAX);
        let mut to = Side::in_chunk(part, origin, strides).ok_or_else(outside)?;
        if to.range(self.item_size).is_none_or(|range| range.end > chunk.len()) || strides.len() != part.len()
        {
            return Err(outside());
        }
        let (first, place) = (from.first, to.first);
        // SAFETY: every element's range was checked on both sides. The chunk is exclusive memory, and the values' can be
        // read, by the contract of `Values::strided`.
        unsafe {
            copy(
                self.item_size,
                swap,
                &from.axes_to(&mut to),
                self.pointer.wrapping_offset(first),
                chunk.as_mut_ptr().cast::<u8>().wrapping_offset(place),
                false,
            );
        }
        Ok(())
    }
}

impl Memory<'_> {
    /// As [`gather`](Memory::gather), over bytes that are there.
    ///
    /// # Errors
    /// As [`gather`](Memory::gather).
    pub fn gather_over(
        &self,
        part: &[AxisPart<'_>],
        chunk: &mut [u8],
        place: (usize, &[isize]),
        swap: &Swap,
    ) -> Result<()> {
        // SAFETY: what is gathered are bytes, so that every byte stays initialised.
        let chunk = unsafe { &mut *(std::ptr::from_mut(chunk) as *mut [MaybeUninit<u8>]) };
        self.gather(part, chunk, place, swap)
    }

    /// The mask of elements of which none is missing, for `part`.
    pub fn nothing_missing(part: &[AxisPart<'_>]) -> Memory<'static> {
        static PRESENT: [u8; 1] = [0];
        let axes = part.iter().filter_map(|axis| axis.output).max().map_or(0, |last| last + 1);
        let strides = PerAxis::from_elem(0, axes).into();
        Memory {
            pointer: PRESENT.as_ptr(),
            nbytes: 1,
            item_size: 1,
            origin: 0,
            strides,
            lifetime: PhantomData,
        }
    }
}

impl<'a> Words<'a> {
    /// Calls `each` with the place in a chunk, whose axes have these strides in elements, and the bytes of each element of
    /// `part`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where elements lie outside of the memory.
    pub fn each(
        &self,
        part: &[AxisPart<'_>],
        strides: &[isize],
        mut each: impl FnMut(usize, &'a [u8]) -> Result<()>,
    ) -> Result<()> {
        let from = Side::in_output(part, 0, &self.strides).ok_or_else(outside)?;
        let to = Side::in_chunk(part, 0, strides).ok_or_else(outside)?;
        let count: u64 = part.iter().map(|axis| axis.count).product();
        for (from, to) in from.iter().zip(to.iter()).take(usize::try_from(count).unwrap_or(usize::MAX)) {
            let index = usize::try_from(from).map_err(|_| outside())?;
            let bounds = self.offsets.get(index).zip(self.offsets.get(index.saturating_add(1)));
            let element = bounds.and_then(|(start, end)| {
                self.data.get(usize::try_from(*start).ok()?..usize::try_from(*end).ok()?)
            });
            each(usize::try_from(to).map_err(|_| outside())?, element.ok_or_else(outside)?)?;
        }
        Ok(())
    }
}
