//! The method `__arrow_c_device_array__`: a tensor on a device as an Arrow array there.
//!
//! Elements are handed over at their address: numbers, bools of a byte each, and rows as `arrow.fixed_shape_tensor`. The
//! call waits for the device, so that there is no event to wait for.
//!
//! Source: Arrow C device data interface.

use crate::export::arrow::Capsules;
use crate::export::capsule;
use crate::python::error::{Raise, exchange};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::c_void;
use std::ptr::{null, null_mut, with_exposed_provenance};
use std::sync::Arc;
use zarrow_array::Error;
use zarrow_array::export::arrow::{ArrowField, ArrowForm};
use zarrow_array::export::arrow_abi::{ArrayNode, ArrowArray, Owner};
use zarrow_cuda::DeviceTensor;

/// `ARROW_DEVICE_CUDA`.
const ARROW_DEVICE_CUDA: i32 = 2;

/// `struct ArrowDeviceArray`.
#[repr(C)]
struct ArrowDeviceArray {
    array: ArrowArray,
    device_id: i64,
    device_type: i32,
    sync_event: *mut c_void,
    reserved: [i64; 3],
}

const _: () = assert!(size_of::<ArrowDeviceArray>() == 128);

// SAFETY: the array may be sent, and there is no event.
unsafe impl Send for ArrowDeviceArray {}

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
    py.detach(|| tensor.device().synchronize()).raise(py)?;
    let array = ArrowDeviceArray {
        array: memory(tensor).into_c(),
        device_id: i64::from(tensor.device().dlpack().device_id),
        device_type: ARROW_DEVICE_CUDA,
        sync_event: null_mut(),
        reserved: [0; 3],
    };
    let schema = capsule::arrow_schema(py, schema)?;
    Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_device_array")?))
}

fn memory(tensor: &DeviceTensor) -> ArrayNode {
    let data: *const c_void = with_exposed_provenance(tensor.address() as usize);
    let elements = ArrayNode {
        length: tensor.size() as i64,
        buffers: vec![null(), data],
        owners: vec![Owner::new(Arc::new(tensor.clone()))],
        ..ArrayNode::default()
    };
    match tensor.shape() {
        [rows, _, ..] => ArrayNode {
            length: *rows,
            buffers: vec![null()],
            children: vec![elements],
            ..ArrayNode::default()
        },
        _ => elements,
    }
}
