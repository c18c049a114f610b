//! DLPack tensors and Arrow structs as Python capsules, freed exactly once.
//!
//! A DLPack consumer renames the capsule and answers for the deleter from then on; a capsule that still has its
//! name when it dies calls the deleter itself. An Arrow consumer moves the struct out and sets `release` to null.
//!
//! Sources: array API, `__dlpack__`; Arrow PyCapsule interface.

use crate::error::exchange;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use std::ptr::{NonNull, null_mut};
use zarrow_array::export::arrow::ArrowPair;
use zarrow_array::export::arrow_abi::ArrowSchema;
use zarrow_dlpack::{DLManagedTensor, DLManagedTensorVersioned, Foreign, Managed, Owned};

/// A managed tensor that has a capsule name.
pub trait Named: Managed {
    /// The name of a capsule that nobody has consumed.
    const NAME: &'static CStr;
}

impl Named for DLManagedTensor {
    const NAME: &'static CStr = c"dltensor";
}

impl Named for DLManagedTensorVersioned {
    const NAME: &'static CStr = c"dltensor_versioned";
}

/// The tensor in a capsule.
pub fn dlpack<M: Named>(py: Python<'_>, owned: Owned<M>) -> PyResult<Bound<'_, PyCapsule>> {
    let pointer = owned.into_raw();
    // SAFETY: `release` frees what the pointer stands for, on any thread, as DLPack asks of every deleter.
    let capsule = unsafe {
        PyCapsule::new_with_pointer_and_destructor(py, pointer.cast(), M::NAME, Some(release::<M>))
    };
    if capsule.is_err() {
        // SAFETY: no capsule was made, so that the tensor is still ours alone.
        drop(unsafe { Foreign::from_raw(pointer) });
    }
    capsule
}

/// Calls the deleter of a tensor that nobody consumed.
///
/// A capsule may die while an exception is on its way, which a deleter must not replace.
unsafe extern "C" fn release<M: Named>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this attached, with the capsule that `dlpack` made; while it has its first name, its
    // pointer is the tensor that was put into it, and the deleter is ours to call.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) != 1 {
            return;
        }
        let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
        ffi::PyErr_Fetch(&mut kind, &mut value, &mut trace);
        if let Some(pointer) = NonNull::new(ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr())) {
            drop(Foreign::from_raw(pointer.cast::<M>()));
        }
        ffi::PyErr_Restore(kind, value, trace);
    }
}

/// Refuses what Arrow has no array for: one element without an axis.
pub fn check_axes(py: Python<'_>, ndim: usize) -> PyResult<()> {
    match ndim {
        0 => Err(exchange(
            py,
            "needs_axis",
            "an Arrow array has an axis, and this array has none: give it one",
        )),
        _ => Ok(()),
    }
}

/// The type in a capsule.
pub fn arrow_schema(py: Python<'_>, schema: ArrowSchema) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// The type and the memory, in a capsule each.
pub fn arrow_array(
    py: Python<'_>,
    (schema, array): ArrowPair,
) -> PyResult<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)> {
    Ok((arrow_schema(py, schema)?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
}
