//! Our DLPack C exchange API: libraries that call C functions take tensors without calling Python.
//!
//! 1. The class `Tensor` has the table in a capsule, as `__dlpack_c_exchange_api__`. The class is final: instances
//!    are our tensors, and other objects are refused.
//! 2. A tensor is exported with its owner, or described for the duration of a call. A description needs no
//!    allocation, since the tensor stores shape and strides in DLPack's form.
//! 3. A description cannot mark memory as read-only. Such memory is exported, but never described.
//!
//! Source: the DLPack 1.3 header, `DLPackExchangeAPI`.

use crate::export::exchange_table::NAME;
use crate::layout::tensor::Tensor;
use crate::python::c_entry;
use crate::python::error::{Raise, exchange};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CString, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr::{NonNull, null, null_mut};
use zarrow_array::export::dlpack;
use zarrow_array::import;
use zarrow_dlpack::{
    DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLPackSetError, DLPackVersion,
    DLTensor, Foreign, Owned,
};

static TABLE: DLPackExchangeAPI = DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader { version: DLPackVersion::LATEST, prev_api: null() },
    managed_tensor_allocator: Some(allocate),
    managed_tensor_from_py_object_no_sync: Some(lend),
    managed_tensor_to_py_object_no_sync: Some(take),
    dltensor_from_py_object_no_sync: Some(describe),
    current_work_stream: Some(work_stream),
};

/// Returns the table in its capsule.
pub fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; the table lives as long as the process, and is never written to.
    unsafe {
        let table = (&raw const TABLE).cast_mut().cast();
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(table, NAME.as_ptr(), None))
    }
}

/// Converts to the return value of the C functions.
fn status(done: Option<()>) -> c_int {
    if done.is_some() { 0 } else { -1 }
}

/// Casts `object` to a tensor.
///
/// # Safety
/// `object` must be null or live for `'a`.
unsafe fn tensor<'a>(py: Python<'a>, object: *mut c_void) -> PyResult<Borrowed<'a, 'a, Tensor>> {
    // SAFETY: by this function's contract.
    let object = unsafe { Borrowed::from_ptr_or_opt(py, object.cast()) };
    let object = object.ok_or_else(|| PyTypeError::new_err("no object was given"))?;
    Ok(object.cast::<Tensor>()?)
}

unsafe extern "C" fn lend(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    // SAFETY: DLPack requires an attached caller, a live object and a writable place.
    unsafe {
        status(c_entry::enter(|py| {
            let borrowed = dlpack::versioned(tensor(py, object)?.get().shared()).raise(py)?;
            out.write(borrowed.into_raw().as_ptr());
            Ok(())
        }))
    }
}

unsafe extern "C" fn describe(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: as for `lend`. The described tensor lives as long as the object, and never changes.
    unsafe {
        status(c_entry::enter(|py| {
            out.write(dlpack::described(tensor(py, object)?.get().shared()).raise(py)?);
            Ok(())
        }))
    }
}

unsafe extern "C" fn take(borrowed: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    // SAFETY: DLPack requires an attached caller, a managed tensor with a deleter that only we may call from now
    // on, and a writable place.
    unsafe {
        status(c_entry::enter(|py| {
            let refused = |error: zarrow_dlpack::Error| exchange(py, "dlpack", error.to_string());
            let borrowed = NonNull::new(borrowed).ok_or(zarrow_dlpack::Error::NullTensor).map_err(refused)?;
            let foreign = Foreign::from_raw(borrowed).map_err(refused)?;
            let tensor = Tensor::create(py, import::dlpack::versioned(foreign).raise(py)?)?;
            out.write(tensor.into_ptr().cast());
            Ok(())
        }))
    }
}

unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int {
    // SAFETY: DLPack requires the prototype to be a tensor; only its data may be missing.
    let made = catch_unwind(|| unsafe { prototype.as_ref() }.map(|prototype| unsafe { empty(prototype) }));
    let (kind, message) = match made {
        Ok(Some(Ok(tensor))) => {
            // SAFETY: the caller passes a writable place.
            unsafe { out.write(tensor.into_raw().as_ptr()) };
            return 0;
        }
        Ok(Some(Err(error @ zarrow_array::Error::OutOfMemory { .. }))) => (c"MemoryError", error.to_string()),
        Ok(Some(Err(error))) => (c"BufferError", error.to_string()),
        Ok(None) => (c"ValueError", "no prototype was given".into()),
        Err(_) => (c"RuntimeError", "zarrow panicked: see its standard error".into()),
    };
    if let Some(set_error) = set_error {
        let message = CString::new(message).unwrap_or_default();
        // SAFETY: the caller passes the function together with its context; both strings live during the call.
        unsafe { set_error(error_ctx, kind.as_ptr(), message.as_ptr()) };
    }
    -1
}

/// Allocates an uninitialized tensor like `prototype`.
///
/// # Safety
/// The prototype's shape must be null or have `ndim` extents.
unsafe fn empty(prototype: &DLTensor) -> zarrow_array::Result<Owned<DLManagedTensorVersioned>> {
    let shape = match usize::try_from(prototype.ndim) {
        Ok(ndim) if ndim > 0 && !prototype.shape.is_null() => {
            // SAFETY: by this function's contract.
            unsafe { std::slice::from_raw_parts(prototype.shape, ndim) }
        }
        Ok(0) => &[],
        _ => return Err(zarrow_array::Error::BadView("the prototype has no shape".into())),
    };
    dlpack::empty(prototype.device, prototype.dtype, shape)
}

unsafe extern "C" fn work_stream(_device_type: i32, _device_id: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: DLPack requires a writable place. CPU memory has no streams.
    unsafe { out.write(null_mut()) };
    0
}
