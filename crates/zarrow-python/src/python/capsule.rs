//! DLPack tensors and Arrow structs as Python capsules, freed exactly once.
//!
//! A DLPack consumer renames the capsule and must call the deleter from then on; a capsule that still has its
//! original name when it is destroyed calls the deleter itself. An Arrow consumer moves the struct out and sets
//! `release` to null.
//!
//! Sources: array API, `__dlpack__`; Arrow PyCapsule interface.

use crate::python::error::exchange;
use crate::python::keeps_exception::KeepsException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use std::ptr::{NonNull, null_mut};
use zarrow_array::export::arrow::ArrowPair;
use zarrow_array::export::arrow_abi::ArrowSchema;
use zarrow_array::export::arrow_stream::ArrowArrayStream;
use zarrow_dlpack::{DLManagedTensor, DLManagedTensorVersioned, Foreign, Managed, Owned};

/// A managed tensor with its capsule names.
pub trait Named: Managed {
    /// Name of an unconsumed capsule.
    const NAME: &'static CStr;
    /// Name of a consumed capsule.
    const USED: &'static CStr;
}

impl Named for DLManagedTensor {
    const NAME: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";
}

impl Named for DLManagedTensorVersioned {
    const NAME: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";
}

/// Wraps the tensor in a capsule.
pub fn dlpack<M: Named>(py: Python<'_>, owned: Owned<M>) -> PyResult<Bound<'_, PyAny>> {
    let pointer = owned.into_raw();
    // SAFETY: attached; `release` frees the tensor behind the pointer, and if no capsule was made the tensor is
    // still ours alone.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer.as_ptr().cast(), M::NAME.as_ptr(), Some(release::<M>));
        Bound::from_owned_ptr_or_err(py, capsule).inspect_err(|_| drop(Owned::from_raw(pointer)))
    }
}

/// Calls the deleter of an unconsumed tensor.
///
/// A capsule may be destroyed while an exception is propagating; the deleter must not replace it.
unsafe extern "C" fn release<M: Named>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this attached, with the capsule that `dlpack` made; while it has its first name,
    // recognized by its address, its pointer is the tensor that was put into it, and the deleter is ours to call.
    unsafe {
        if ffi::PyCapsule_GetName(capsule) != M::NAME.as_ptr() {
            return;
        }
        let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
        ffi::PyErr_Fetch(&mut kind, &mut value, &mut trace);
        if let Some(pointer) = NonNull::new(ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr())) {
            drop(Owned::from_raw(pointer.cast::<M>()));
        }
        ffi::PyErr_Restore(kind, value, trace);
    }
}

/// A tensor borrowed from another library, in either form.
pub enum Consumed {
    /// DLPack 1.x.
    Versioned(Foreign<DLManagedTensorVersioned>),
    /// DLPack 0.x.
    Legacy(Foreign<DLManagedTensor>),
}

/// Takes the tensor out of a capsule. Nothing is copied.
///
/// The capsule is renamed before anything can fail: from then on we must call the deleter.
pub fn consume(capsule: &Bound<'_, PyAny>) -> PyResult<Consumed> {
    with_critical_section(capsule, || consume_alone(capsule))
}

/// Like [`consume`], with exclusive access to the capsule.
fn consume_alone(capsule: &Bound<'_, PyAny>) -> PyResult<Consumed> {
    let py = capsule.py();
    let refused = |error: zarrow_dlpack::Error| exchange(py, "dlpack", error.to_string());
    if let Some(pointer) = take::<DLManagedTensorVersioned>(capsule)? {
        // SAFETY: the capsule transfers the pointer to the code that renames it, which `take` did.
        return Ok(Consumed::Versioned(unsafe { Foreign::from_raw(pointer) }.map_err(refused)?));
    }
    if let Some(pointer) = take::<DLManagedTensor>(capsule)? {
        // SAFETY: as above.
        return Ok(Consumed::Legacy(unsafe { Foreign::from_raw(pointer) }.map_err(refused)?));
    }
    let message = "expected an unconsumed capsule of a DLPack tensor";
    Err(exchange(py, "dlpack", message))
}

/// Returns the pointer of an unused capsule of this form, and marks the capsule as used.
fn take<M: Named>(capsule: &Bound<'_, PyAny>) -> PyResult<Option<NonNull<M>>> {
    // SAFETY: attached, with a live object; a capsule that is valid under the name has a pointer of this kind, and
    // names are static.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), M::NAME.as_ptr()) != 1 {
            return Ok(None);
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), M::NAME.as_ptr());
        if ffi::PyCapsule_SetName(capsule.as_ptr(), M::USED.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(NonNull::new(pointer.cast()))
    }
}

/// Refuses 0-dimensional arrays, which Arrow lacks.
pub fn check_axes(py: Python<'_>, ndim: usize) -> PyResult<()> {
    match ndim {
        0 => Err(exchange(
            py,
            "needs_axis",
            "Arrow arrays need at least one axis, but this is a 0-d array: call .reshape(1) first",
        )),
        _ => Ok(()),
    }
}

/// Returns the struct in a capsule that its owner keeps; `None` if it holds no such struct.
pub fn borrow_schema<'a>(capsule: &'a Bound<'_, PyCapsule>) -> Option<&'a ArrowSchema> {
    let pointer = capsule.pointer_checked(Some(c"arrow_schema")).ok()?;
    // SAFETY: a capsule of this name holds such a struct, which lives as long as the capsule.
    let schema: &ArrowSchema = unsafe { pointer.cast().as_ref() };
    // A moved-out struct has no format.
    (!schema.format().is_empty()).then_some(schema)
}

/// Wraps the type in a capsule.
#[inline]
pub fn arrow_schema(py: Python<'_>, schema: ArrowSchema) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, KeepsException::new(schema), c"arrow_schema")
}

/// Wraps a stream in a capsule.
pub fn arrow_stream(py: Python<'_>, stream: ArrowArrayStream) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, KeepsException::new(stream), c"arrow_array_stream")
}

/// Wraps the type and the memory in two capsules.
#[inline]
pub fn arrow_array(
    py: Python<'_>,
    (schema, array): ArrowPair,
) -> PyResult<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)> {
    Ok((
        arrow_schema(py, schema)?,
        PyCapsule::new_with_value(py, KeepsException::new(array), c"arrow_array")?,
    ))
}
