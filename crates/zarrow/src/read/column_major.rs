//! Reads into fresh memory in Fortran order: neighbours on the first axis are neighbours in memory.
//!
//! 1. The memory is allocated for the reversed shape in C order. Its strides, reversed, are the result's strides.
//! 2. The read fills it like the caller's memory.
//! 3. The result is the tensor of the reversed shape, transposed: a view of the same memory.

use crate::decode::reader::Reader;
use crate::error::Result;
use crate::place::sink::Sink;
use crate::place::strided::Strided;
use crate::plan::output_strides::c_strides;
use crate::selection::Selection;
use zarrow_array::{DataType, SharedTensor, Tensor, UninitBuffer, shape};

/// Reads `selection` in Fortran order; `reader` is for elements of `data_type`, which has a fixed size.
///
/// # Errors
/// As [`Array::read`](crate::Array::read).
pub(crate) fn read_column_major(
    reader: Reader<'_>,
    selection: &Selection,
    data_type: &DataType,
    interrupted: &dyn Fn() -> bool,
) -> Result<SharedTensor> {
    let item_size = data_type.item_size().unwrap_or(0);
    let mut turned = selection.shape();
    turned.reverse();
    let mut strides = c_strides(&turned, item_size).to_vec();
    strides.reverse();
    let mut memory = UninitBuffer::new(shape::nbytes(&turned, item_size)?)?;
    let pages = memory.fresh_pages();
    let place = Strided::new(memory.as_mut_ptr(), memory.len(), 0, strides);
    // SAFETY: no other code has the memory (step 1), and the strides of a C order give each position its own place.
    let destination = unsafe { place.destination(selection, item_size) }.of_pages(pages.as_ref());
    let mut sink = Sink::Fixed(destination);
    sink.set_field(reader.field);
    reader.read_into(selection, &sink, interrupted)?;
    let axes: Vec<usize> = (0..turned.len()).rev().collect();
    // SAFETY: the parts of all chunks cover the selection (a property test of `ChunkParts` says so), and each was
    // placed.
    let tensor = Tensor::new(unsafe { memory.assume_init() }, turned, data_type.clone())?;
    Ok(tensor.into_shared()?.transpose(&axes)?)
}
