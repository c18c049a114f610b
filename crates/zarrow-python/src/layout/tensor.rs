//! The class `Tensor`: one strided buffer of fixed-size elements, and all of its export protocols.

use crate::export::{array_interface, buffer_protocol, exchange_api, jax, numpy, torch};
use crate::index::basic;
use crate::layout::decoded_array::DecodedArray;
use crate::layout::shown;
use crate::python::error::{Attempt, Raise};
use crate::python::keeps_exception::KeepsException;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::SharedTensor;
use zarrow_array::shape::Axes;

#[doc = help!("Tensor")]
#[pyclass(frozen, extends = DecodedArray, module = "zarrow")]
pub struct Tensor {
    shared: KeepsException<SharedTensor>,
    /// Number of assignments before this object was created.
    assignments: u64,
}

/// Assignments that gave part of a tensor to another part, which `zarrow.arrays.swaps` uses to recognize older views.
static ASSIGNMENTS: AtomicU64 = AtomicU64::new(0);

/// Counts an assignment of part of a tensor to another part. Tensors made before have a smaller number.
#[pyfunction]
pub fn _count_assignment() -> u64 {
    ASSIGNMENTS.fetch_add(1, Ordering::Relaxed) + 1
}

/// Returns the number of assignments so far.
pub fn assignments() -> u64 {
    ASSIGNMENTS.load(Ordering::Relaxed)
}

impl Tensor {
    /// Creates the Python object of `shared`. Nothing is copied.
    pub fn create(py: Python<'_>, shared: SharedTensor) -> PyResult<Bound<'_, Tensor>> {
        let shape: Axes<u64> = shared.shape().iter().map(|extent| extent.unsigned_abs()).collect();
        let base = DecodedArray::new(shape, shared.dtype(), shared.nbytes());
        Bound::new(py, (Tensor { shared: KeepsException::new(shared), assignments: assignments() }, base))
    }

    /// Returns the memory.
    pub fn shared(&self) -> &SharedTensor {
        &self.shared
    }

    /// Copies the elements to new contiguous memory, without the GIL.
    pub fn copied(&self, py: Python<'_>) -> PyResult<SharedTensor> {
        // SAFETY: no other API of the crate writes during the call; a program that concurrently writes through
        // another library copies a mixture of old and new bytes, as with NumPy.
        py.detach(|| unsafe { self.shared.copy() }).raise(py)
    }
}

/// Returns the integers passed as `f(*axes)` or `f(axes)`.
fn axes(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    if arguments.len() == 1
        && let Some(sequence) = arguments.get_item(0)?.extract::<Vec<i64>>().attempt(arguments.py())?
    {
        return Ok(sequence);
    }
    arguments.extract()
}

/// Returns the only element as a Python object.
fn only_item<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    match tensor.get().shared.size() {
        1 => shown::values(tensor.as_super())?.call_method0("item"),
        size => {
            let message = format!(
                "a tensor of {size} elements is not a single value: use .item(0) for one element, .tolist() for \
                 all, or .any() and .all() to test them"
            );
            Err(PyValueError::new_err(message))
        }
    }
}

