//! The class `_RecycledMemory`: memory for arrays of NumPy, from the cache of freed memory and back to it.

use crate::python::error::Raise;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use zarrow_array::UninitBuffer;

/// Writable bytes behind the buffer protocol. They are not initialized, and Rust code never reads them.
#[pyclass(frozen, name = "_RecycledMemory", module = "zarrow")]
pub struct RecycledMemory {
    address: usize,
    nbytes: ffi::Py_ssize_t,
    _owner: UninitBuffer,
}

#[pymethods]
impl RecycledMemory {
    #[new]
    fn new(py: Python<'_>, nbytes: usize) -> PyResult<RecycledMemory> {
        let mut owner = UninitBuffer::new(nbytes).raise(py)?;
        // An allocation has at most `isize::MAX` bytes.
        let nbytes = nbytes as ffi::Py_ssize_t;
        Ok(RecycledMemory { address: owner.as_mut_ptr().expose_provenance(), nbytes, _owner: owner })
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let memory = slf.get();
        let start = std::ptr::with_exposed_provenance_mut(memory.address);
        // SAFETY: Python passes a view to fill, which gets a reference to the object. The object owns the memory, never
        // moves it, and does not access it.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, memory.nbytes, 0, flags) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
