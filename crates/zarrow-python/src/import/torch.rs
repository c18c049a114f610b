//! What must be known of PyTorch's tensors before their memory is taken.
//!
//! A tensor may be the negative or the conjugate of its memory. DLPack cannot say so, PyTorch's C functions do not
//! look, and its `__dlpack__` does not look at negatives.

use crate::error::exchange;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// Whether `class` is `torch.Tensor`, or derived from it, without importing PyTorch.
pub fn is_tensor_class(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let modules = class.py().import("sys")?.getattr("modules")?;
    // While it is imported, or where its import is forbidden, it has no tensors yet.
    let torch = modules.cast::<PyDict>()?.get_item("torch")?;
    match torch.map(|torch| torch.getattr_opt("Tensor")).transpose()?.flatten() {
        Some(tensor) => class.is_subclass(&tensor),
        None => Ok(false),
    }
}

/// Whether PyTorch differentiates what is done with `tensor`.
pub fn requires_grad(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    tensor.getattr(intern!(tensor.py(), "requires_grad"))?.is_truthy()
}

/// Refuses a tensor whose elements are not those in its memory.
pub fn check_lazy(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = tensor.py();
    let lazy = [(intern!(py, "is_neg"), "resolve_neg"), (intern!(py, "is_conj"), "resolve_conj")];
    for (is_lazy, resolve) in lazy {
        if tensor.call_method0(is_lazy)?.is_truthy()? {
            let message = format!(
                "the memory of this tensor is not what it shows (torch.Tensor.{is_lazy}): call .{resolve}() first"
            );
            return Err(exchange(py, "needs_copy", message));
        }
    }
    Ok(())
}
