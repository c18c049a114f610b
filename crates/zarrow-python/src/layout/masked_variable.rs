//! The class `MaskedVariable`: variable-length strings or bytes with missing elements.

use crate::index::basic;
use crate::layout::decoded_array::DecodedArray;
use crate::layout::tensor::Tensor;
use crate::layout::variable::{self, Variable};
use crate::python::error::Raise;
use crate::python::keeps_exception::KeepsException;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use zarrow_array::DataType;

#[doc = help!("MaskedVariable")]
#[pyclass(frozen, extends = DecodedArray, module = "zarrow")]
pub struct MaskedVariable {
    masked: KeepsException<zarrow_array::MaskedVariable>,
}

impl MaskedVariable {
    /// Returns the memory.
    pub fn inner(&self) -> &zarrow_array::MaskedVariable {
        &self.masked
    }

    /// Creates the Python object of `masked`. Nothing is copied.
    pub fn create(
        py: Python<'_>,
        masked: zarrow_array::MaskedVariable,
    ) -> PyResult<Bound<'_, MaskedVariable>> {
        let data = masked.data();
        let nbytes = size_of_val(data.offsets()) + data.data().len() + masked.mask().missing().len();
        let base = DecodedArray::new(data.shape(), data.dtype(), nbytes);
        Bound::new(py, (MaskedVariable { masked: KeepsException::new(masked) }, base))
    }

    /// Returns element `index`; `None` if it is missing.
    fn element<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        if self.masked.mask().missing().get(index).is_some_and(|byte| *byte != 0) {
            return Ok(py.None().into_bound(py));
        }
        variable::element(py, self.masked.data(), index)
    }

    fn values(&self, py: Python<'_>) -> PyResult<String> {
        variable::preview(py, self.masked.data().size(), |index| Ok(self.element(py, index)?.unbind()))
    }
}

#[pymethods]
impl MaskedVariable {
    #[doc = help!("MaskedVariable.data")]
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Variable>> {
        Variable::create(py, self.masked.data().clone())
    }

    #[doc = help!("MaskedVariable.mask")]
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.masked.mask().tensor(self.masked.data().shape()).raise(py)?)
    }

    #[doc = help!("MaskedVariable.filled")]
    fn filled<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Variable>> {
        let py = value.py();
        let text = *self.masked.data().dtype() == DataType::String;
        let bytes = match (text, value.cast::<PyString>(), value.cast::<PyBytes>()) {
            (true, Ok(value), _) => value.to_str()?.as_bytes(),
            (false, _, Ok(value)) => value.as_bytes(),
            _ => {
                let wanted = if text { "a str" } else { "bytes" };
                let found = value.get_type().name()?;
                return Err(PyTypeError::new_err(format!("expected {wanted} to fill with, got {found}")));
            }
        };
        Variable::create(py, self.masked.filled(bytes).raise(py)?)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match basic::position(index, slf.get().masked.data().shape())? {
            Some(position) => slf.get().element(index.py(), position),
            None => basic::part_of(slf, index),
        }
    }

    #[doc = help!("MaskedVariable.numpy")]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        variable::to_numpy(py, self.masked.data(), Some(self.masked.mask().missing()))
    }

    #[doc = help!("MaskedVariable.__array__")]
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::export::numpy::new_array(py, dtype, copy, || self.numpy(py))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().text("MaskedVariable", &slf.get().values(slf.py())?))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().html("MaskedVariable", &slf.get().values(slf.py())?))
    }
}
