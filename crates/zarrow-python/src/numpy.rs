//! NumPy's types and views, by NumPy's own Python functions. It is imported when it is first needed.

use crate::error::{Raise, exchange};
use crate::tensor::Tensor;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use zarrow_array::{DataType, Number, SharedTensor};

/// The module `numpy`.
pub fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind))?.bind(py))
}

/// The `numpy.dtype` of the elements: `StringDType` for strings, `object` for bytes of any length.
pub fn dtype<'py>(py: Python<'py>, data_type: &DataType) -> PyResult<Bound<'py, PyAny>> {
    let numpy = module(py)?;
    let dtype = numpy.getattr("dtype")?;
    match data_type.without_optional() {
        DataType::String => numpy.getattr("dtypes")?.call_method0("StringDType"),
        DataType::Bytes => dtype.call1(("O",)),
        DataType::Number(number) if number.names().numpy.is_none() => {
            dtype.call1((py.import("ml_dtypes")?.getattr(number.names().zarr)?,))
        }
        other => dtype.call1((other.numpy_code(),)),
    }
}

/// A view of the tensor's memory.
pub fn view<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let shared = tensor.get().shared();
    let asarray = module(py)?.getattr("asarray")?;
    match stand_in(shared.dtype()) {
        None => asarray.call1((tensor,)),
        Some(stand_in) => {
            let cast = Tensor::create(py, shared.cast(stand_in).raise(py)?)?;
            asarray.call1((cast,))?.call_method1("view", (dtype(py, shared.dtype())?,))
        }
    }
}

/// A type of the same size that the buffer protocol can name, where it cannot name the type itself.
fn stand_in(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => Some(Number::Int64.into()),
        DataType::RawBytes { length } => Some(DataType::NullTerminatedBytes { length: *length }),
        DataType::Number(number) if number.names().pep3118.is_none() => {
            Some(if number.names().item_size == 1 { Number::UInt8 } else { Number::UInt16 }.into())
        }
        _ => None,
    }
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
