//! Writes from a device.
//!
//! 1. Elements of the array's own type, or of a type that casts to it safely, are copied to the host in parts,
//!    through pinned memory.
//! 2. All other values are copied to the host first and written from there, since that path inspects the values.

use super::import;
use super::tensor::DeviceTensor;
use crate::export::numpy;
use crate::index::field::ElementPart;
use crate::python::importing;
use crate::python::interrupt::interruptible_with;
use pyo3::prelude::*;
use zarrow::store::Durability;
use zarrow::{Selection, Values, WriteOptions};

/// Options of a write.
pub struct Writing {
    /// Guarantee when the call returns.
    pub durability: Durability,
    /// Whether to store chunks that only contain the fill value.
    pub write_empty_chunks: bool,
}

/// Writes `value` if step 1 applies; returns whether it did.
pub fn write(
    elements: &ElementPart,
    selection: &Selection,
    value: &Bound<'_, PyAny>,
    writing: &Writing,
) -> PyResult<bool> {
    let py = value.py();
    let Some(tensor) = import::tensor(value)? else { return Ok(false) };
    let own = elements.data_type();
    let is_cast_safely = || -> PyResult<bool> {
        let (found, wanted) = (numpy::dtype(py, tensor.dtype())?, numpy::dtype(py, own)?);
        let rules = importing::import(py, "zarrow.arrays.casting")?;
        Ok(Values::can_be_cast(tensor.dtype(), own)
            && rules.call_method1("is_allowed", (found, wanted, "safe"))?.extract()?)
    };
    if elements.field.is_some() || tensor.dtype() != own && !is_cast_safely()? {
        return Ok(false);
    }
    interruptible_with(py, |interrupt| {
        let options = WriteOptions::default()
            .durability(writing.durability)
            .write_empty_chunks(writing.write_empty_chunks)
            .cancel(interrupt);
        zarrow_cuda::write(&elements.array, selection, &tensor, &options)
    })?;
    Ok(true)
}

/// Returns the values to write through the host: a copy of those on a device (step 2).
pub fn on_host<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match import::tensor(value)? {
        Some(tensor) => DeviceTensor::create(value.py(), tensor)?.call_method0("cpu"),
        None => Ok(value.clone()),
    }
}
