//! What keeps memory of Python objects alive, for as long as any thread holds a view of it.
//!
//! Letting go of a Python object may run any code, and needs the thread to be attached: it attaches itself, since
//! the last view may be dropped by another library's thread. After the interpreter's end there is nothing to let go.

use crate::python::gil;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::Arc;

/// An object whose life is that of its memory.
pub struct Held(Option<Py<PyAny>>);

impl Held {
    /// Keeps `object` alive.
    pub fn new(object: &Bound<'_, PyAny>) -> Arc<Held> {
        Arc::new(Held(Some(object.clone().unbind())))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let object = self.0.take();
        gil::with(|_| drop(object));
    }
}

/// A view by the buffer protocol, released once.
pub struct BufferView(UnsafeCell<ffi::Py_buffer>);

// SAFETY: the view is filled before it is shared, only read from then on, and released with its last holder, attached.
unsafe impl Send for BufferView {}
// SAFETY: as above.
unsafe impl Sync for BufferView {}

impl BufferView {
    /// The view of `object` that `flags` ask for. The object's own refusal is an error.
    pub fn new(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Arc<BufferView>> {
        // The view may point into itself, so that it is filled where it stays.
        let view = Arc::new(BufferView(UnsafeCell::new(ffi::Py_buffer::new())));
        // SAFETY: attached, with a live object; nobody else knows of the view yet.
        let refused = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.0.get(), flags) } != 0;
        if refused { Err(PyErr::fetch(object.py())) } else { Ok(view) }
    }

    /// What the object said.
    pub fn get(&self) -> &ffi::Py_buffer {
        // SAFETY: nothing writes to the view until it is dropped.
        unsafe { &*self.0.get() }
    }
}

impl Drop for BufferView {
    fn drop(&mut self) {
        let view = self.0.get();
        // SAFETY: attached; a view is released once, and one that was refused has no object, which makes it a call
        // without effect.
        gil::with(|_| unsafe { ffi::PyBuffer_Release(view) });
    }
}
