//! NumPy's types and views, by NumPy's own Python functions. It is imported when it is first needed.

use crate::error::exchange;
use crate::numpy_api;
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use zarrow_array::{DataType, Number, SharedTensor};

/// The module `numpy`.
pub fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?.bind(py))
}

/// A class of NumPy's, found once.
fn class<'py>(
    py: Python<'py>,
    found: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    let find = || PyResult::Ok(module(py)?.getattr(name)?.cast_into::<PyType>()?.unbind());
    Ok(found.get_or_try_init(py, find)?.bind(py))
}

/// The class `numpy.ndarray`.
fn array_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    class(py, &CLASS, "ndarray")
}

/// Whether `object` is a `numpy.ndarray`, and of no class derived from it.
pub fn is_exact_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_exact_instance(array_class(object.py())?))
}

/// Whether `object` is a `numpy.ndarray`.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.is_instance(array_class(object.py())?)
}

/// Whether `object` is one of NumPy's scalars.
pub fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    object.is_instance(class(object.py(), &CLASS, "generic")?)
}

/// The `numpy.dtype` of the elements: `StringDType` for strings, `object` for bytes of any length.
pub fn dtype<'py>(py: Python<'py>, data_type: &DataType) -> PyResult<Bound<'py, PyAny>> {
    match data_type.without_optional() {
        DataType::Number(number) => number_dtype(py, *number),
        DataType::String => module(py)?.getattr("dtypes")?.call_method0("StringDType"),
        DataType::Bytes => module(py)?.getattr("dtype")?.call1(("O",)),
        other => module(py)?.getattr("dtype")?.call1((other.numpy_code(),)),
    }
}

/// The `numpy.dtype` of a number, made once.
fn number_dtype(py: Python<'_>, number: Number) -> PyResult<Bound<'_, PyAny>> {
    static MADE: [PyOnceLock<Py<PyAny>>; Number::ALL.len()] =
        [const { PyOnceLock::new() }; Number::ALL.len()];
    let made = MADE[number as usize].get_or_try_init(py, || {
        let dtype = module(py)?.getattr("dtype")?;
        let dtype = match number.names().numpy {
            Some(code) => dtype.call1((code,))?,
            None => dtype.call1((py.import("ml_dtypes")?.getattr(number.names().zarr)?,))?,
        };
        PyResult::Ok(dtype.unbind())
    })?;
    Ok(made.bind(py).clone())
}

/// A view of the tensor's memory, which keeps the tensor alive as its base.
pub fn view<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let shared = tensor.get().shared();
    numpy_api::array(tensor.as_any(), shared, dtype(tensor.py(), shared.dtype())?)
}

/// What `__array__` returns: `array` itself, or a copy where `dtype` or `copy` ask for one.
pub fn as_asked<'py>(
    array: Bound<'py, PyAny>,
    dtype: Option<Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let other = match dtype {
        Some(dtype) => {
            let dtype = module(py)?.getattr("dtype")?.call1((dtype,))?;
            if dtype.eq(array.getattr("dtype")?)? { None } else { Some(dtype) }
        }
        None => None,
    };
    match (other, copy) {
        (Some(dtype), Some(false)) => {
            let message = format!("another dtype ({dtype}) needs a copy, which copy=False forbids");
            Err(exchange(py, "needs_copy", message))
        }
        (Some(dtype), _) => array.call_method1("astype", (dtype,)),
        (None, Some(true)) => array.call_method0("copy"),
        (None, _) => Ok(array),
    }
}

/// The value of a tensor without axes, as a NumPy scalar.
pub fn scalar<'py>(py: Python<'py>, shared: SharedTensor) -> PyResult<Bound<'py, PyAny>> {
    view(&Tensor::create(py, shared)?)?.get_item(())
}

/// What `__array__` returns where it always copies: a new array, or an error where `copy` forbids that.
pub fn new_array<'py>(
    py: Python<'py>,
    dtype: Option<Bound<'py, PyAny>>,
    copy: Option<bool>,
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if copy == Some(false) {
        return Err(exchange(
            py,
            "needs_copy",
            "this can only be a new NumPy array, which copy=False forbids",
        ));
    }
    as_asked(make()?, dtype, None)
}
