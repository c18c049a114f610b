//! Where the elements of a read go.
//!
//! 1. [`Target::memory`] allocates or describes the target's memory, and does not fill it.
//! 2. [`TargetMemory::sink`] lends the memory to the read.
//! 3. [`TargetMemory::finish`] assumes that every element was placed or filled.
//!
//! Memory in Fortran order is allocated for the reversed shape in C order. Its strides, reversed, are the result's
//! strides, and the result is the tensor of the reversed shape, transposed.

use crate::error::{ErrorKind, Result};
use crate::place::caller_memory::Strided;
use crate::place::chunk_sink::ChunkSink;
use crate::place::result::ResultMemory;
use crate::place::sink::Sink;
use crate::plan::output_strides::c_strides;
use crate::read::item::Item;
use std::fmt;
use zarrow_array::{DataType, DecodedArray, FreshPages, SharedTensor, Tensor, UninitBuffer, shape};

/// Target of a [`ReadRequest`](crate::ReadRequest): new memory, new memory in Fortran order, the caller's memory, or a
/// sink of stored chunks.
pub trait ReadTarget: AsTarget {
    /// The result of the read.
    type Output: FromFilled + Send + 'static;
}

/// New memory in C order, aligned to 64 bytes.
#[derive(Debug, Clone, Copy)]
pub struct NewMemory;

/// New memory in Fortran order.
#[derive(Debug, Clone, Copy)]
pub struct ColumnMajor;

/// A sink of stored chunks.
#[derive(Clone, Copy)]
pub struct Stored<'a>(pub(crate) &'a dyn ChunkSink);

impl fmt::Debug for Stored<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stored").finish_non_exhaustive()
    }
}

impl ReadTarget for NewMemory {
    type Output = DecodedArray;
}

impl ReadTarget for ColumnMajor {
    type Output = SharedTensor;
}

impl ReadTarget for Strided {
    type Output = ();
}

impl ReadTarget for Stored<'_> {
    type Output = ();
}

/// A target, whatever its type.
#[derive(Debug, Clone, Copy)]
pub enum Target<'t> {
    /// See [`NewMemory`].
    New,
    /// See [`ColumnMajor`].
    ColumnMajor,
    /// The caller's memory.
    Out(&'t Strided),
    /// See [`Stored`].
    Stored(Stored<'t>),
}

/// Conversion of each type of target.
pub trait AsTarget {
    /// Returns the target.
    fn as_target(&self) -> Target<'_>;
}

impl AsTarget for NewMemory {
    fn as_target(&self) -> Target<'_> {
        Target::New
    }
}

impl AsTarget for ColumnMajor {
    fn as_target(&self) -> Target<'_> {
        Target::ColumnMajor
    }
}

impl AsTarget for Strided {
    fn as_target(&self) -> Target<'_> {
        Target::Out(self)
    }
}

impl AsTarget for Stored<'_> {
    fn as_target(&self) -> Target<'_> {
        Target::Stored(*self)
    }
}

impl<'t> Target<'t> {
    /// Checks whether the target takes `item`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`].
    pub(crate) fn check(self, item: &Item<'_>) -> Result<()> {
        match self {
            Target::New => Ok(()),
            Target::ColumnMajor | Target::Out(_) => plain_item_size(item).map(drop),
            Target::Stored(_) => {
                without_mask(item)?;
                if item.hands_over() {
                    return Ok(());
                }
                let text = "reading stored chunks of this array or selection".to_owned();
                Err(ErrorKind::Unsupported(text).into())
            }
        }
    }

