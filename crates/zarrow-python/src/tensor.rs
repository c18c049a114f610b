//! The class `Tensor`: one strided buffer of fixed-size elements, and every protocol that hands it on.

use crate::decoded_array::DecodedArray;
use crate::error::{Attempt, Raise};
use crate::{array_interface, buffer_protocol, consumer, exchange_api, numpy, selection};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_int;
use zarrow_array::SharedTensor;
use zarrow_array::shape::Axes;
use zarrow_dlpack::DLDevice;

/// A strided array of fixed-size elements in one buffer, shared with every library that asks for it.
#[pyclass(frozen, extends = DecodedArray, module = "zarrow")]
pub struct Tensor {
    shared: SharedTensor,
}

impl Tensor {
    /// The Python object over `shared`. Nothing is copied.
    pub fn create(py: Python<'_>, shared: SharedTensor) -> PyResult<Bound<'_, Tensor>> {
        let shape: Axes<u64> = shared.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        let base = DecodedArray::new(shape, shared.dtype(), shared.nbytes());
        Bound::new(py, (Tensor { shared }, base))
    }

    /// The memory.
    pub fn shared(&self) -> &SharedTensor {
        &self.shared
    }

    /// A contiguous copy in memory of its own, made without the GIL.
    pub fn copied(&self, py: Python<'_>) -> PyResult<SharedTensor> {
        // SAFETY: no face of the crate writes during the call; a program that writes through another library
        // meanwhile copies a mixture of old and new bytes, as with NumPy.
        py.detach(|| unsafe { self.shared.copy() }).raise(py)
    }
}

/// The integers of `f(*axes)` and `f(axes)`.
fn axes(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    if arguments.len() == 1
        && let Some(sequence) = arguments.get_item(0)?.extract::<Vec<i64>>().attempt(arguments.py())?
    {
        return Ok(sequence);
    }
    arguments.extract()
}

#[pymethods]
impl Tensor {
    /// The bytes from one element to the next, along each axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let item_size = self.shared.item_size() as i64;
        PyTuple::new(py, self.shared.strides().iter().map(|stride| stride * item_size).collect::<Vec<_>>())
    }

    /// Whether no face of the memory may write to it.
    #[getter]
    fn readonly(&self) -> bool {
        self.shared.is_read_only()
    }

    /// Whether the memory is a map of the store's files, and was not read from them.
    #[getter]
    fn is_mapped(&self) -> bool {
        self.shared.is_mapped()
    }

    /// The bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.shared.item_size()
    }

    /// Give the one element as a Python object.
    fn item<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().shared.size() {
            1 => numpy::view(slf)?.call_method0("item"),
            size => {
                Err(PyValueError::new_err(format!("only a tensor of one element has an item, not of {size}")))
            }
        }
    }

    fn __float__(slf: &Bound<'_, Self>) -> PyResult<f64> {
        Self::item(slf)?.extract()
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("builtins")?.call_method1("int", (Self::item(slf)?,))
    }

    /// Format the one element, as in `f"{tensor:.2f}"`; without a specification, all as `str` does.
    fn __format__<'py>(slf: &Bound<'py, Self>, specification: &str) -> PyResult<Bound<'py, PyAny>> {
        match specification {
            "" => Ok(slf.str()?.into_any()),
            of_number => slf.py().import("builtins")?.call_method1("format", (Self::item(slf)?, of_number)),
        }
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Self::item(slf)?.is_truthy()
    }

    fn __contains__(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        // Python would compare the rows, which are equal to nothing.
        numpy::view(slf)?.contains(value)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, shared) = (index.py(), &slf.get().shared);
        match selection::steps(index, shared.shape())? {
            Some(steps) => Ok(Tensor::create(py, shared.view(&steps).raise(py)?)?.into_any()),
            None => selection::part_of(slf, index),
        }
    }

    /// Give the same memory another shape; one extent may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape<'py>(&self, shape: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Tensor>> {
        let py = shape.py();
        let mut extents = axes(shape)?;
        if let Some(open) = extents.iter().position(|extent| *extent == -1) {
            extents[open] = 1;
            let known = extents.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent));
            let known = known.filter(|known| *known > 0 && self.shared.size() as i64 % known == 0);
            extents[open] = known.map_or(-1, |known| self.shared.size() as i64 / known);
        }
        Tensor::create(py, self.shared.reshape(&extents).raise(py)?)
    }

    /// Give the same memory with its axes in another order: reversed, where none is given.
    #[pyo3(signature = (*axes))]
    fn transpose<'py>(&self, axes: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Tensor>> {
        let py = axes.py();
        let ndim = self.shared.shape().len();
        let order = match self::axes(axes)? {
            order if order.is_empty() => (0..ndim).rev().collect(),
            // An axis that wraps to none is none of the tensor's, which `transpose` says.
            order => order
                .iter()
                .map(|axis| if *axis < 0 { axis + ndim as i64 } else { *axis } as usize)
                .collect::<Vec<_>>(),
        };
        Tensor::create(py, self.shared.transpose(&order).raise(py)?)
    }

    /// The same memory with its axes reversed.
    #[getter(T)]
    fn reversed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        self.transpose(&PyTuple::empty(py))
    }

    /// Make a contiguous, writable copy in memory of its own.
    pub fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.copied(py)?)
    }

    /// Give a numpy.ndarray of the same memory.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        numpy::view(slf)
    }

    /// Give a torch.Tensor of the same memory.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        consumer::torch(slf)
    }

    /// Give a jax.Array of the same memory, which JAX takes to be immutable.
    fn jax<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        consumer::jax(slf)
    }

    /// NumPy's protocol: a view, or a copy where dtype or copy ask for one.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        numpy::as_asked(numpy::view(slf)?, dtype, copy)
    }

    /// NumPy's array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        array_interface::describe(py, &self.shared)
    }

    /// DLPack: the C functions of this class, in a capsule.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        exchange_api::capsule(py)
    }

    /// DLPack: the device as (type, number); (1, 0) is the CPU.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (DLDevice::CPU.device_type, DLDevice::CPU.device_id)
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let owner = slf.clone().into_any();
        // SAFETY: Python gives a view to be filled, and `owner` is the object that holds the memory.
        unsafe { buffer_protocol::fill(owner, &slf.get().shared, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view that `__getbuffer__` filled once.
        unsafe { buffer_protocol::release(view) }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().text("Tensor", numpy::view(slf)?.str()?.to_str()?))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().html("Tensor", numpy::view(slf)?.str()?.to_str()?))
    }
}