#[pymethods]
impl Tensor {
    #[doc = help!("Tensor.strides")]
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let item_size = self.shared.item_size() as i64;
        PyTuple::new(py, self.shared.strides().iter().map(|stride| stride * item_size).collect::<Vec<_>>())
    }

    #[doc = help!("Tensor.readonly")]
    #[getter]
    fn readonly(&self) -> bool {
        self.shared.is_read_only()
    }

    #[doc = help!("Tensor.is_mapped")]
    #[getter]
    fn is_mapped(&self) -> bool {
        self.shared.is_mapped()
    }

    #[doc = help!("Tensor.itemsize")]
    #[getter]
    fn itemsize(&self) -> usize {
        self.shared.item_size()
    }

    /// Number of assignments before this object was created.
    #[getter]
    fn _assignments(&self) -> u64 {
        self.assignments
    }

    #[doc = help!("Tensor.item")]
    #[pyo3(signature = (*index))]
    fn item<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        if !index.is_empty() {
            return shown::values(slf.as_super())?.getattr("item")?.call1(index);
        }
        only_item(slf)
    }

    fn __float__(slf: &Bound<'_, Self>) -> PyResult<f64> {
        only_item(slf)?.extract()
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("builtins")?.call_method1("int", (only_item(slf)?,))
    }

    #[doc = help!("Tensor.__format__")]
    fn __format__<'py>(slf: &Bound<'py, Self>, specification: &str) -> PyResult<Bound<'py, PyAny>> {
        match specification {
            "" => Ok(slf.str()?.into_any()),
            of_number => slf.py().import("builtins")?.call_method1("format", (only_item(slf)?, of_number)),
        }
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        only_item(slf)?.is_truthy()
    }

    fn __contains__(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        // Python would compare rows, which are never equal to a scalar.
        numpy::view(slf)?.contains(value)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, shared) = (index.py(), &slf.get().shared);
        match basic::steps(index, shared.shape())? {
            Some(steps) => Ok(Tensor::create(py, shared.view(&steps).raise(py)?)?.into_any()),
            None => basic::part_of(slf, index),
        }
    }

    #[doc = help!("Tensor.reshape")]
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

    #[doc = help!("Tensor.transpose")]
    #[pyo3(signature = (*axes))]
    fn transpose<'py>(&self, axes: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Tensor>> {
        let py = axes.py();
        let ndim = self.shared.shape().len();
        let order = match self::axes(axes)? {
            order if order.is_empty() => (0..ndim).rev().collect(),
            // An axis out of range stays invalid, so that `transpose` reports it.
            order => order
                .iter()
                .map(|axis| if *axis < 0 { axis + ndim as i64 } else { *axis } as usize)
                .collect::<Vec<_>>(),
        };
        Tensor::create(py, self.shared.transpose(&order).raise(py)?)
    }

    #[doc = help!("Tensor.T")]
    #[getter(T)]
    fn reversed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        self.transpose(&PyTuple::empty(py))
    }

    #[doc = help!("Tensor.copy")]
    pub fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        Tensor::create(py, self.copied(py)?)
    }

    #[doc = help!("Tensor.numpy")]
    #[pyo3(signature = (*, dtype = None))]
    fn numpy<'py>(slf: &Bound<'py, Self>, dtype: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        numpy::as_asked(numpy::view(slf)?, dtype, None)
    }

    #[doc = help!("Tensor.torch")]
    #[pyo3(signature = (*, device = None, dtype = None))]
    fn torch<'py>(
        slf: &Bound<'py, Self>,
        device: Option<Bound<'py, PyAny>>,
        dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        torch::moved(torch::shared(slf, slf.get().shared())?, device, dtype)
    }

    #[doc = help!("Tensor.jax")]
    #[pyo3(signature = (*, device = None, dtype = None))]
    fn jax<'py>(
        slf: &Bound<'py, Self>,
        device: Option<Bound<'py, PyAny>>,
        dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = match dtype {
            None => jax::shared(slf, slf.get().shared())?,
            Some(dtype) => jax::copied(numpy::as_asked(numpy::view(slf)?, Some(dtype), None)?)?,
        };
        jax::moved(array, device)
    }

    #[doc = help!("Tensor.__array__")]
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        numpy::as_asked(numpy::view(slf)?, dtype, copy)
    }

    #[doc = help!("Tensor.__array_interface__")]
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        array_interface::describe(py, &self.shared)
    }

    /// The DLPack C functions of this class, in a capsule.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        exchange_api::capsule(py)
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let owner = slf.clone().into_any();
        // SAFETY: Python passes a view to fill, and `owner` is the object that holds the memory.
        unsafe { buffer_protocol::fill(owner, &slf.get().shared, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view that `__getbuffer__` filled once.
        unsafe { buffer_protocol::release(view) }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().text("Tensor", &shown::text(slf.as_super())?))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(slf.as_super().get().html("Tensor", &shown::text(slf.as_super())?))
    }
}
