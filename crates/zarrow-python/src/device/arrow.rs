//! The method `__arrow_c_device_array__`: a tensor on a device as an Arrow array there.
//!
//! 1. Elements are handed over at their address: numbers, bools of a byte each, and rows as `arrow.fixed_shape_tensor`.
//! 2. The struct has an event, which our stream reaches when the elements are there: the consumer waits for it. The call
//!    does not wait.
//! 3. The event stays until the array is released: it and the memory have one owner, of which each node holds a share.
//!
//! Source: Arrow C device data interface, "Synchronization".

use crate::export::arrow::Capsules;
use crate::export::capsule;
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

/// The name of a capsule that holds an [`ArrowDeviceArray`].
pub const NAME: &CStr = c"arrow_device_array";

/// `struct ArrowDeviceArray`.
#[repr(C)]
pub struct ArrowDeviceArray {
    /// The array, whose buffers are on the device.
    pub array: ArrowArray,
    /// The number of the device.
    pub device_id: i64,
    /// Which kind it is, as DLPack numbers them.
    pub device_type: i32,
    /// Points to a `CUevent` after which the buffers are filled; NULL where they are.
    pub sync_event: *mut c_void,
    reserved: [i64; 3],
}

const _: () = assert!(size_of::<ArrowDeviceArray>() == 128);

// SAFETY: the array may be sent; the event is one that any thread may wait for.
unsafe impl Send for ArrowDeviceArray {}

/// What the array keeps until it is released (step 3).
struct Lent {
    _tensor: DeviceTensor,
    event: Event,
}

/// Type and memory, in a capsule each.
pub fn capsules<'py>(py: Python<'py>, tensor: &DeviceTensor) -> PyResult<Capsules<'py>> {
    capsule::check_axes(py, tensor.shape().len())?;
    if !tensor.is_c_contiguous() {
        let message = "Arrow takes elements that lie side by side: call .copy() first";
        return Err(exchange(py, "needs_copy", message));
    }
    // What has an Arrow type by another memory than its own is for the CPU.
    let number = tensor.dtype().as_number().filter(|number| number.part().is_none());
    if number.is_none() {
        let unknown = Error::NoSuchType { protocol: "Arrow on a device", dtype: tensor.dtype().clone() };
        return Err(unknown).raise(py);
    }
    let form = ArrowForm::default();
    let field =
        ArrowField { dtype: tensor.dtype(), shape: tensor.shape(), order: None, dimension_names: None, form };
    let schema = field.schema().raise(py)?.into_c();
    // A consumer does not say in which stream it uses the memory.
    tensor.lend_unordered();
    let event = py.detach(|| Event::record(tensor.device(), tensor.device().stream())).raise(py)?;
    let lent = Arc::new(Lent { _tensor: tensor.clone(), event });
    let array = ArrowDeviceArray {
        sync_event: lent.event.as_ptr().cast_mut(),
        array: memory(tensor, &lent).into_c(),
        device_id: i64::from(tensor.device().dlpack().device_id),
        device_type: DLDeviceType::CUDA,
        reserved: [0; 3],
    };
    let schema = capsule::arrow_schema(py, schema)?;
    Ok((schema, PyCapsule::new_with_value(py, KeepsException::new(array), NAME)?))
}

fn memory(tensor: &DeviceTensor, lent: &Arc<Lent>) -> ArrayNode {
    let data: *const c_void = with_exposed_provenance(tensor.address() as usize);
    let elements = ArrayNode {
        length: tensor.size() as i64,
        buffers: vec![null(), data],
        owners: vec![Owner::new(lent.clone())],
        ..ArrayNode::default()
    };
    match tensor.shape() {
        [rows, _, ..] => ArrayNode {
            length: *rows,
            buffers: vec![null()],
            owners: vec![Owner::new(lent.clone())],
            children: vec![elements],
            ..ArrayNode::default()
        },
        _ => elements,
    }
}
