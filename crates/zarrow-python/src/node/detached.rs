//! Reads and writes awaited by an event loop: the engine works, and calls back when it is done.
//!
//! 1. `_read_detached` and `_write_detached` return a handle at once. No thread waits while a remote store answers.
//! 2. When the operation ends, an engine thread with the GIL calls the callback with the result and the error; one
//!    of them is `None`. By then, the memory of `out` is not written to any more.
//! 3. If the interpreter has ended by then, the callback is not called, and Python objects are leaked.

use crate::index::advanced::Indexing;
use crate::layout::decoded_array::wrap;
use crate::node::array::Array;
use crate::node::array_input::{self, ArrayInput};
use crate::node::missing;
use crate::node::out::Out;
use crate::python::error::Raise;
use crate::python::gil::{self, Kept};
use crate::python::interpreter_exit::PythonCaller;
use pyo3::prelude::*;
use zarrow::{Detached, ReadRequest, ValueSource, Values, WriteOptions};
use zarrow_array::DecodedArray;

/// A read or a write in progress.
#[pyclass(frozen, name = "_Detached", module = "zarrow")]
pub struct DetachedRead(pub Detached);

#[pymethods]
impl DetachedRead {
    /// Request cancellation: the operation soon ends as interrupted, unless it has already ended.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.0.cancel());
    }
}

/// Calls `callback` with the result or the error of a read (step 2).
fn tell(callback: Py<PyAny>, result: zarrow::Result<Option<DecodedArray>>) {
    tell_with(callback, result, |py, decoded| match decoded {
        Some(decoded) => wrap(py, decoded),
        None => Ok(py.None().into_bound(py)),
    });
}

/// Calls `callback` with the error, or with the result converted by `object` (step 2).
pub fn tell_with<T>(
    callback: Py<PyAny>,
    result: zarrow::Result<T>,
    object: impl for<'py> FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>>,
) {
    let Some(_caller) = PythonCaller::begin() else {
        // Step 3.
        return std::mem::forget((callback, result, object));
    };
    let left = gil::with_value((callback, result, object), |py, (callback, result, object)| {
        let arguments = match result.raise(py).and_then(|value| object(py, value)) {
            Ok(object) => (object, py.None()).into_pyobject(py),
            Err(error) => (py.None(), error.into_value(py)).into_pyobject(py),
        };
        if let Err(error) = arguments.and_then(|arguments| callback.bind(py).call1(arguments)) {
            error.write_unraisable(py, Some(callback.bind(py)));
        }
    });
    // Step 3.
    std::mem::forget(left);
}

/// Begin to read a selection of an array; `callback` is called with the result and the error.
#[pyfunction]
#[pyo3(signature = (array, selection, out, mask, callback))]
pub fn _read_detached(
    array: &Bound<'_, Array>,
    selection: &Bound<'_, PyAny>,
    out: Option<Bound<'_, PyAny>>,
    mask: Option<Bound<'_, PyAny>>,
    callback: Py<PyAny>,
) -> PyResult<DetachedRead> {
    let py = array.py();
    let (elements, selection) = array.get().state().selected(selection, Indexing::Plain)?;
    if let Some(object) = out {
        let out = Out::new(&object, elements.data_type(), &selection.shape())?;
        let strided = out.strided.clone();
        let keeper = Kept::new((out, object.unbind()));
        let done = |read: zarrow::Result<()>| {
            drop(keeper);
            tell(callback, read.map(|()| None));
        };
        // SAFETY: `Out` checked that the memory is writable and that elements do not overlap, and `done` keeps it alive.
        // The caller of `out=` must not use the memory during the read, as with NumPy.
        let read = py.detach(|| unsafe { elements.request(&selection)?.out(strided) }.detach(done));
        return read.raise(py).map(DetachedRead);
    }
    let values = mask.map(|mask| missing::values(elements.metadata(), &mask)).transpose()?;
    let done = |decoded: zarrow::Result<DecodedArray>| tell(callback, decoded.map(Some));
    let read =
        py.detach(|| values.iter().fold(elements.request(&selection)?, ReadRequest::missing).detach(done));
    read.raise(py).map(DetachedRead)
}

impl ValueSource for Kept<ArrayInput> {
    fn values(&self) -> zarrow::Result<Values<'_>> {
        // SAFETY: the caller must not write to the values during the call, as with NumPy.
        unsafe { ArrayInput::values(self) }
    }
}

/// Begin to write to a selection of an array in a remote store; `callback` is called with `None` and the error. Return
/// `None` if the write needs a thread.
#[pyfunction]
#[pyo3(signature = (array, selection, value, callback, *, durability = None, write_empty_chunks = false,
                    casting = "same_kind"))]
pub fn _write_detached(
    array: &Bound<'_, Array>,
    selection: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    callback: Py<PyAny>,
    durability: Option<&str>,
    write_empty_chunks: bool,
    casting: &str,
) -> PyResult<Option<DetachedRead>> {
    let py = array.py();
    let inner = array.get().inner();
    if inner.store().remote().is_none() {
        return Ok(None);
    }
    let durability = durability.map_or(Ok(inner.durability()), array_input::durability)?;
    let (elements, selection) = array.get().state().selected(selection, Indexing::Plain)?;
    let input = ArrayInput::new(value, elements.data_type(), casting, Some(elements.metadata()))?;
    let values = Box::new(Kept::new(input));
    let done = |written: zarrow::Result<()>| tell(callback, written.map(|()| None));
    let write = py.detach(|| {
        let options = WriteOptions::default().durability(durability).write_empty_chunks(write_empty_chunks);
        elements.write_request(&selection)?.options(&options).detach(values, done)
    });
    write.raise(py).map(|write| Some(DetachedRead(write)))
}
