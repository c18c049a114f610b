//! Consumer side of Arrow's C data interface: arrays and streams are moved out of their capsules.
//!
//! Streams are read with the GIL released: the producer may be on another thread.
//!
//! Source: Arrow PyCapsule interface.

use crate::python::error::{Raise, exchange};
use crate::python::interpreter_exit;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;
use std::ptr::NonNull;
use zarrow_array::Error;
use zarrow_array::import::{Imported, arrow};

/// Result of asking an object for Arrow data.
pub enum Found {
    /// An array.
    Array(Imported),
    /// A type without a layout, such as a table or lists, with the error for it.
    OtherType(PyErr),
}

/// Imports an object with `__arrow_c_array__` or `__arrow_c_stream__`, or their capsules; `None` for other objects.
/// If a copy is needed, `may_copy` must allow it.
pub fn array(object: &Bound<'_, PyAny>, may_copy: bool) -> PyResult<Option<Found>> {
    interpreter_exit::guard_thread();
    if let Some(method) = object.getattr_opt("__arrow_c_array__")? {
        return from_pair(&method.call0()?, may_copy).map(Some);
    }
    if let Some(method) = object.getattr_opt("__arrow_c_stream__")? {
        return from_stream(&method.call0()?, may_copy).map(Some);
    }
    if object.is_instance_of::<PyTuple>()
        && object.len()? == 2
        && object.get_item(0)?.is_instance_of::<PyCapsule>()
    {
        return from_pair(object, may_copy).map(Some);
    }
    match object.cast::<PyCapsule>() {
        Ok(capsule) if capsule.is_valid_checked(Some(STREAM)) => from_stream(object, may_copy).map(Some),
        _ => Ok(None),
    }
}

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Moves the struct out of a capsule of this name; an error if the capsule is another one, or was consumed.
fn taken<T>(
    capsule: &Bound<'_, PyAny>,
    name: &'static CStr,
    take: unsafe fn(*mut T) -> Option<T>,
) -> PyResult<T> {
    let py = capsule.py();
    let wrong = || {
        let name = name.to_string_lossy();
        exchange(py, "arrow", format!("expected an unconsumed capsule named {name:?}"))
    };
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| wrong())?;
    let place: NonNull<T> = capsule.pointer_checked(Some(name)).map_err(|_| wrong())?.cast();
    // SAFETY: a capsule of this name holds such a struct, and other threads take it in such a critical section too.
    with_critical_section(capsule, || unsafe { take(place.as_ptr()) }).ok_or_else(wrong)
}

fn from_pair(pair: &Bound<'_, PyAny>, may_copy: bool) -> PyResult<Found> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
    let py = pair.py();
    let schema = taken(&schema, SCHEMA, arrow::take_schema)?;
    let array = taken(&array, ARRAY, arrow::take_array)?;
    found(py, py.detach(move || arrow::array(&schema, array, may_copy)))
}

fn from_stream(capsule: &Bound<'_, PyAny>, may_copy: bool) -> PyResult<Found> {
    let py = capsule.py();
    let stream = taken(capsule, STREAM, arrow::take_stream)?;
    let read = move || {
        let (schema, chunks) = arrow::collect_stream(stream)?;
        arrow::chunks(&schema, chunks, may_copy)
    };
    found(py, py.detach(read))
}

fn found(py: Python<'_>, read: zarrow_array::Result<Imported>) -> PyResult<Found> {
    match read {
        Err(Error::UnknownType { name, .. }) => {
            Ok(Found::OtherType(exchange(py, "no_such_type", unknown(&name))))
        }
        read => read.raise(py).map(Found::Array),
    }
}

/// Returns the message for an unsupported Arrow type, with the alternative.
fn unknown(format: &str) -> String {
    match format.trim_matches('"') {
        "+s" => {
            "tables and Arrow structs have several columns, but an array has one: zarrow.save(store, table) \
                 stores each column as an array, or pass a single column"
                .into()
        }
        "+l" | "+L" | "+vl" | "+vL" => {
            "Arrow lists may differ in length, but the rows of an array may not: use a \
                                        fixed-size list, or pass the flat values"
                .into()
        }
        other => format!("Zarr arrays have no type for the Arrow type {other:?}"),
    }
}
