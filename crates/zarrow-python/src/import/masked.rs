//! Arrays of `numpy.ma`: data and mask, each shared if possible.
//!
//! Their masks have the same meaning as ours: True for missing elements.

use super::producer::Family;
use super::{needs_copy, shared_numpy};
use crate::export::numpy;
use crate::import::buffer;
use crate::python::error::{Raise, exchange, unsupported};
use pyo3::prelude::*;
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, Mask, MaskedVariable, SharedBytes};

/// Returns the masked layout of a `numpy.ma.MaskedArray`.
pub fn array(masked: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Imported> {
    parts(&masked.getattr("data")?, &masked.getattr("mask")?, copy)
}

/// Returns the masked layout of `data` and `mask`, or the plain layout if the mask is `numpy.ma.nomask`.
fn parts(data: &Bound<'_, PyAny>, mask: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Imported> {
    let py = data.py();
    let data = shared_numpy(data, Family::NumpyArray, copy)?;
    let bytes = bytes(mask, data.size(), copy)?;
    if bytes.len() != data.size() {
        let message =
            format!("the mask has {} bytes, but the data has {} elements", bytes.len(), data.size());
        return Err(exchange(py, "masked", message));
    }
    Ok(match data {
        Imported::Tensor(tensor) => Imported::MaskedTensor(tensor, Mask::shared(bytes)),
        Imported::Variable(variable) => {
            Imported::MaskedVariable(MaskedVariable::new(variable, Mask::shared(bytes)).raise(py)?)
        }
        // An element is missing if it is None or masked.
        Imported::MaskedVariable(masked) => {
            let mut joined = Buffer::copy_of(masked.mask().missing()).raise(py)?;
            joined.iter_mut().zip(bytes.iter()).for_each(|(missing, more)| *missing |= more);
            let mask = Mask::new(vec![joined]).raise(py)?;
            Imported::MaskedVariable(MaskedVariable::new(masked.data().clone(), mask).raise(py)?)
        }
        masked @ Imported::MaskedTensor(..) => masked,
    })
}

/// Returns one byte per element, for `size` elements.
fn bytes(mask: &Bound<'_, PyAny>, size: usize, copy: Option<bool>) -> PyResult<SharedBytes> {
    let py = mask.py();
    if !numpy::is_array(mask)? {
        return Ok(Buffer::zeroed(size).raise(py)?.into());
    }
    let of_fields = !mask.getattr("dtype")?.getattr("names")?.is_none();
    if of_fields && copy == Some(false) {
        return Err(needs_copy(py, "a mask with a structured dtype"));
    }
    let mask = &if of_fields { mask_elements(mask)? } else { mask.clone() };
    if mask.getattr("flags")?.getattr("c_contiguous")?.is_truthy()? {
        return buffer::bytes(mask);
    }
    if copy == Some(false) {
        return Err(needs_copy(py, "a non-contiguous mask"));
    }
    buffer::bytes(&mask.call_method0("copy")?)
}

/// Converts a mask per field of a structure to one per element: the fields of an element must be all missing or all
/// present.
fn mask_elements<'py>(mask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = mask.py();
    let numpy = numpy::module(py)?;
    let fields = numpy.call_method1("ascontiguousarray", (mask,))?.call_method1("view", ("?",))?;
    let shape: Vec<i64> = mask.getattr("shape")?.extract()?;
    let fields = fields.call_method1("reshape", ([shape, vec![-1]].concat(),))?;
    let (all, any) = (fields.call_method1("all", (-1,))?, fields.call_method1("any", (-1,))?);
    if !numpy.call_method1("array_equal", (&all, any))?.is_truthy()? {
        return Err(unsupported(py, "a mask of some fields of a structured element"));
    }
    Ok(all)
}
