//! Import of Arrow arrays on a device, from objects with `__arrow_c_device_array__`, without a copy.
//!
//! 1. The object exports its array. An array with host buffers is imported by the host import.
//! 2. Type and array are moved out of their capsules; from then on we must release the array.
//! 3. Our stream waits for the event of the struct, if there is one.
//! 4. The elements become a tensor, read-only like all Arrow data. It releases the array when dropped.
//!
//! Source: Arrow C device data interface; Arrow PyCapsule interface.

use super::arrow::{ArrowDeviceArray, NAME};
use crate::python::error::{Raise, exchange};
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use zarrow_array::export::arrow_abi::{ArrowArray, ArrowSchema};
use zarrow_array::import::arrow;
use zarrow_cuda::import::Interface;
use zarrow_cuda::{Device, DeviceTensor};
use zarrow_dlpack::DLDeviceType;

const SCHEMA: &CStr = c"arrow_schema";

/// The two capsules of an array on a CUDA device.
pub struct Capsules<'py> {
    schema: Bound<'py, PyCapsule>,
    array: Bound<'py, PyCapsule>,
}

/// Step 1; `None` if the object has no such method, or if the buffers are on the host.
pub fn on_cuda<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Capsules<'py>>> {
    let Some(method) = object.getattr_opt("__arrow_c_device_array__")? else { return Ok(None) };
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = method.call0()?.extract()?;
    let capsule = |object: Bound<'py, PyAny>, name: &'static CStr| {
        let capsule = object.cast_into::<PyCapsule>().ok();
        capsule.filter(|capsule| capsule.is_valid_checked(Some(name))).ok_or_else(|| wrong(method.py(), name))
    };
    let capsules = Capsules { schema: capsule(schema, SCHEMA)?, array: capsule(array, NAME)? };
    // SAFETY: a capsule of this name holds such a struct; only a number is read.
    let kind = unsafe { (*capsules.place()?).device_type };
    let is_cuda = kind == DLDeviceType::CUDA || kind == DLDeviceType::CUDA_MANAGED;
    Ok(is_cuda.then_some(capsules))
}

fn wrong(py: Python<'_>, name: &CStr) -> PyErr {
    let name = name.to_string_lossy();
    exchange(py, "arrow", format!("expected an unconsumed capsule named {name:?}"))
}

impl Capsules<'_> {
    fn place(&self) -> PyResult<*mut ArrowDeviceArray> {
        let place: NonNull<ArrowDeviceArray> = self.array.pointer_checked(Some(NAME))?.cast();
        Ok(place.as_ptr())
    }

    /// Steps 2 to 4.
    pub fn tensor(self) -> PyResult<DeviceTensor> {
        let py = self.array.py();
        let (schema, array) = self.taken()?;
        let elements = arrow::device_elements(&schema, array.array).raise(py)?;
        let ordinal = usize::try_from(array.device_id).unwrap_or(usize::MAX);
        let device = py.detach(|| Device::get(ordinal)).raise(py)?;
        if let Some(event) = NonNull::new(array.sync_event.cast::<*mut c_void>()) {
            // SAFETY: the producer keeps the event, and the pointer to it, until the array is released.
            unsafe { device.wait_for(event.read()) }.raise(py)?;
        }
        let described = Interface {
            protocol: "the Arrow array",
            device: Some(ordinal),
            address: elements.address,
            shape: elements.shape,
            strides: None,
            dtype: elements.dtype,
            read_only: true,
        };
        // SAFETY: the producer keeps the elements until the owner releases the array on drop; our stream waits for
        // the work on them.
        let tensor = unsafe { described.tensor(Box::new(elements.owner)) }.raise(py)?;
        match elements.permutation {
            Some(axes) => tensor.transpose(&axes).raise(py),
            None => Ok(tensor),
        }
    }

    /// Step 2.
    fn taken(&self) -> PyResult<(ArrowSchema, Taken)> {
        let py = self.array.py();
        let schema: NonNull<ArrowSchema> = self.schema.pointer_checked(Some(SCHEMA))?.cast();
        // SAFETY: a capsule of this name holds such a struct, and other threads take it in such a critical section
        // too.
        let schema = with_critical_section(&self.schema, || unsafe { arrow::take_schema(schema.as_ptr()) });
        let schema = schema.ok_or_else(|| wrong(py, SCHEMA))?;
        let place = self.place()?;
        // SAFETY: as above; the numbers beside the array are not changed.
        let taken = with_critical_section(&self.array, || unsafe {
            let (device_id, sync_event) = ((*place).device_id, (*place).sync_event);
            arrow::take_array(&raw mut (*place).array).map(|array| Taken { array, device_id, sync_event })
        });
        Ok((schema, taken.ok_or_else(|| wrong(py, NAME))?))
    }
}

/// An array that we must release, with its device and event.
struct Taken {
    array: ArrowArray,
    device_id: i64,
    sync_event: *mut c_void,
}
