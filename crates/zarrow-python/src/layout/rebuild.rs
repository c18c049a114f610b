//! Decoded arrays from buffers that came out of a pickle, and the buffers that go into one: what
//! `zarrow.pickling` needs of memory.

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

/// Make a Variable over two buffers, which are checked, and shared unless the offsets are not aligned.
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

/// Give an array the mask that the buffers are, one for each level, the outermost first.
#[pyfunction]
pub fn _masked<'py>(data: &Bound<'py, PyAny>, levels: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let levels = levels.iter().map(import::bytes).collect::<PyResult<Vec<SharedBytes>>>()?;
    let mask = Mask::shared_levels(levels).raise(py)?;
    if let Ok(tensor) = data.cast::<Tensor>() {
        let tensor = tensor.get().shared().clone();
        let shape: Vec<u64> = tensor.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        // Refuses a mask of another length.
        mask.tensor(&shape).raise(py)?;
        return Ok(MaskedTensor::of_parts(py, tensor, mask)?.into_any());
    }
    let data = data.cast::<Variable>()?.get().inner().clone();
    let masked = zarrow_array::MaskedVariable::new(data, mask).raise(py)?;
    Ok(MaskedVariable::create(py, masked)?.into_any())
}

/// Give the mask of each level as a read-only Tensor of bytes, the outermost first.
#[pyfunction]
pub fn _mask_levels<'py>(array: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, Tensor>>> {
    let py = array.py();
    let mask = if let Ok(masked) = array.cast::<MaskedTensor>() {
        masked.get().parts().1
    } else if let Ok(masked) = array.cast::<MaskedVariable>() {
        masked.get().inner().mask()
    } else {
        return Err(PyTypeError::new_err("an array without a mask"));
    };
    let tensor = |level: &SharedBytes| {
        let bytes = SharedTensor::read_only(level, &[level.len() as u64], Number::UInt8.into());
        Tensor::create(py, bytes.raise(py)?)
    };
    mask.levels().iter().map(tensor).collect()
}

/// Make a Categorical over codes and categories.
#[pyfunction]
pub fn _categorical(codes: Py<Tensor>, categories: Py<DecodedArray>, ordered: bool) -> Categorical {
    Categorical::of_parts(codes, categories, ordered)
}
