//! NumPy's `__array_interface__`, version 3.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use zarrow_array::{DataType, SharedTensor, Struct};

/// Describes the memory by its address.
///
/// A type without a NumPy code raises `AttributeError`: with a fallback to `V2`, NumPy would use that and never
/// call `__array__`.
pub fn describe<'py>(py: Python<'py>, tensor: &SharedTensor) -> PyResult<Bound<'py, PyDict>> {
    let Some(description) = elements(py, tensor.dtype(), tensor.item_size())? else {
        let message = format!("NumPy has no type code for {}: call .numpy()", tensor.dtype());
        return Err(PyAttributeError::new_err(message));
    };
    let item_size = tensor.item_size() as i64;
    let strides = tensor.strides().iter().map(|stride| stride * item_size);
    description.set_item("shape", PyTuple::new(py, tensor.shape())?)?;
    description.set_item("strides", PyTuple::new(py, strides.collect::<Vec<i64>>())?)?;
    description.set_item("data", (tensor.pointer().as_ptr().addr(), tensor.is_read_only()))?;
    Ok(description)
}

/// Returns the version and the element type; `None` if NumPy has no code for the type.
pub fn elements<'py>(
    py: Python<'py>,
    dtype: &DataType,
    item_size: usize,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let fields = match dtype {
        DataType::Struct(structure) => fields(py, structure)?,
        _ => None,
    };
    let code = match &fields {
        Some(_) => Some(format!("|V{item_size}")),
        None => type_string(dtype),
    };
    let Some(code) = code else { return Ok(None) };
    let description = PyDict::new(py);
    description.set_item("version", 3)?;
    description.set_item("typestr", code)?;
    if let Some(fields) = fields {
        description.set_item("descr", fields)?;
    }
    Ok(Some(description))
}

/// Returns NumPy's type string, if there is one.
fn type_string(data_type: &DataType) -> Option<String> {
    let order = match data_type.word_size() {
        1 => '|',
        _ if cfg!(target_endian = "big") => '>',
        _ => '<',
    };
    Some(format!("{order}{}", data_type.numpy_code()?))
}

/// Returns the fields as NumPy lists them; `None` if a field has no code, or if there is padding: NumPy would
/// invent fields for it.
fn fields<'py>(py: Python<'py>, structure: &Struct) -> PyResult<Option<Bound<'py, PyList>>> {
    let list = PyList::empty(py);
    if structure.has_padding() {
        return Ok(None);
    }
    for field in structure.fields() {
        let item = match &field.data_type {
            DataType::Struct(inner) => fields(py, inner)?.map(Bound::into_any),
            plain => type_string(plain).map(|code| PyString::new(py, &code).into_any()),
        };
        let Some(item) = item else { return Ok(None) };
        match field.shape.is_empty() {
            true => list.append((&*field.name, item))?,
            false => list.append((&*field.name, item, PyTuple::new(py, &*field.shape)?))?,
        }
    }
    Ok(Some(list))
}
