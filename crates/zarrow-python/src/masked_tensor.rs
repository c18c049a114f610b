//! The class `MaskedTensor`: a tensor some of whose elements are missing.

use crate::decoded_array::DecodedArray;
use crate::error::Raise;
use crate::tensor::Tensor;
use crate::{numpy, selection};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use zarrow_array::{Mask, SharedTensor};

/// A tensor and a mask that is True where a value is missing, as in numpy.ma.
#[pyclass(frozen, extends = DecodedArray, module = "zarrow")]
pub struct MaskedTensor {
    data: SharedTensor,
    mask: Mask,
    shape: Box<[u64]>,
}

impl MaskedTensor {
    /// The elements and which of them are missing.
    pub fn parts(&self) -> (&SharedTensor, &Mask) {
        (&self.data, &self.mask)
    }

    /// The Python object over `masked`. Nothing is copied.
    pub fn create(py: Python<'_>, masked: zarrow_array::MaskedTensor) -> PyResult<Bound<'_, MaskedTensor>> {
        let (data, mask) = masked.into_parts();
        MaskedTensor::of_parts(py, data.into_shared().raise(py)?, mask)
    }

    /// The Python object over `data` and a `mask` of as many elements. Nothing is copied.
    pub fn of_parts(py: Python<'_>, data: SharedTensor, mask: Mask) -> PyResult<Bound<'_, MaskedTensor>> {
        let shape: Box<[u64]> = data.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        let base = DecodedArray::new(&shape[..], data.dtype(), data.nbytes() + mask.missing().len());
        Bound::new(py, (MaskedTensor { data, mask, shape }, base))
    }
}

#[pymethods]
impl MaskedTensor {
    /// The elements: a Tensor of the same memory.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.data.clone())
    }

    /// Which elements are missing: a read-only Tensor of bool.
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.mask.tensor(&self.shape).raise(py)?)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        selection::part_of(slf, index)
    }

    /// Make a Tensor with value where an element is missing.
    fn filled<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Tensor>> {
        let py = value.py();
        let filled = self.data(py)?.get().copy(py)?;
        let target = numpy::view(&filled)?;
        let places = [("where", numpy::view(&self.mask(py)?)?)].into_py_dict(py)?;
        numpy::module(py)?.getattr("copyto")?.call((target, value), Some(&places))?;
        Ok(filled)
    }

    /// Give a numpy.ma.MaskedArray of the same data and mask memory; the mask is read-only.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let arguments = [("mask", numpy::view(&self.mask(py)?)?)].into_py_dict(py)?;
        arguments.set_item("copy", false)?;
        numpy::module(py)?
            .getattr("ma")?
            .getattr("MaskedArray")?
            .call((numpy::view(&self.data(py)?)?,), Some(&arguments))
    }

    /// Refuse, with an ExchangeError: PyTorch has no masks.
    fn torch(&self, py: Python<'_>) -> PyResult<()> {
        Err(DecodedArray::refuse_unmasked(py, "PyTorch"))
    }

    /// Refuse, with an ExchangeError: JAX has no masks.
    fn jax(&self, py: Python<'_>) -> PyResult<()> {
        Err(DecodedArray::refuse_unmasked(py, "JAX"))
    }

    /// Refuse, with an ExchangeError: a plain array has no mask.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(&self, py: Python<'_>, dtype: Option<Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<()> {
        let _ = (dtype, copy);
        Err(DecodedArray::refuse_unmasked(py, "A plain NumPy array"))
    }

    /// Refuse, with an ExchangeError: DLPack has no masks.
    #[pyo3(signature = (**arguments))]
    fn __dlpack__(&self, py: Python<'_>, arguments: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let _ = arguments;
        Err(DecodedArray::refuse_unmasked(py, "DLPack"))
    }

    /// DLPack: the device as (type, number); (1, 0) is the CPU.
    fn __dlpack_device__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.data(py)?.call_method0("__dlpack_device__")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let values = slf.get().numpy(slf.py())?.str()?;
        Ok(slf.as_super().get().text("MaskedTensor", values.to_str()?))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        let values = slf.get().numpy(slf.py())?.str()?;
        Ok(slf.as_super().get().html("MaskedTensor", values.to_str()?))
    }
}
