//! Owners that keep the memory of Python objects alive while any thread holds a view of it.
//!
//! Releasing a Python object may run arbitrary code, and needs an attached thread. The owners attach themselves,
//! since a thread of another library may drop the last view. After the interpreter has ended, objects are leaked.

use crate::python::gil;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::Arc;

/// A view by the buffer protocol, released once.
pub struct BufferView(UnsafeCell<ffi::Py_buffer>);

// SAFETY: the view is filled before it is shared, only read from then on, and released with its last holder,
// attached.
unsafe impl Send for BufferView {}
// SAFETY: as above.
unsafe impl Sync for BufferView {}

impl BufferView {
    /// Requests a view of `object` with `flags`. If the object refuses, returns its error.
    pub fn new(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Arc<BufferView>> {
        // Filled in place, since the view may point into itself.
        let view = Arc::new(BufferView(UnsafeCell::new(ffi::Py_buffer::new())));
        // SAFETY: attached, with a live object; the view is not shared yet.
        let refused = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.0.get(), flags) } != 0;
        if refused { Err(PyErr::fetch(object.py())) } else { Ok(view) }
    }

    /// Returns the filled view.
    pub fn get(&self) -> &ffi::Py_buffer {
        // SAFETY: the view is not written to until it is dropped.
        unsafe { &*self.0.get() }
    }
}

impl Drop for BufferView {
    fn drop(&mut self) {
        let view = self.0.get();
        // SAFETY: attached; a view is released once, and releasing a refused view, which has no object, has no
        // effect.
        gil::with(|_| unsafe { ffi::PyBuffer_Release(view) });
    }
}
