//! The class `zarrow.gpu.Tensor`: a strided tensor in device memory.
//!
//! This file has the primitives; methods that only combine them are written in Python, in `zarrow.device_tensor.methods`.
//! Code that may wait for the device releases the GIL.

use super::staged::Staged;
use super::{arguments, arrow, dlpack, interface};
use crate::export::{arrow as host_arrow, buffer_protocol, data_type, numpy};
use crate::index::basic;
use crate::layout::tensor::{Tensor, assignments};
use crate::python::error::{Raise, exchange};
use crate::python::importing::import;
use crate::python::keeps_exception::KeepsException;
use crate::python::summary::{nbytes, tuple};
use crate::python::without_gil::WithoutGil;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::c_int;
use std::ptr::null_mut;
use zarrow::visible;
use zarrow_array::{DataType, SharedTensor};
use zarrow_cuda::Device;
use zarrow_cuda::DeviceTensor as Inner;

#[doc = help!("DeviceTensor")]
#[pyclass(frozen, name = "Tensor", module = "zarrow.gpu")]
pub struct DeviceTensor {
    place: KeepsException<WithoutGil<Place>>,
    /// Number of assignments before this object was created.
    assignments: u64,
}

/// Location of the elements.
enum Place {
    Device(Inner),
    /// Still on the host.
    Staged(Staged),
}

/// Message of every refused implicit copy to the host.
pub const TYPE_CPU: &str = "the memory is on a GPU: type .cpu() for a copy on the CPU";

impl DeviceTensor {
    /// Creates the Python object of `tensor`. Nothing is copied.
    pub fn create(py: Python<'_>, tensor: Inner) -> PyResult<Bound<'_, DeviceTensor>> {
        DeviceTensor::at(py, Place::Device(tensor))
    }

    /// Creates a tensor of host elements that are copied to `device` on first use there.
    pub fn staged<'py>(
        py: Python<'py>,
        device: &'static Device,
        host: SharedTensor,
    ) -> PyResult<Bound<'py, DeviceTensor>> {
        DeviceTensor::at(py, Place::Staged(Staged::new(device, host)))
    }

    fn at(py: Python<'_>, place: Place) -> PyResult<Bound<'_, DeviceTensor>> {
        let place = KeepsException::new(WithoutGil::new(place));
        Bound::new(py, DeviceTensor { place, assignments: assignments() })
    }

    /// Returns the tensor on the device.
    pub fn on_device(&self, py: Python<'_>) -> PyResult<&Inner> {
        match &**self.place {
            Place::Device(tensor) => Ok(tensor),
            Place::Staged(staged) => staged.on_device(py),
        }
    }

    /// Returns the elements if they are only on the host.
    fn on_host(&self) -> Option<&SharedTensor> {
        match &**self.place {
            Place::Device(_) => None,
            Place::Staged(staged) => staged.on_host(),
        }
    }

    fn device(&self) -> &'static Device {
        match &**self.place {
            Place::Device(tensor) => tensor.device(),
            Place::Staged(staged) => staged.device(),
        }
    }

    fn extents(&self) -> &[i64] {
        match &**self.place {
            Place::Device(tensor) => tensor.shape(),
            Place::Staged(staged) => staged.given().shape(),
        }
    }

    fn element(&self) -> &DataType {
        match &**self.place {
            Place::Device(tensor) => tensor.dtype(),
            Place::Staged(staged) => staged.given().dtype(),
        }
    }

    fn element_count(&self) -> usize {
        self.extents().iter().product::<i64>().unsigned_abs() as usize
    }

    /// Wraps a view of the elements: elements on the host stay on it.
    fn viewed<'py>(
        &self,
        py: Python<'py>,
        on_host: impl FnOnce(&SharedTensor) -> zarrow_array::Result<SharedTensor>,
        on_device: impl FnOnce(&Inner) -> zarrow_cuda::Result<Inner>,
    ) -> PyResult<Bound<'py, DeviceTensor>> {
        match self.on_host() {
            Some(host) => DeviceTensor::staged(py, self.device(), on_host(host).raise(py)?),
            None => DeviceTensor::create(py, on_device(self.on_device(py)?).raise(py)?),
        }
    }

    /// Runs `work` without the GIL and wraps the new tensor.
    fn made<'py>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&Inner) -> zarrow_cuda::Result<Inner> + Send,
    ) -> PyResult<Bound<'py, DeviceTensor>> {
        DeviceTensor::create(py, self.run(py, work)?)
    }

    /// Runs `work` without the GIL and returns its result.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Inner) -> zarrow_cuda::Result<T> + Send,
    ) -> PyResult<T> {
        let tensor = self.on_device(py)?;
        py.detach(|| work(tensor)).raise(py)
    }
}

