//! Our own DLPack C exchange API: how a library that calls C functions takes tensors without Python in between.
//!
//! 1. The class `Tensor` has the table in a capsule, as `__dlpack_c_exchange_api__`. It is final: what is of the class
//!    is a tensor of ours, and what is not is refused.
//! 2. A tensor is lent with its owner, or described for the time of a call: then nothing is allocated, since extents and
//!    strides lie in the tensor as DLPack has them.
//! 3. A description cannot say that memory is read-only. Such memory is lent, and never described.
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

/// The table in its capsule.
pub fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; the table lives as long as the process, and nobody writes to it.
    unsafe {
        let table = (&raw const TABLE).cast_mut().cast();
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(table, NAME.as_ptr(), None))
    }
}

/// What the C functions return.
fn status(done: Option<()>) -> c_int {
    if done.is_some() { 0 } else { -1 }
}

/// The tensor that `object` is.
///
/// # Safety
/// `object` is null or lives for `'a`.
unsafe fn tensor<'a>(py: Python<'a>, object: *mut c_void) -> PyResult<Borrowed<'a, 'a, Tensor>> {
    // SAFETY: by this function's contract.
    let object = unsafe { Borrowed::from_ptr_or_opt(py, object.cast()) };
    let object = object.ok_or_else(|| PyTypeError::new_err("no object was given"))?;
    Ok(object.cast::<Tensor>()?)
}

unsafe extern "C" fn lend(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    // SAFETY: DLPack asks that this is called attached, with an object that lives and a place to write to.
    unsafe {
        status(c_entry::enter(|py| {
            let lent = dlpack::versioned(tensor(py, object)?.get().shared()).raise(py)?;
            out.write(lent.into_raw().as_ptr());
            Ok(())
        }))
    }
}

unsafe extern "C" fn describe(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: as for `lend`. What is described lives as long as the object, whose tensor never changes.
    unsafe {
        status(c_entry::enter(|py| {
            out.write(dlpack::described(tensor(py, object)?.get().shared()).raise(py)?);
            Ok(())
        }))
    }
}

unsafe extern "C" fn take(lent: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    // SAFETY: DLPack asks that this is called attached, with a managed tensor whose deleter is ours to call from now
    // on, and a place to write to.
    unsafe {
        status(c_entry::enter(|py| {
            let refused = |error: zarrow_dlpack::Error| exchange(py, "dlpack", error.to_string());
            let lent = NonNull::new(lent).ok_or(zarrow_dlpack::Error::NullTensor).map_err(refused)?;
            let foreign = Foreign::from_raw(lent).map_err(refused)?;
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
    // SAFETY: DLPack asks that the prototype is a tensor, of which only the data need not be there.
    let made = catch_unwind(|| unsafe { prototype.as_ref() }.map(|prototype| unsafe { empty(prototype) }));
    let (kind, message) = match made {
        Ok(Some(Ok(tensor))) => {
            // SAFETY: the caller gives a place to write to.
            unsafe { out.write(tensor.into_raw().as_ptr()) };
            return 0;
        }
        Ok(Some(Err(error @ zarrow_array::Error::OutOfMemory { .. }))) => (c"MemoryError", error.to_string()),
        Ok(Some(Err(error))) => (c"BufferError", error.to_string()),
        Ok(None) => (c"ValueError", "no prototype was given".into()),
        Err(_) => (c"RuntimeError", "zarrow panicked: its standard error says where".into()),
    };
    if let Some(set_error) = set_error {
        let message = CString::new(message).unwrap_or_default();
        // SAFETY: the caller gives the function together with its context; both strings live during the call.
        unsafe { set_error(error_ctx, kind.as_ptr(), message.as_ptr()) };
    }
    -1
}

/// A new tensor like `prototype`, whose elements have no values yet.
///
/// # Safety
/// The prototype's shape is null or has as many extents as it says.
unsafe fn empty(prototype: &DLTensor) -> zarrow_array::Result<Owned<DLManagedTensorVersioned>> {
    let shape = match usize::try_from(prototype.ndim) {
        Ok(ndim) if ndim > 0 && !prototype.shape.is_null() => {
            // SAFETY: by this function's contract.
            unsafe { std::slice::from_raw_parts(prototype.shape, ndim) }
        }
        Ok(0) => &[],
        _ => return Err(zarrow_array::Error::BadView("a prototype without a shape".into())),
    };
    dlpack::empty(prototype.device, prototype.dtype, shape)
}

unsafe extern "C" fn work_stream(_device_type: i32, _device_id: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: DLPack asks for a place to write to. Memory of the CPU has no streams.
    unsafe { out.write(null_mut()) };
    0
}
