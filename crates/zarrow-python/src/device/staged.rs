//! Host bytes that are copied to the device on first use there.
//!
//! Bytes from a store are usually decoded on the host first. If they went to the device at once, they would have to
//! come back for that. So they stay on the host until they are used as elements on the device. Until then, a slice
//! is a separate tensor with a separate copy: writes to one are not visible in the other.

use crate::python::error::Raise;
use pyo3::prelude::*;
use zarrow_array::SharedTensor;
use zarrow_array::fork::OnceCell;
use zarrow_cuda::{Device, DeviceTensor};

/// Host elements that belong to a device.
pub struct Staged {
    device: &'static Device,
    host: SharedTensor,
    arrived: OnceCell<DeviceTensor>,
}

impl Staged {
    /// Stages the elements of `host` for `device`.
    pub fn new(device: &'static Device, host: SharedTensor) -> Staged {
        Staged { device, host, arrived: OnceCell::new() }
    }

    /// Returns the device of the elements.
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Returns the original elements; they may have changed on the device since.
    pub fn given(&self) -> &SharedTensor {
        &self.host
    }

    /// Returns the host elements, until they are copied to the device.
    pub fn on_host(&self) -> Option<&SharedTensor> {
        self.arrived.get().is_none().then_some(&self.host)
    }

    /// Returns the device elements, copying them at the first call.
    pub fn on_device(&self, py: Python<'_>) -> PyResult<&DeviceTensor> {
        match self.arrived.get() {
            Some(tensor) => Ok(tensor),
            None => {
                let tensor = py.detach(|| DeviceTensor::from_host(self.device, &self.host)).raise(py)?;
                Ok(self.arrived.set(tensor))
            }
        }
    }
}
