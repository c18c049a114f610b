//! NumPy's types and views, through its Python functions. NumPy is imported on first use.

use crate::export::numpy_api;
use crate::layout::tensor::Tensor;
use crate::python::error::{exchange, unsupported};
use crate::python::importing::import;
use crate::python::interpreter_exit;
use crate::python::made_once::made_once;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use zarrow_array::fork::OnceCell;
use zarrow_array::{DataType, Field, Number, SharedTensor, Struct};

/// Returns the module `numpy`.
pub fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    interpreter_exit::guard_thread();
    static NUMPY: OnceCell<Py<PyModule>> = OnceCell::new();
    Ok(made_once(&NUMPY, || import(py, "numpy").map(Bound::unbind))?.bind(py))
}

/// Returns a class of NumPy, looked up once.
fn class<'py>(
    py: Python<'py>,
    found: &'static OnceCell<Py<PyType>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    let find = || PyResult::Ok(module(py)?.getattr(name)?.cast_into::<PyType>()?.unbind());
    Ok(made_once(found, find)?.bind(py))
}

/// Returns the class `numpy.ndarray`.
fn array_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: OnceCell<Py<PyType>> = OnceCell::new();
    class(py, &CLASS, "ndarray")
}

/// Returns whether `object` is exactly a `numpy.ndarray`, not a subclass.
pub fn is_exact_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_exact_instance(array_class(object.py())?))
}

/// Returns whether `object` is a `numpy.ndarray`.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.is_instance(array_class(object.py())?)
}

/// Returns whether `object` is a NumPy scalar.
pub fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static CLASS: OnceCell<Py<PyType>> = OnceCell::new();
    object.is_instance(class(object.py(), &CLASS, "generic")?)
}

/// Returns the `numpy.dtype` of the elements: `StringDType` for strings, `object` for variable-length bytes.
pub fn dtype<'py>(py: Python<'py>, data_type: &DataType) -> PyResult<Bound<'py, PyAny>> {
    match data_type.without_optional() {
        DataType::Number(number) => number_dtype(py, *number),
        DataType::String => module(py)?.getattr("dtypes")?.call_method0("StringDType"),
        DataType::Bytes => make_dtype(py, "O"),
        DataType::Struct(structure) => struct_dtype(py, structure),
        other => make_dtype(py, other.numpy_code()),
    }
}

/// Returns `numpy.dtype(description)`.
fn make_dtype<'py>(py: Python<'py>, description: impl IntoPyObject<'py>) -> PyResult<Bound<'py, PyAny>> {
    module(py)?.getattr("dtype")?.call1((description,))
}

/// Returns the `numpy.dtype` of a number, created once.
///
/// Numbers without a NumPy type use `ml_dtypes`; complex numbers missing there too are a structure of `real` and
/// `imag`.
fn number_dtype(py: Python<'_>, number: Number) -> PyResult<Bound<'_, PyAny>> {
    static MADE: [OnceCell<Py<PyAny>>; Number::ALL.len()] = [const { OnceCell::new() }; Number::ALL.len()];
    let made = made_once(&MADE[number as usize], || {
        let names = number.names();
        let dtype = match (names.numpy, names.ml_dtypes, number.part()) {
            (Some(code), ..) => make_dtype(py, code)?,
            (None, Some(name), _) => make_dtype(py, ml_dtype(py, name)?)?,
            (None, None, Some(part)) => {
                let part = number_dtype(py, part)?;
                make_dtype(py, vec![("real", &part), ("imag", &part)])?
            }
            (None, None, None) => return Err(unsupported(py, format!("{} as a NumPy type", names.zarr))),
        };
        PyResult::Ok(dtype.unbind())
    })?;
    Ok(made.bind(py).clone())
}

/// Returns a type of `ml_dtypes`.
fn ml_dtype<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let missing = |error: PyErr| {
        let message = format!("{name} needs ml_dtypes: pip install 'zarrow[ml-dtypes]' ({error})");
        PyImportError::new_err(message)
    };
    import(py, "ml_dtypes").and_then(|module| module.getattr(name)).map_err(missing)
}

/// Returns the `numpy.dtype` of a structure, with fields at their offsets.
fn struct_dtype<'py>(py: Python<'py>, structure: &Struct) -> PyResult<Bound<'py, PyAny>> {
    let format = |field: &Field| {
        let item = dtype(py, &field.data_type)?;
        match field.shape.is_empty() {
            true => Ok(item),
            false => make_dtype(py, (item, PyTuple::new(py, &*field.shape)?)),
        }
    };
    let fields = structure.fields();
    let description = PyDict::new(py);
    description.set_item("names", fields.iter().map(|field| &*field.name).collect::<Vec<_>>())?;
    description.set_item("formats", fields.iter().map(format).collect::<PyResult<Vec<_>>>()?)?;
    description.set_item("offsets", fields.iter().map(|field| field.offset).collect::<Vec<_>>())?;
    description.set_item("itemsize", structure.item_size())?;
    make_dtype(py, description)
}

/// Returns a view of the tensor's memory; its base keeps the tensor alive.
pub fn view<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let shared = tensor.get().shared();
    numpy_api::array(tensor.as_any(), shared, dtype(tensor.py(), shared.dtype())?)
}

/// Returns `array` itself, or a copy if the arguments `dtype` or `copy` of `__array__` require one.
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
            let message = format!("dtype={dtype} needs a copy, which copy=False forbids");
            Err(exchange(py, "needs_copy", message))
        }
        (Some(dtype), _) => array.call_method1("astype", (dtype,)),
        (None, Some(true)) => array.call_method0("copy"),
        (None, _) => Ok(array),
    }
}

/// Returns the value of a 0-dimensional tensor as a NumPy scalar.
pub fn scalar<'py>(py: Python<'py>, shared: SharedTensor) -> PyResult<Bound<'py, PyAny>> {
    view(&Tensor::create(py, shared)?)?.get_item(())
}

/// Returns a new array from an `__array__` that always copies, or an error if `copy` forbids that.
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
            "converting this to NumPy needs a copy, which copy=False forbids",
        ));
    }
    as_asked(make()?, dtype, None)
}
