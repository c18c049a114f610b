//! The class `BufferProducer`: a base that gives Python classes the buffer protocol, which plain Python classes can
//! only implement from 3.12 on.

use crate::export::buffer_protocol;
use crate::layout::tensor::Tensor;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

#[doc = help!("BufferProducer")]
#[pyclass(frozen, subclass, module = "zarrow._zarrow")]
pub struct BufferProducer {
    tensor: Py<Tensor>,
}

#[pymethods]
impl BufferProducer {
    #[new]
    fn new(tensor: Py<Tensor>) -> BufferProducer {
        BufferProducer { tensor }
    }

    #[doc = help!("BufferProducer.tensor")]
    #[getter]
    fn tensor(&self, py: Python<'_>) -> Py<Tensor> {
        self.tensor.clone_ref(py)
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let owner = slf.clone().into_any();
        // SAFETY: Python passes a view to fill, and `owner` holds the tensor, which holds the memory.
        unsafe { buffer_protocol::fill(owner, slf.get().tensor.get().shared(), view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view that `__getbuffer__` filled once.
        unsafe { buffer_protocol::release(view) }
    }
}
