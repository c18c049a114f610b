//! Bytes that are on the host until somebody needs them on the device.
//!
//! What a store gives is decoded on the host first, as a rule. Bytes that went to the device at once would come back for
//! that. So they stay where they are, and are copied when they are used as elements there. Until then a part of them is a
//! tensor by itself, which is copied by itself: a write to one does not show in the other.

use crate::python::error::Raise;
use pyo3::prelude::*;
use zarrow_array::SharedTensor;
use zarrow_array::fork::OnceCell;
use zarrow_cuda::{Device, DeviceTensor};

/// Elements of the host that belong to a device.
pub struct Staged {
    device: &'static Device,
    host: SharedTensor,
    arrived: OnceCell<DeviceTensor>,
}

impl Staged {
    /// The elements of `host`, for `device`.
    pub fn new(device: &'static Device, host: SharedTensor) -> Staged {
        Staged { device, host, arrived: OnceCell::new() }
    }

    /// The device that they belong to.
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// The elements as they were given; on the device they may have changed since.
    pub fn given(&self) -> &SharedTensor {
        &self.host
    }

    /// The elements on the host, as long as they are only there.
    pub fn on_host(&self) -> Option<&SharedTensor> {
        self.arrived.get().is_none().then_some(&self.host)
    }

    /// The elements on the device, copied when this is first called.
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