    /// Allocates the memory for `item`, or describes it.
    ///
    /// # Errors
    /// As [`check`](Target::check); [`ErrorKind::Array`] for too little memory.
    pub(crate) fn memory(self, item: &Item<'t>) -> Result<TargetMemory<'t>> {
        self.check(item)?;
        Ok(match self {
            Target::New => {
                let shape = item.selection.shape();
                TargetMemory::New(ResultMemory::new(item.element().0, shape, item.reader.missing)?)
            }
            Target::ColumnMajor => {
                let mut turned = item.selection.shape();
                turned.reverse();
                let nbytes = shape::nbytes(&turned, item.element().0.item_size().unwrap_or(0))?;
                let memory = UninitBuffer::new(nbytes)?;
                let pages = memory.fresh_pages();
                TargetMemory::ColumnMajor { memory, pages, turned }
            }
            Target::Out(out) => TargetMemory::Out(out),
            Target::Stored(sink) => TargetMemory::Stored(sink.0),
        })
    }
}

/// Returns the size of an element in bytes, for memory without a mask.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for elements that may be missing, or without a fixed size.
pub fn plain_item_size(item: &Item<'_>) -> Result<usize> {
    without_mask(item)?;
    let data_type = item.element().0;
    match data_type.item_size() {
        Some(item_size) if !matches!(data_type, DataType::Optional(_)) => Ok(item_size),
        _ => {
            let text = "reading into given memory or in another order needs elements of a fixed size, \
                        none of them missing";
            Err(ErrorKind::Unsupported(format!("{text}; these are {data_type}")).into())
        }
    }
}

fn without_mask(item: &Item<'_>) -> Result<()> {
    match item.reader.missing {
        None => Ok(()),
        Some(_) => Err(ErrorKind::Unsupported("a mask for a read into given memory".into()).into()),
    }
}

/// Memory of a target, for one item.
pub enum TargetMemory<'t> {
    /// New memory in C order.
    New(ResultMemory<'t>),
    /// New memory in Fortran order, with the reversed shape.
    ColumnMajor {
        /// The memory.
        memory: UninitBuffer,
        /// Its pages, if it is fresh.
        pages: Option<FreshPages>,
        /// The reversed shape.
        turned: Vec<u64>,
    },
    /// The caller's memory.
    Out(&'t Strided),
    /// A sink of stored chunks.
    Stored(&'t dyn ChunkSink),
}

impl<'t> TargetMemory<'t> {
    /// Returns the sink for `item`, for which the memory was made.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`].
    pub fn sink<'s>(&'s mut self, item: &Item<'s>) -> Result<Sink<'s>>
    where
        't: 's,
    {
        let item_size = item.element().0.item_size().unwrap_or(0);
        let mut sink = match self {
            TargetMemory::New(memory) => {
                let no_sink = || ErrorKind::Internal("a read without a sink".into());
                memory.sinks(&[item.selection.flat_shape()]).next().ok_or_else(no_sink)?
            }
            TargetMemory::ColumnMajor { memory, pages, turned } => {
                let mut strides = c_strides(turned, item_size).to_vec();
                strides.reverse();
                let place = Strided::new(memory.as_mut_ptr(), memory.len(), 0, strides);
                // SAFETY: no other code has the memory, and the strides of a C order give each position its own place.
                let destination = unsafe { place.destination(item.selection, item_size) };
                Sink::Fixed(destination.with_pages(pages.as_ref()))
            }
            // SAFETY: the contract of `ReadRequest::out`, the only way to a read into such memory.
            TargetMemory::Out(out) => Sink::Fixed(unsafe { out.destination(item.selection, item_size) }),
            TargetMemory::Stored(sink) => Sink::Chunks(*sink),
        };
        sink.set_field(item.reader.field);
        Ok(sink)
    }

    /// Returns what the read filled.
    ///
    /// # Errors
    /// [`ErrorKind::Array`] for text that is not UTF-8, with the chunk, and for short memory;
    /// [`ErrorKind::Interrupted`].
    ///
    /// # Safety
    /// Every element of the sink has been placed or filled.
    pub unsafe fn finish(self, item: &Item<'_>, interrupted: &dyn Fn() -> bool) -> Result<Filled> {
        let (data_type, fill) = item.element();
        match self {
            TargetMemory::New(memory) => {
                // SAFETY: the caller's contract.
                let decoded = unsafe { memory.finish(fill, interrupted) };
                decoded.map(Filled::Decoded).map_err(|error| item.at_text(error))
            }
            TargetMemory::ColumnMajor { memory, turned, .. } => {
                let axes: Vec<usize> = (0..turned.len()).rev().collect();
                // SAFETY: the caller's contract.
                let tensor = Tensor::new(unsafe { memory.assume_init() }, turned, data_type.clone())?;
                Ok(Filled::Tensor(tensor.into_shared()?.transpose(&axes)?))
            }
            TargetMemory::Out(_) | TargetMemory::Stored(_) => Ok(Filled::Elsewhere),
        }
    }
}

/// What a read filled.
#[derive(Debug)]
pub enum Filled {
    /// New memory in C order.
    Decoded(DecodedArray),
    /// New memory in Fortran order.
    Tensor(SharedTensor),
    /// Memory of the caller or of a sink.
    Elsewhere,
}

/// The result of a read, as the type of its target.
pub trait FromFilled: Sized {
    /// Returns the result.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if another target was filled.
    fn from_filled(filled: Filled) -> Result<Self>;
}

impl FromFilled for DecodedArray {
    fn from_filled(filled: Filled) -> Result<DecodedArray> {
        match filled {
            Filled::Decoded(decoded) => Ok(decoded),
            _ => Err(other_target()),
        }
    }
}

impl FromFilled for SharedTensor {
    fn from_filled(filled: Filled) -> Result<SharedTensor> {
        match filled {
            Filled::Tensor(tensor) => Ok(tensor),
            _ => Err(other_target()),
        }
    }
}

impl FromFilled for () {
    fn from_filled(_: Filled) -> Result<()> {
        Ok(())
    }
}

fn other_target() -> crate::Error {
    ErrorKind::Internal("a read filled another target".into()).into()
}
