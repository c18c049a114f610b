//! The class `MaskedTensor`: a tensor with missing elements.

use crate::export::numpy;
use crate::index::basic;
use crate::layout::decoded_array::DecodedArray;
use crate::layout::shown;
use crate::layout::tensor::Tensor;
use crate::python::error::Raise;
use crate::python::keeps_exception::KeepsException;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use zarrow_array::{Mask, SharedTensor};

#[doc = help!("MaskedTensor")]
#[pyclass(frozen, extends = DecodedArray, module = "zarrow")]
pub struct MaskedTensor {
    data: KeepsException<SharedTensor>,
    mask: KeepsException<Mask>,
    shape: Box<[u64]>,
}

impl MaskedTensor {
    /// Returns the elements and the mask.
    pub fn parts(&self) -> (&SharedTensor, &Mask) {
        (&self.data, &self.mask)
    }

    /// Creates the Python object of `masked`. Nothing is copied.
    pub fn create(py: Python<'_>, masked: zarrow_array::MaskedTensor) -> PyResult<Bound<'_, MaskedTensor>> {
        let (data, mask) = masked.into_parts();
        MaskedTensor::from_parts(py, data.into_shared().raise(py)?, mask)
    }

    /// Creates the Python object of `data` and a `mask` of the same length. Nothing is copied.
    pub fn from_parts(py: Python<'_>, data: SharedTensor, mask: Mask) -> PyResult<Bound<'_, MaskedTensor>> {
        let shape: Box<[u64]> = data.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        let base = DecodedArray::new(&shape[..], data.dtype(), data.nbytes() + mask.missing().len());
        Bound::new(
            py,
            (MaskedTensor { data: KeepsException::new(data), mask: KeepsException::new(mask), shape }, base),
        )
    }
}

#[pymethods]
impl MaskedTensor {
    #[doc = help!("MaskedTensor.data")]
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.data.clone())
    }

    #[doc = help!("MaskedTensor.mask")]
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.mask.tensor(&self.shape).raise(py)?)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        basic::part_of(slf, index)
    }

    #[doc = help!("MaskedTensor.filled")]
    fn filled<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Tensor>> {
        let py = value.py();
        let filled = self.data(py)?.get().copy(py)?;
        let target = numpy::view(&filled)?;
        let places = [("where", numpy::view(&self.mask(py)?)?)].into_py_dict(py)?;
        numpy::module(py)?.getattr("copyto")?.call((target, value), Some(&places))?;
        Ok(filled)
    }

    #[doc = help!("MaskedTensor.numpy")]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let arguments = [("mask", numpy::view(&self.mask(py)?)?)].into_py_dict(py)?;
        arguments.set_item("copy", false)?;
        let class = numpy::module(py)?.getattr("ma")?.getattr("MaskedArray")?;
        let data = numpy::view(&self.data(py)?)?;
        class.call((data,), Some(&arguments))
    }

    #[doc = help!("MaskedTensor.torch")]
    fn torch(&self, py: Python<'_>) -> PyResult<()> {
        Err(DecodedArray::refuse_unmasked(py, "PyTorch"))
    }

    #[doc = help!("MaskedTensor.jax")]
    fn jax(&self, py: Python<'_>) -> PyResult<()> {
        Err(DecodedArray::refuse_unmasked(py, "JAX"))
    }

    #[doc = help!("MaskedTensor.__array__")]
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(&self, py: Python<'_>, dtype: Option<Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<()> {
        let _ = (dtype, copy);
        Err(DecodedArray::refuse_unmasked(py, "A plain NumPy array"))
    }

    #[doc = help!("MaskedTensor.__dlpack__")]
    #[pyo3(signature = (**arguments))]
    fn __dlpack__(&self, py: Python<'_>, arguments: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = arguments;
        Err(DecodedArray::refuse_unmasked(py, "DLPack"))
    }

    #[doc = help!("MaskedTensor.__dlpack_device__")]
    fn __dlpack_device__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.data(py)?.call_method0("__dlpack_device__")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().text("MaskedTensor", &shown::text(slf.as_super())?))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().html("MaskedTensor", &shown::text(slf.as_super())?))
    }
}
