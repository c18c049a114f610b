//! What `zarrow.gpu` is made of besides its class.

use super::tensor::{self, DeviceTensor};
use super::{arguments, import};
use crate::python::error::Raise;
use pyo3::prelude::*;
use zarrow_cuda::Device;

/// How many devices there are.
#[pyfunction]
pub fn _device_count(py: Python<'_>) -> PyResult<usize> {
    py.detach(Device::count).raise(py)
}

/// Waits until a device is done.
#[pyfunction]
#[pyo3(signature = (device = None))]
pub fn _synchronize(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let device = arguments::cuda_device(py, device)?;
    py.detach(|| device.synchronize()).raise(py)
}

/// Gives back what devices keep for later.
#[pyfunction]
pub fn _release_devices(py: Python<'_>) -> PyResult<()> {
    py.detach(zarrow_cuda::release_memory).raise(py)
}

/// A tensor in new memory.
#[pyfunction]
#[pyo3(signature = (shape, dtype, device = None, column_major = false))]
pub fn _empty_on_device<'py>(
    py: Python<'py>,
    shape: Vec<u64>,
    dtype: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    column_major: bool,
) -> PyResult<Bound<'py, DeviceTensor>> {
    tensor::empty(py, shape, dtype, device, column_major)
}

/// Any array as a tensor on a device.
#[pyfunction]
#[pyo3(signature = (x, device = None))]
pub fn _to_device<'py>(
    x: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, DeviceTensor>> {
    import::on_device(x, device)
}

/// An array of the host as a tensor of a device, to which it is copied when that is needed.
#[pyfunction]
#[pyo3(signature = (x, device = None))]
pub fn _stage_for_device<'py>(
    x: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, DeviceTensor>> {
    let py = x.py();
    let host = crate::import::tensor(x)?;
    DeviceTensor::staged(py, arguments::cuda_device(py, device)?, host)
}
