//! Primitives of `zarrow.interchange.pickling`: decoded arrays from unpickled buffers, and the buffers to pickle.

use crate::import;
use crate::layout::categorical::Categorical;
use crate::layout::decoded_array::DecodedArray;
use crate::layout::masked_tensor::MaskedTensor;
use crate::layout::masked_variable::MaskedVariable;
use crate::layout::tensor::Tensor;
use crate::layout::variable::Variable;
use crate::python::error::Raise;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use zarrow_array::{Buffer, DataType, Mask, Number, SharedBytes, SharedTensor};

/// Make a Variable from two buffers. They are checked, and shared unless the offsets are misaligned.
#[pyfunction]
pub fn _variable<'py>(
    offsets: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
    shape: Vec<u64>,
    is_text: bool,
) -> PyResult<Bound<'py, Variable>> {
    let py = offsets.py();
    let mut offsets = import::bytes(offsets)?;
    if offsets.as_i64().is_err() {
        offsets = SharedBytes::from(Buffer::copy_of(&offsets).raise(py)?);
    }
    let dtype = if is_text { DataType::String } else { DataType::Bytes };
    let variable = zarrow_array::Variable::new(offsets, import::bytes(data)?, shape, dtype);
    Variable::create(py, variable.raise(py)?)
}

/// Add a mask to an array, from one buffer per level, outermost first.
#[pyfunction]
pub fn _masked<'py>(data: &Bound<'py, PyAny>, levels: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let levels = levels.iter().map(import::bytes).collect::<PyResult<Vec<SharedBytes>>>()?;
    let mask = Mask::shared_levels(levels).raise(py)?;
    if let Ok(tensor) = data.cast::<Tensor>() {
        let tensor = tensor.get().shared().clone();
        let shape: Vec<u64> = tensor.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        // Checks the length of the mask.
        mask.tensor(&shape).raise(py)?;
        return Ok(MaskedTensor::from_parts(py, tensor, mask)?.into_any());
    }
    let data = data.cast::<Variable>()?.get().inner().clone();
    let masked = zarrow_array::MaskedVariable::new(data, mask).raise(py)?;
    Ok(MaskedVariable::create(py, masked)?.into_any())
}

/// Return the mask of each level as a read-only Tensor of bytes, outermost first.
#[pyfunction]
pub fn _mask_levels<'py>(array: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, Tensor>>> {
    let py = array.py();
    let mask = if let Ok(masked) = array.cast::<MaskedTensor>() {
        masked.get().parts().1
    } else if let Ok(masked) = array.cast::<MaskedVariable>() {
        masked.get().inner().mask()
    } else {
        return Err(PyTypeError::new_err("this array has no mask"));
    };
    let tensor = |level: &SharedBytes| {
        let bytes = SharedTensor::read_only(level, &[level.len() as u64], Number::UInt8.into());
        Tensor::create(py, bytes.raise(py)?)
    };
    mask.levels().iter().map(tensor).collect()
}

/// Make a Categorical from codes and categories.
#[pyfunction]
pub fn _categorical(codes: Py<Tensor>, categories: Py<DecodedArray>, ordered: bool) -> Categorical {
    Categorical::from_parts(codes, categories, ordered)
}
