//! The method `__arrow_c_device_array__`: export of a device tensor as an Arrow array on the device.
//!
//! 1. Elements are exported at their address: numbers, 1-byte bools, and rows as `arrow.fixed_shape_tensor`.
//! 2. The struct has an event, recorded in our stream once the elements are ready: the consumer waits for it, not
//!    this call.
//! 3. The event lives until the array is released: it and the memory have one owner, shared by all nodes.
//!
//! Source: Arrow C device data interface, "Synchronization".

use crate::export::arrow::Capsules;
use crate::python::capsule;
use crate::python::error::{Raise, exchange};
use crate::python::keeps_exception::KeepsException;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_void};
use std::ptr::{null, with_exposed_provenance};
use std::sync::Arc;
use zarrow_array::Error;
use zarrow_array::export::arrow::{ArrowField, ArrowForm};
use zarrow_array::export::arrow_abi::{ArrayNode, ArrowArray, Owner};
use zarrow_cuda::{DeviceTensor, Event};
use zarrow_dlpack::DLDeviceType;

/// Name of a capsule with an [`ArrowDeviceArray`].
pub const NAME: &CStr = c"arrow_device_array";

/// `struct ArrowDeviceArray`.
#[repr(C)]
pub struct ArrowDeviceArray {
    /// The array; its buffers are on the device.
    pub array: ArrowArray,
    /// Index of the device.
    pub device_id: i64,
    /// Kind of the device, as in DLPack.
    pub device_type: i32,
    /// Points to a `CUevent` that completes once the buffers are filled; NULL if they are filled already.
    pub sync_event: *mut c_void,
    reserved: [i64; 3],
}

const _: () = assert!(size_of::<ArrowDeviceArray>() == 128);

// SAFETY: the array is `Send`, and any thread may wait for the event.
unsafe impl Send for ArrowDeviceArray {}

/// Data kept until the array is released (step 3).
struct PrivateData {
    _tensor: DeviceTensor,
    event: Event,
}

/// Returns the type and the memory in two capsules.
pub fn capsules<'py>(py: Python<'py>, tensor: &DeviceTensor) -> PyResult<Capsules<'py>> {
    capsule::check_axes(py, tensor.shape().len())?;
    if !tensor.is_c_contiguous() {
        let message = "Arrow needs contiguous elements: call .copy() first";
        return Err(exchange(py, "needs_copy", message));
    }
    // Types with an Arrow form in other memory can only be exported from the CPU.
    let number = tensor.dtype().as_number().filter(|number| number.part().is_none());
    if number.is_none() {
        let unknown = Error::NoSuchType { protocol: "Arrow on a device", dtype: tensor.dtype().clone() };
        return Err(unknown).raise(py);
    }
    let form = ArrowForm::default();
    let field =
        ArrowField { dtype: tensor.dtype(), shape: tensor.shape(), order: None, dimension_names: None, form };
    let schema = field.schema().raise(py)?.into_c();
    // Consumers do not name the stream that uses the memory.
    tensor.lend_unordered();
    let event = py.detach(|| Event::record(tensor.device(), tensor.device().stream())).raise(py)?;
    let borrowed = Arc::new(PrivateData { _tensor: tensor.clone(), event });
    let array = ArrowDeviceArray {
        sync_event: borrowed.event.as_ptr().cast_mut(),
        array: memory(tensor, &borrowed).into_c(),
        device_id: i64::from(tensor.device().dlpack().device_id),
        device_type: DLDeviceType::CUDA,
        reserved: [0; 3],
    };
    let schema = capsule::arrow_schema(py, schema)?;
    Ok((schema, PyCapsule::new_with_value(py, KeepsException::new(array), NAME)?))
}

fn memory(tensor: &DeviceTensor, borrowed: &Arc<PrivateData>) -> ArrayNode {
    let data: *const c_void = with_exposed_provenance(tensor.address() as usize);
    let elements = ArrayNode {
        length: tensor.size() as i64,
        buffers: vec![null(), data],
        owners: vec![Owner::new(borrowed.clone())],
        ..ArrayNode::default()
    };
    match tensor.shape() {
        [rows, _, ..] => ArrayNode {
            length: *rows,
            buffers: vec![null()],
            owners: vec![Owner::new(borrowed.clone())],
            children: vec![elements],
            ..ArrayNode::default()
        },
        _ => elements,
    }
}
