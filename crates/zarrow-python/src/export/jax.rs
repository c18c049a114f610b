//! Arrays of JAX, which is imported on first use. They share the tensor's memory, except for another type or device.

use crate::python::error::exchange;
use crate::python::importing::import;
use pyo3::prelude::*;
use zarrow_array::{HOST_ALIGNMENT, Number, SharedTensor};

/// Returns a `jax.Array` of the memory of `tensor`, which `memory` describes.
pub fn shared<'py>(tensor: &Bound<'py, PyAny>, memory: &SharedTensor) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let jax = import(py, "jax")?;
    let wide = matches!(
        memory.dtype().as_number(),
        Some(Number::Int64 | Number::UInt64 | Number::Float64 | Number::Complex128)
    );
    if wide && !jax.getattr("config")?.getattr("jax_enable_x64")?.is_truthy()? {
        let message = format!(
            "JAX would narrow {} to 32 bits: call jax.config.update('jax_enable_x64', True), or cast with .astype()",
            memory.dtype()
        );
        return Err(exchange(py, "no_such_type", message));
    }
    if let Some(what) = refused(memory) {
        return Err(exchange(py, "needs_copy", format!("JAX cannot share {what}: call .copy() first")));
    }
    import(py, "jax.dlpack")?.call_method1("from_dlpack", (tensor,))
}

/// Returns an array of JAX with the elements of one of NumPy.
pub fn copied<'py>(array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    import(array.py(), "jax.numpy")?.call_method1("asarray", (array,))
}

/// Returns a `jax.Array`, copied to a device if one is given.
pub fn moved<'py>(
    array: Bound<'py, PyAny>,
    device: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match device {
        None => Ok(array),
        Some(device) => import(array.py(), "jax")?.call_method1("device_put", (array, device)),
    }
}

/// Returns the property of the memory that JAX refuses, or silently copies.
fn refused(shared: &SharedTensor) -> Option<&'static str> {
    if !shared.pointer().as_ptr().addr().is_multiple_of(HOST_ALIGNMENT) && shared.size() > 0 {
        return Some("memory that is not aligned to 64 bytes");
    }
    let mut order: Vec<usize> = (0..shared.shape().len()).collect();
    order.sort_by_key(|axis| std::cmp::Reverse(shared.strides()[*axis]));
    let sorted = shared.transpose(&order).ok()?;
    (!sorted.is_c_contiguous()).then_some("a tensor with gaps")
}
