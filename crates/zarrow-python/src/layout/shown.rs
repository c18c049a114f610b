//! The text form of arrays, also of types from packages that are not installed.
//!
//! 1. Values are shown as NumPy shows them.
//! 2. bfloat16 is the upper half of a 32-bit float: without `ml_dtypes` it is shown as such a float.
//! 3. For other types of `ml_dtypes`, the text says how to install it.

use crate::export::numpy;
use crate::layout::decoded_array::DecodedArray;
use crate::layout::masked_tensor::MaskedTensor;
use crate::layout::tensor::Tensor;
use crate::python::interpreter_exit;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use zarrow_array::Number;

/// Returns the values as a NumPy array, masked if some are missing (steps 1 and 2).
///
/// # Errors
/// An `ImportError` with the package to install.
pub fn values<'py>(array: &Bound<'py, DecodedArray>) -> PyResult<Bound<'py, PyAny>> {
    interpreter_exit::guard_thread();
    let py = array.py();
    let tensor = match array.cast::<MaskedTensor>() {
        Ok(masked) => Some(Tensor::create(py, masked.get().parts().0.clone())?),
        Err(_) => array.cast::<Tensor>().ok().cloned(),
    };
    match (array.call_method0("numpy"), tensor) {
        (Err(error), Some(tensor)) if error.is_instance_of::<PyImportError>(py) => {
            let Some(values) = widened(&tensor)? else { return Err(error) };
            match array.cast::<MaskedTensor>() {
                Ok(masked) => {
                    let mask = [("mask", masked.getattr("mask")?.call_method0("numpy")?)].into_py_dict(py)?;
                    numpy::module(py)?.getattr("ma")?.getattr("MaskedArray")?.call((values,), Some(&mask))
                }
                Err(_) => Ok(values),
            }
        }
        (form, _) => form,
    }
}

/// Copies bfloat16 to 32-bit floats; `None` for every other type.
fn widened<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = tensor.py();
    let shared = tensor.get().shared();
    if shared.dtype().as_number() != Some(Number::BFloat16) {
        return Ok(None);
    }
    let Ok(halves) = shared.cast(Number::UInt16.into()) else { return Ok(None) };
    let halves = numpy::view(&Tensor::create(py, halves)?)?;
    let shifted = halves.call_method1("astype", ("u4",))?.call_method1("__lshift__", (16,))?;
    shifted.call_method1("astype", ("u4",))?.call_method1("view", ("f4",)).map(Some)
}

/// Formats the values by NumPy (step 3).
pub fn text(array: &Bound<'_, DecodedArray>) -> PyResult<String> {
    match values(array) {
        Ok(values) => values.str()?.extract(),
        Err(error) if error.is_instance_of::<PyImportError>(array.py()) => {
            Ok(format!("[{}]", error.value(array.py())))
        }
        Err(error) => Err(error),
    }
}

/// Format the values by NumPy.
#[pyfunction]
pub fn _text(array: &Bound<'_, DecodedArray>) -> PyResult<String> {
    text(array)
}
