//! The class `Variable`: variable-length strings or bytes, as offsets and data.

use crate::export::{numpy, numpy_string};
use crate::index::basic;
use crate::layout::decoded_array::DecodedArray;
use crate::layout::tensor::Tensor;
use crate::python::error::Raise;
use crate::python::keeps_exception::KeepsException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use zarrow_array::DataType;

#[doc = help!("Variable")]
#[pyclass(frozen, extends = DecodedArray, module = "zarrow")]
pub struct Variable {
    variable: KeepsException<zarrow_array::Variable>,
}

impl Variable {
    /// Returns the memory.
    pub fn inner(&self) -> &zarrow_array::Variable {
        &self.variable
    }

    /// Creates the Python object of `variable`. Nothing is copied.
    pub fn create(py: Python<'_>, variable: zarrow_array::Variable) -> PyResult<Bound<'_, Variable>> {
        let nbytes = size_of_val(variable.offsets()) + variable.data().len();
        let base = DecodedArray::new(variable.shape(), variable.dtype(), nbytes);
        Bound::new(py, (Variable { variable: KeepsException::new(variable) }, base))
    }
}

/// Creates `bytes`; raises MemoryError if the allocation fails.
pub fn bytes_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |place| {
        place.copy_from_slice(bytes);
        Ok(())
    })
}

/// Returns element `index` as `str` or `bytes`.
pub fn element<'py>(
    py: Python<'py>,
    variable: &zarrow_array::Variable,
    index: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = variable.element(index).unwrap_or_default();
    match variable.dtype() {
        DataType::String => Ok(PyString::from_bytes(py, bytes)?.into_any()),
        _ => Ok(bytes_of(py, bytes)?.into_any()),
    }
}

/// Creates an array of the elements, with `None` for missing ones: `StringDType` if all are strings and none is
/// missing, else objects.
pub fn to_numpy<'py>(
    py: Python<'py>,
    variable: &zarrow_array::Variable,
    missing: Option<&[u8]>,
) -> PyResult<Bound<'py, PyAny>> {
    if missing.is_none() && *variable.dtype() == DataType::String {
        return numpy_string::strings(py, variable)?.call_method1("reshape", (variable.shape().to_vec(),));
    }
    let is_missing = |index: usize| missing.and_then(|mask| mask.get(index)).is_some_and(|byte| *byte != 0);
    let elements = PyList::empty(py);
    for index in 0..variable.size() {
        if is_missing(index) {
            elements.append(py.None())?;
        } else {
            elements.append(element(py, variable, index)?)?;
        }
    }
    let module = numpy::module(py)?;
    let dtype = numpy::dtype(py, &DataType::Bytes)?;
    let flat = module.call_method1("empty", (variable.size(), dtype))?;
    flat.set_item(pyo3::types::PyEllipsis::get(py), elements)?;
    flat.call_method1("reshape", (variable.shape().to_vec(),))
}

/// Formats the first elements, in C order.
pub fn preview(
    py: Python<'_>,
    size: usize,
    element: impl Fn(usize) -> PyResult<Py<PyAny>>,
) -> PyResult<String> {
    const SHOWN: usize = 8;
    let mut shown = Vec::new();
    for index in 0..size.min(SHOWN) {
        shown.push(element(index)?.bind(py).repr()?.to_string());
    }
    let more = if size > SHOWN { ", ..." } else { "" };
    Ok(format!("[{}{more}]", shown.join(", ")))
}

#[pymethods]
impl Variable {
    #[doc = help!("Variable.offsets")]
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.variable.offsets_tensor().raise(py)?)
    }

    #[doc = help!("Variable.data")]
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.variable.data_tensor().raise(py)?)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let variable = &slf.get().variable;
        match basic::position(index, variable.shape())? {
            Some(position) => element(index.py(), variable, position),
            None => basic::part_of(slf, index),
        }
    }

    #[doc = help!("Variable.numpy")]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, &self.variable, None)
    }

    #[doc = help!("Variable.__array__")]
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        numpy::new_array(py, dtype, copy, || self.numpy(py))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().text("Variable", &slf.get().values(slf.py())?))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().html("Variable", &slf.get().values(slf.py())?))
    }
}

impl Variable {
    fn values(&self, py: Python<'_>) -> PyResult<String> {
        preview(py, self.variable.size(), |index| Ok(element(py, &self.variable, index)?.unbind()))
    }
}
