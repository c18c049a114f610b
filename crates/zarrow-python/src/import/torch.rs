//! Checks of PyTorch's tensors before their memory is shared.
//!
//! A tensor may be the negative or the conjugate of its memory. DLPack cannot express this, PyTorch's C functions
//! do not check it, and its `__dlpack__` does not check for negatives. So the tensors are asked through the C
//! functions behind their methods: calls by Python's rules would cost as much as the rest of the import.

use crate::python::error::exchange;
use crate::python::made_once::name;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use std::ptr::null_mut;

/// How to ask a tensor whether its elements differ from its memory.
#[derive(Clone, Copy)]
pub struct Lazy {
    is_negative: Option<ffi::PyCFunction>,
    is_conjugate: Option<ffi::PyCFunction>,
}

impl Lazy {
    /// Looks up the C functions for the class of `tensor`.
    pub fn from_tensor(tensor: &Bound<'_, PyAny>) -> PyResult<Lazy> {
        let function = |method: &str| -> PyResult<Option<ffi::PyCFunction>> {
            let method = tensor.getattr(method)?;
            if !method.is_instance_of::<PyCFunction>() {
                return Ok(None);
            }
            // SAFETY: attached, with a live object of this very class. A function bound to another object is not a
            // method of the tensor, and would treat the tensor as an instance of another class.
            unsafe {
                let takes_nothing = ffi::PyCFunction_GetFlags(method.as_ptr()) == ffi::METH_NOARGS;
                let is_its_own = ffi::PyCFunction_GetSelf(method.as_ptr()) == tensor.as_ptr();
                Ok(ffi::PyCFunction_GetFunction(method.as_ptr()).filter(|_| takes_nothing && is_its_own))
            }
        };
        Ok(Lazy { is_negative: function("is_neg")?, is_conjugate: function("is_conj")? })
    }

    /// Refuses a tensor with elements that differ from its memory; only complex tensors can be conjugates.
    pub fn check(self, tensor: &Bound<'_, PyAny>, is_complex: bool) -> PyResult<()> {
        let py = tensor.py();
        let resolve = if ask(tensor, self.is_negative, name!(py, "is_neg"))? {
            "resolve_neg"
        } else if is_complex && ask(tensor, self.is_conjugate, name!(py, "is_conj"))? {
            "resolve_conj"
        } else {
            return Ok(());
        };
        let message = format!("the tensor's memory differs from its values: call .{resolve}() first");
        Err(exchange(py, "needs_copy", message))
    }
}

/// Calls the C function, if the method has one.
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

/// Returns whether PyTorch computes gradients for `tensor`.
pub fn requires_grad(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    tensor.getattr(name!(tensor.py(), "requires_grad"))?.is_truthy()
}
