//! Where decoded elements go: the memory of the result, one piece for each part of its layout.

use crate::codec::{Swap, VariableChunk};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::bitmap::Bitmap;
use crate::exec::destination::{Destination, Source};
use crate::exec::field::FieldPlace;
use crate::exec::marked::Marked;
use crate::exec::part::{AxisPart, PerAxis};
use crate::exec::variable::VariableSink;
use crate::metadata::FillValue;
use std::sync::Arc;
use zarrow_array::allocation;

/// A decoded chunk, in the C order of its stored axes.
#[derive(Debug)]
pub enum Decoded {
    /// Elements of a fixed size, still in the byte order of the store.
    Fixed {
        /// The elements.
        bytes: Vec<u8>,
        /// What of each element is reversed by the move.
        swap: Swap,
    },
    /// Strings or bytes, kept until all chunks are there.
    Variable(Arc<VariableChunk>),
    /// Elements of which some are missing.
    Optional {
        /// 1 where an element is missing.
        missing: Vec<u8>,
        /// The elements, with room for the missing ones.
        data: Box<Decoded>,
    },
}

/// The memory that a read fills.
pub enum Sink<'a> {
    /// Elements of a fixed size.
    Fixed(Destination<'a>),
    /// Elements of a fixed size, of which some values mean that one is missing.
    Marked(Marked<'a>),
    /// Strings or bytes, gathered until all are there.
    Variable(VariableSink),
    /// A mask, and what it is the mask of.
    Optional {
        /// One byte an element.
        missing: Destination<'a>,
        /// The same as Arrow has it.
        bitmap: Option<Bitmap<'a>>,
        /// The elements.
        inner: Box<Sink<'a>>,
    },
}

/// A chunk and its data do not go together: the compiled chain rules that out.
fn mismatch() -> ErrorKind {
    ErrorKind::Internal("a chunk has another layout than its array".into())
}

impl<'a> Sink<'a> {
    /// The same memory for one field of the stored elements, where one is given.
    pub fn of_field(self, field: Option<&'a FieldPlace>) -> Sink<'a> {
        match self {
            Sink::Fixed(data) => Sink::Fixed(data.of_field(field)),
            Sink::Marked(marked) => Sink::Marked(Marked { data: marked.data.of_field(field), ..marked }),
            Sink::Optional { missing, bitmap, inner } => {
                Sink::Optional { missing, bitmap, inner: Box::new(inner.of_field(field)) }
            }
            Sink::Variable(_) => self,
        }
    }

    /// Places the elements of `part` from a chunk of `shape`, of which `decoded` has those from `first` on in C order.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where layouts or ranges do not fit, which a checked plan rules out.
    ///
    /// # Safety
    /// During the call nobody else writes to an element of the part.
    pub unsafe fn place(
        &self,
        decoded: &Decoded,
        first: usize,
        shape: &[u64],
        part: &[AxisPart<'_>],
    ) -> Result<()> {
        // A chunk fits into memory.
        let origin = |item_size: usize| -((first * item_size) as isize);
        match (self, decoded) {
            (
                Sink::Fixed(destination) | Sink::Marked(Marked { data: destination, .. }),
                Decoded::Fixed { bytes, swap },
            ) => {
                let strides = c_strides(shape, destination.stored_size());
                let origin = origin(destination.stored_size());
                let source = Source { bytes, origin, strides: &strides, swap };
                // SAFETY: the caller's contract.
                unsafe { destination.scatter(part, &source) }
            }
            (Sink::Variable(sink), Decoded::Variable(chunk)) => sink.add(chunk, shape, part),
            (Sink::Optional { missing: mask, bitmap, inner }, Decoded::Optional { missing, data }) => {
                let strides = c_strides(shape, 1);
                let source =
                    Source { bytes: missing, origin: origin(1), strides: &strides, swap: &Swap::None };
                // SAFETY: the caller's contract.
                unsafe {
                    mask.scatter(part, &source)?;
                    pack(bitmap, mask, part);
                    inner.place(data, first, shape, part)
                }
            }
            _ => Err(mismatch().into()),
        }
    }

    /// Sets every element of `part` to the fill value.
    ///
    /// # Errors
    /// As [`place`](Sink::place).
    ///
    /// # Safety
    /// As [`place`](Sink::place).
    pub unsafe fn fill(&self, part: &[AxisPart<'_>], value: &FillValue) -> Result<()> {
        match (self, value) {
            // SAFETY: the caller's contract.
            (Sink::Fixed(destination), FillValue::Fixed(item)) => unsafe { destination.fill(part, item) },
            // SAFETY: the caller's contract.
            (Sink::Marked(marked), FillValue::Fixed(item)) => unsafe { marked.fill(part, item) },
            (Sink::Variable(sink), FillValue::Variable(_)) => sink.add_fill(part),
            (Sink::Optional { missing, bitmap, inner }, FillValue::Present(value)) => {
                // SAFETY: the caller's contract.
                unsafe {
                    missing.fill(part, &[0])?;
                    pack(bitmap, missing, part);
                    inner.fill(part, value)
                }
            }
            (Sink::Optional { missing, bitmap, inner }, FillValue::Missing) => {
                // SAFETY: the caller's contract.
                unsafe {
                    missing.fill(part, &[1])?;
                    pack(bitmap, missing, part);
                    inner.fill_missing(part)
                }
            }
            _ => Err(mismatch().into()),
        }
    }

    /// Marks which elements of `part` mean that one is missing, where some do.
    ///
    /// # Errors
    /// As [`place`](Sink::place).
    ///
    /// # Safety
    /// The elements of the part have been written, and as [`place`](Sink::place).
    pub unsafe fn mark(&self, part: &[AxisPart<'_>]) -> Result<()> {
        match self {
            // SAFETY: the caller's contract.
            Sink::Marked(marked) => unsafe { marked.mark(part) },
            // SAFETY: as above.
            Sink::Optional { inner, .. } => unsafe { inner.mark(part) },
            Sink::Fixed(_) | Sink::Variable(_) => Ok(()),
        }
    }

    /// What lies behind a mask where an element is missing: zero bytes, nothing, or missing once more.
    ///
    /// # Safety
    /// As [`place`](Sink::place).
    unsafe fn fill_missing(&self, part: &[AxisPart<'_>]) -> Result<()> {
        match self {
            // SAFETY: the caller's contract.
            Sink::Fixed(destination) => unsafe {
                destination.fill(part, &allocation::filled(0, destination.item_size())?)
            },
            // SAFETY: the caller's contract.
            Sink::Marked(marked) => unsafe {
                marked.fill(part, &allocation::filled(0, marked.data.item_size())?)
            },
            Sink::Variable(sink) => sink.add_empty(part),
            // SAFETY: the caller's contract.
            Sink::Optional { .. } => unsafe { self.fill(part, &FillValue::Missing) },
        }
    }
}

/// Packs the mask of `part`, which was just written.
///
/// # Safety
/// As [`Bitmap::pack`].
pub unsafe fn pack(bitmap: &Option<Bitmap<'_>>, mask: &Destination<'_>, part: &[AxisPart<'_>]) {
    if let Some(bitmap) = bitmap {
        // SAFETY: the caller's contract.
        unsafe { bitmap.pack(mask, part) }
    }
}

impl Decoded {
    /// The elements spread to where `missing` has a 0, and zero bytes, nothing or missing where it has a 1.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] where there are not as many elements as zeros.
    pub fn spread(self, missing: &[u8], item_size: usize) -> Result<Decoded> {
        let differ = || ErrorKind::Corrupt("the mask and the data differ in length".into());
        match self {
            Decoded::Fixed { bytes, swap } => {
                let nbytes = missing.len().checked_mul(item_size).ok_or_else(differ)?;
                // Missing elements have a size that no stored byte stands for.
                let mut spread = allocation::filled(0u8, nbytes)?;
                let mut given = bytes.chunks_exact(item_size.max(1));
                for (place, missing) in spread.chunks_exact_mut(item_size.max(1)).zip(missing) {
                    if *missing == 0 {
                        place.copy_from_slice(given.next().ok_or_else(differ)?);
                    }
                }
                if given.next().is_some() {
                    Err(differ().into())
                } else {
                    Ok(Decoded::Fixed { bytes: spread, swap })
                }
            }
            Decoded::Variable(chunk) => {
                let chunk =
                    Arc::try_unwrap(chunk).map_err(|_| ErrorKind::Internal("a shared chunk".into()))?;
                Ok(Decoded::Variable(Arc::new(chunk.spread(missing)?)))
            }
            Decoded::Optional { missing: inner, data } => {
                let mut given = inner.iter();
                let given = |missing: &u8| match *missing {
                    0 => given.next().copied().ok_or_else(|| Error::from(differ())),
                    _ => Ok(1),
                };
                let spread: Vec<u8> = allocation::try_collected(missing.iter().map(given))?;
                Ok(Decoded::Optional { missing: spread, data: Box::new(data.spread(missing, item_size)?) })
            }
        }
    }
}

/// The strides of a C-contiguous chunk, in bytes. A chunk fits into memory, so that its strides do.
pub fn c_strides(shape: &[u64], item_size: usize) -> PerAxis<isize> {
    let mut strides = PerAxis::from_elem(0isize, shape.len());
    let mut stride = item_size as isize;
    for (extent, place) in shape.iter().zip(&mut strides).rev() {
        *place = stride;
        stride = stride.saturating_mul(isize::try_from(*extent).unwrap_or(isize::MAX));
    }
    strides
}