/// Returns the error of operations on host memory.
fn refused() -> PyErr {
    PyTypeError::new_err(TYPE_CPU)
}

#[pymethods]
impl DeviceTensor {
    #[doc = help!("DeviceTensor.shape")]
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extents())
    }

    #[doc = help!("DeviceTensor.dtype")]
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::dtype(py, self.element())
    }

    #[doc = help!("DeviceTensor.ndim")]
    #[getter]
    fn ndim(&self) -> usize {
        self.extents().len()
    }

    #[doc = help!("DeviceTensor.size")]
    #[getter]
    fn size(&self) -> usize {
        self.element_count()
    }

    #[doc = help!("DeviceTensor.itemsize")]
    #[getter]
    fn itemsize(&self) -> usize {
        self.element().item_size().unwrap_or(0)
    }

    #[doc = help!("DeviceTensor.nbytes")]
    #[getter]
    fn nbytes(&self) -> usize {
        self.element_count() * self.itemsize()
    }

    #[doc = help!("DeviceTensor.strides")]
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let strides = match &**self.place {
            Place::Device(tensor) => tensor.strides(),
            Place::Staged(staged) => staged.given().strides(),
        };
        let item_size = self.itemsize() as i64;
        PyTuple::new(py, strides.iter().map(|stride| stride * item_size).collect::<Vec<_>>())
    }

    #[doc = help!("DeviceTensor.device")]
    #[getter(device)]
    fn device_name(&self) -> String {
        self.device().to_string()
    }

    #[doc = help!("DeviceTensor.readonly")]
    #[getter]
    fn readonly(&self) -> bool {
        match &**self.place {
            Place::Device(tensor) => tensor.is_read_only(),
            Place::Staged(_) => false,
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.extents().first() {
            Some(extent) => Ok(extent.unsigned_abs() as usize),
            None => Err(PyTypeError::new_err("a 0-d array has no len()")),
        }
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, tensor) = (slf.py(), slf.get());
        let Some(steps) = basic::steps(index, tensor.extents())? else {
            return import(py, "zarrow.device_tensor.indexing")?.call_method1("part", (slf, index));
        };
        Ok(tensor.viewed(py, |host| host.view(&steps), |device| device.view(&steps))?.into_any())
    }

    /// Returns the number of devices.
    #[staticmethod]
    fn _count(py: Python<'_>) -> PyResult<usize> {
        py.detach(Device::count).raise(py)
    }

    /// Waits until a device is idle.
    #[staticmethod]
    #[pyo3(signature = (device = None))]
    fn _synchronize(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let device = arguments::cuda_device(py, device)?;
        py.detach(|| device.settle()).raise(py)
    }

    /// Frees the devices' cached memory.
    #[staticmethod]
    fn _release_memory(py: Python<'_>) -> PyResult<()> {
        py.detach(zarrow_cuda::release_memory).raise(py)
    }

    /// Allocates an uninitialized tensor on a device.
    #[staticmethod]
    #[pyo3(signature = (shape, dtype, device = None, column_major = false))]
    fn _empty<'py>(
        py: Python<'py>,
        shape: Vec<u64>,
        dtype: &Bound<'py, PyAny>,
        device: Option<&Bound<'py, PyAny>>,
        column_major: bool,
    ) -> PyResult<Bound<'py, DeviceTensor>> {
        let (dtype, device) = (data_type::requested(dtype)?, arguments::cuda_device(py, device)?);
        let make = if column_major { Inner::empty_column_major } else { Inner::empty };
        DeviceTensor::create(py, py.detach(|| make(device, &shape, dtype)).raise(py)?)
    }

    /// Creates a device tensor of a host array; it is copied to the device on first use there.
    #[staticmethod]
    #[pyo3(signature = (x, device = None))]
    fn _staged<'py>(
        x: &Bound<'py, PyAny>,
        device: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, DeviceTensor>> {
        let device = arguments::cuda_device(x.py(), device)?;
        DeviceTensor::staged(x.py(), device, crate::import::tensor(x)?)
    }

    /// Returns the host elements, until they are copied to the device.
    fn _on_host<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Tensor>>> {
        self.on_host().map(|host| Tensor::create(py, host.clone())).transpose()
    }

    /// Returns a tensor of the same memory on the device, where slices share memory.
    fn _on_device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, DeviceTensor>> {
        DeviceTensor::create(py, self.on_device(py)?.clone())
    }

    /// Number of assignments before this object was created.
    #[getter]
    fn _assignments(&self) -> u64 {
        self.assignments
    }

    #[getter]
    fn _address(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.on_device(py)?.address())
    }

    /// Returns whether the address ranges of two tensors overlap.
    fn _may_overlap(&self, py: Python<'_>, other: &Bound<'_, DeviceTensor>) -> PyResult<bool> {
        Ok(self.on_device(py)?.may_overlap(other.get().on_device(py)?))
    }

    fn _reshape<'py>(&self, py: Python<'py>, shape: Vec<i64>) -> PyResult<Bound<'py, DeviceTensor>> {
        self.viewed(py, |host| host.reshape(&shape), |device| device.reshape(&shape))
    }

    fn _transpose<'py>(&self, py: Python<'py>, axes: Vec<usize>) -> PyResult<Bound<'py, DeviceTensor>> {
        self.viewed(py, |host| host.transpose(&axes), |device| device.transpose(&axes))
    }

    fn _broadcast_to<'py>(&self, py: Python<'py>, shape: Vec<i64>) -> PyResult<Bound<'py, DeviceTensor>> {
        DeviceTensor::create(py, self.on_device(py)?.broadcast_to(&shape).raise(py)?)
    }

    fn _reinterpret<'py>(
        &self,
        py: Python<'py>,
        dtype: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, DeviceTensor>> {
        let dtype = data_type::requested(dtype)?;
        DeviceTensor::create(py, self.on_device(py)?.reinterpret(dtype).raise(py)?)
    }

    fn _astype<'py>(&self, dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, DeviceTensor>> {
        let wanted = data_type::requested(dtype)?;
        self.made(dtype.py(), |tensor| tensor.astype(&wanted))
    }

    fn _copy<'py>(&self, py: Python<'py>, column_major: bool) -> PyResult<Bound<'py, DeviceTensor>> {
        self.made(py, |tensor| {
            if !column_major {
                return tensor.copy();
            }
            let copy = Inner::empty_column_major(tensor.device(), &tensor.extents(), tensor.dtype().clone())?;
            copy.assign(tensor)?;
            Ok(copy)
        })
    }

    fn _assign(&self, py: Python<'_>, source: &Bound<'_, DeviceTensor>) -> PyResult<()> {
        let source = source.get().on_device(py)?;
        self.run(py, |tensor| tensor.assign(source))
    }

    fn _fill(&self, py: Python<'_>, value: Vec<u8>) -> PyResult<()> {
        self.run(py, |tensor| tensor.fill(&value))
    }

    /// Returns the rows at positions, an int64 array.
    fn _take<'py>(&self, positions: &Bound<'py, PyAny>) -> PyResult<Bound<'py, DeviceTensor>> {
        let py = positions.py();
        let positions = PyBuffer::<i64>::get(positions)?.to_vec(py)?;
        self.made(py, |tensor| tensor.take(&positions))
    }

    /// Sets the rows at positions, an int64 array.
    fn _put(&self, positions: &Bound<'_, PyAny>, rows: &Bound<'_, DeviceTensor>) -> PyResult<()> {
        let py = positions.py();
        let positions = PyBuffer::<i64>::get(positions)?.to_vec(py)?;
        let rows = rows.get().on_device(py)?;
        self.run(py, |tensor| tensor.put(&positions, rows))
    }

    fn _equal<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, DeviceTensor>,
    ) -> PyResult<Bound<'py, DeviceTensor>> {
        let other = other.get().on_device(py)?;
        self.made(py, |tensor| tensor.equal(other))
    }

    fn _all_equal(&self, py: Python<'_>, other: &Bound<'_, DeviceTensor>, equal_nan: bool) -> PyResult<bool> {
        let other = other.get().on_device(py)?;
        self.run(py, |tensor| tensor.all_equal(other, equal_nan))
    }

    fn _all(&self, py: Python<'_>) -> PyResult<bool> {
        self.run(py, Inner::all)
    }

    #[doc = help!("DeviceTensor.cpu")]
    fn cpu<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Tensor>> {
        let host = match self.on_host() {
            // SAFETY: no other API of the crate writes during the call; a program that concurrently writes through
            // another library copies a mixture of old and new bytes, as with NumPy.
            Some(host) => py.detach(|| unsafe { host.copy() }).raise(py)?,
            None => self.run(py, Inner::to_host)?,
        };
        Tensor::create(py, host)
    }

    #[doc = help!("DeviceTensor.numpy")]
    fn numpy(&self) -> PyResult<()> {
        Err(refused())
    }

    #[doc = help!("DeviceTensor.__array__")]
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(&self, dtype: Option<Bound<'_, PyAny>>, copy: Option<bool>) -> PyResult<()> {
        let _ = (dtype, copy);
        Err(refused())
    }

    #[doc = help!("DeviceTensor.__dlpack__")]
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_versioned = max_version.is_some_and(|(major, _)| major >= 1);
        dlpack::capsule(py, self.on_device(py)?, stream.as_ref(), is_versioned, dl_device, copy)
    }

    #[doc = help!("DeviceTensor.__dlpack_device__")]
    fn __dlpack_device__(&self) -> (i32, i32) {
        let device = self.device().dlpack();
        (device.device_type, device.device_id)
    }

    #[doc = help!("DeviceTensor.__cuda_array_interface__")]
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        interface::describe(py, self.on_device(py)?)
    }

    #[doc = help!("DeviceTensor.__arrow_c_device_array__")]
    #[pyo3(signature = (requested_schema = None, **options))]
    fn __arrow_c_device_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<host_arrow::Capsules<'py>> {
        // `requested_schema` is only a preference; options of later versions must be None.
        host_arrow::requested(requested_schema.as_ref())?;
        if let Some(options) = options
            && let Some((name, _)) = options.iter().find(|(_, value)| !value.is_none())
        {
            return Err(exchange(py, "arrow", format!("{name}= is not supported: expected None")));
        }
        arrow::capsules(py, self.on_device(py)?)
    }

    #[doc = help!("DeviceTensor.__reduce_ex__")]
    fn __reduce_ex__(&self, protocol: i64) -> PyResult<()> {
        let _ = protocol;
        Err(PyTypeError::new_err(
            "cannot pickle a tensor on a GPU: pickle tensor.cpu(), or read in the process that needs it",
        ))
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let owner = slf.clone().into_any();
        match slf.get().on_host() {
            // SAFETY: Python passes a view to fill, and `owner` is the object that holds the memory: a staged
            // tensor keeps its host elements.
            Some(host) => unsafe { buffer_protocol::fill(owner, host, view, flags) },
            None => {
                // SAFETY: as above; a refused view has no owner.
                unsafe { (*view).obj = null_mut() };
                Err(refused())
            }
        }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view that `__getbuffer__` filled once.
        unsafe { buffer_protocol::release(view) }
    }

    fn __repr__(&self) -> String {
        let extents: Vec<u64> = self.extents().iter().map(|extent| extent.unsigned_abs()).collect();
        let (shape, dtype, bytes) =
            (tuple(&extents), self.element().to_string(), nbytes(self.nbytes() as u64));
        format!("<zarrow.gpu.Tensor {shape} {} on {}, {bytes}>", visible(&dtype), self.device())
    }
}
