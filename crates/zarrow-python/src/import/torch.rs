//! What must be known of PyTorch's tensors before their memory is taken.
//!
//! A tensor may be the negative or the conjugate of its memory. DLPack cannot say so, PyTorch's C functions do not
//! look, and its `__dlpack__` does not look at negatives. So they are asked, by the C functions behind the methods:
//! the calls by Python's rules would cost as much as the rest of the import.

use crate::python::error::exchange;
use crate::python::made_once::name;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use std::ptr::null_mut;

/// How to ask a tensor whether it is something else than its memory.
#[derive(Clone, Copy)]
pub struct Lazy {
    is_negative: Option<ffi::PyCFunction>,
    is_conjugate: Option<ffi::PyCFunction>,
}

impl Lazy {
    /// How the tensors of the class of `tensor` are asked.
    pub fn of(tensor: &Bound<'_, PyAny>) -> PyResult<Lazy> {
        let function = |method: &str| -> PyResult<Option<ffi::PyCFunction>> {
            let method = tensor.getattr(method)?;
            if !method.is_instance_of::<PyCFunction>() {
                return Ok(None);
            }
            // SAFETY: attached, with a live object of this very class. A function that is bound to another object is
            // none of the tensor's methods, and would take it for one of its own class.
            unsafe {
                let takes_nothing = ffi::PyCFunction_GetFlags(method.as_ptr()) == ffi::METH_NOARGS;
                let is_its_own = ffi::PyCFunction_GetSelf(method.as_ptr()) == tensor.as_ptr();
                Ok(ffi::PyCFunction_GetFunction(method.as_ptr()).filter(|_| takes_nothing && is_its_own))
            }
        };
        Ok(Lazy { is_negative: function("is_neg")?, is_conjugate: function("is_conj")? })
    }

    /// Refuses a tensor whose elements are not those in its memory; only complex ones can be conjugates.
    pub fn check(self, tensor: &Bound<'_, PyAny>, is_complex: bool) -> PyResult<()> {
        let py = tensor.py();
        let resolve = if ask(tensor, self.is_negative, name!(py, "is_neg"))? {
            "resolve_neg"
        } else if is_complex && ask(tensor, self.is_conjugate, name!(py, "is_conj"))? {
            "resolve_conj"
        } else {
            return Ok(());
        };
        let message = format!("the memory does not hold what the tensor shows: call .{resolve}() first");
        Err(exchange(py, "needs_copy", message))
    }
}

/// Asks by the C function, where the method has one.
fn ask<'py>(
    tensor: &Bound<'py, PyAny>,
    function: Option<ffi::PyCFunction>,
    method: &Bound<'py, pyo3::types::PyString>,
) -> PyResult<bool> {
    let answer = match function {
        // SAFETY: attached; the function is that of a method without arguments of the tensor's own class.
        Some(function) => unsafe {
            Bound::from_owned_ptr_or_err(tensor.py(), function(tensor.as_ptr(), null_mut()))?
        },
        None => tensor.call_method0(method)?,
    };
    answer.is_truthy()
}

/// Whether PyTorch differentiates what is done with `tensor`.
pub fn requires_grad(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    tensor.getattr(name!(tensor.py(), "requires_grad"))?.is_truthy()
}
