//! What must be known of PyTorch's tensors before their memory is taken.

use crate::error::exchange;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Whether `object` is a `torch.Tensor`, without importing PyTorch.
///
/// Its memory may always be written to, which its capsules of before 2.9 cannot say.
pub fn is_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let modules = object.py().import("sys")?.getattr("modules")?;
    match modules.cast::<PyDict>()?.get_item("torch")? {
        Some(torch) => object.is_instance(&torch.getattr("Tensor")?),
        None => Ok(false),
    }
}

/// Refuses a tensor whose elements are not those in its memory, but their negatives or conjugates.
pub fn check(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    for (lazy, resolve) in [("is_neg", "resolve_neg"), ("is_conj", "resolve_conj")] {
        if tensor.call_method0(lazy)?.is_truthy()? {
            let message = format!(
                "the memory of this tensor is not what it shows (torch.Tensor.{lazy}): call .{resolve}() first"
            );
            return Err(exchange(tensor.py(), "needs_copy", message));
        }
    }
    Ok(())
}
