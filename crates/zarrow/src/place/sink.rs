//! The destination of decoded elements: the memory of the result, one piece for each part of its layout.

use crate::codec::{Decoded, Swap};
use crate::error::{ErrorKind, Result};
use crate::metadata::FillValue;
use crate::place::chunk_sink::{ChunkSink, axes_of};
use crate::place::destination::{Destination, Source};
use crate::place::read_bitmap::{Bitmap, pack};
use crate::place::sentinel_masked::SentinelMasked;
use crate::place::variable::VariableSink;
use crate::plan::axis_part::AxisPart;
use crate::plan::field::FieldPlace;
use crate::plan::output_strides::c_strides;
use zarrow_array::allocation;

/// The memory filled by a read.
pub enum Sink<'a> {
    /// Elements of a fixed size.
    Fixed(Destination<'a>),
    /// Elements of a fixed size, with sentinel values for missing elements.
    SentinelMasked(Box<SentinelMasked<'a>>),
    /// Strings or bytes, gathered until all chunks are decoded.
    Variable(VariableSink),
    /// A mask, and the sink of the masked elements.
    Optional {
        /// One byte per element.
        missing: Destination<'a>,
        /// The same mask as an Arrow bitmap.
        bitmap: Option<Bitmap<'a>>,
        /// The elements.
        inner: Box<Sink<'a>>,
    },
    /// Memory that is not written here: chunks are handed over in encoded form.
    Chunks(&'a dyn ChunkSink),
}

/// Error for a chunk whose data do not match it, which the compiled chain rules out.
pub fn mismatch() -> ErrorKind {
    ErrorKind::Internal("a chunk has another layout than its array".into())
}

impl<'a> Sink<'a> {
    /// Restricts the output to one field of the stored elements, if given.
    pub fn set_field(&mut self, field: Option<&'a FieldPlace>) {
        match self {
            Sink::Fixed(data) => data.set_field(field),
            Sink::SentinelMasked(marked) => marked.data.set_field(field),
            Sink::Optional { inner, .. } => inner.set_field(field),
            Sink::Variable(_) | Sink::Chunks(_) => {}
        }
    }

    /// Returns the memory of elements of a fixed size, unless they are optional.
    pub fn fixed(&self) -> Option<&Destination<'a>> {
        match self {
            Sink::Fixed(data) => Some(data),
            Sink::SentinelMasked(marked) => Some(&marked.data),
            _ => None,
        }
    }

    /// Provides fresh pages for the elements of `part`: see [`Destination::provide_pages`].
    pub fn provide_pages(&self, part: &[AxisPart<'_>], pass: &dyn Fn() -> Result<()>) -> Result<()> {
        match (self, self.fixed()) {
            (_, Some(data)) => data.provide_pages(part, pass),
            (Sink::Optional { inner, .. }, _) => inner.provide_pages(part, pass),
            _ => Ok(()),
        }
    }

    /// Places the elements of `part` from a chunk of `shape`; `decoded` holds its elements from index `first` on, in C
    /// order.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if layouts or ranges do not fit, which a checked plan rules out.
    ///
    /// # Safety
    /// During the call no other code writes to an element of the part.
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
            (sink, Decoded::Fixed { bytes, swap }) => {
                let destination = sink.fixed().ok_or_else(mismatch)?;
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
    /// # Safety
    /// As [`place`](Sink::place).
    pub unsafe fn fill(&self, part: &[AxisPart<'_>], value: &FillValue) -> Result<()> {
        match (self, value) {
            // SAFETY: the caller's contract.
            (Sink::Fixed(destination), FillValue::Fixed(item)) => unsafe { destination.fill(part, item) },
            // SAFETY: the caller's contract.
            (Sink::SentinelMasked(marked), FillValue::Fixed(item)) => unsafe { marked.fill(part, item) },
            (Sink::Variable(sink), FillValue::Variable(_)) => sink.add_fill(part),
            (Sink::Chunks(sink), FillValue::Fixed(item)) => sink.fill(&axes_of(part)?, item),
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

    /// Marks the elements of `part` with sentinel values as missing, if there are sentinel values.
    ///
    /// # Safety
    /// The elements of the part have been written, and as [`place`](Sink::place).
    pub unsafe fn mark(&self, part: &[AxisPart<'_>]) -> Result<()> {
        match self {
            // SAFETY: the caller's contract.
            Sink::SentinelMasked(marked) => unsafe { marked.mark(part) },
            // SAFETY: as above.
            Sink::Optional { inner, .. } => unsafe { inner.mark(part) },
            Sink::Fixed(_) | Sink::Variable(_) | Sink::Chunks(_) => Ok(()),
        }
    }

    /// Fills the places behind a mask for missing elements: with zero bytes, with nothing, or as missing again.
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
            Sink::SentinelMasked(marked) => unsafe {
                marked.fill(part, &allocation::filled(0, marked.data.item_size())?)
            },
            Sink::Variable(sink) => sink.add_empty(part),
            Sink::Chunks(_) => Err(mismatch().into()),
            // SAFETY: the caller's contract.
            Sink::Optional { .. } => unsafe { self.fill(part, &FillValue::Missing) },
        }
    }
}
