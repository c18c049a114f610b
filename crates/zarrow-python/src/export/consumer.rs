//! Export to other libraries, each imported on first use. These exports copy only for another type or device.

use crate::export::exchange_table::ExchangeTable;
use crate::export::numpy;
use crate::layout::tensor::Tensor;
use crate::python::error::{Raise, exchange};
use crate::python::importing::import;
use crate::python::made_once::made_once;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyType};
use zarrow_array::fork::OnceCell;
use zarrow_array::{HOST_ALIGNMENT, Number, SharedTensor, export};
use zarrow_dlpack::DLDataTypeCode;

/// Returns a `torch.Tensor` of the same memory.
pub fn torch<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let (py, shared) = (tensor.py(), tensor.get().shared());
    if shared.is_read_only() {
        // PyTorch accepts read-only memory, and writes to it.
        let message = "PyTorch has no read-only tensors, but this memory is read-only: call .copy() first";
        return Err(exchange(py, "read_only", message));
    }
    if shared.strides().iter().any(|stride| *stride < 0) {
        return Err(exchange(
            py,
            "needs_copy",
            "PyTorch does not support negative strides: call .copy() first",
        ));
    }
    let borrowed = export::dlpack::versioned(shared).raise(py)?;
    // If PyTorch's C function does not know a type, it never releases the memory. It knows some of the small types,
    // so all of these take the other path.
    let dtype = borrowed.tensor().dtype;
    let is_small = dtype.bits < 8 || dtype.code.0 > DLDataTypeCode::BOOL.0;
    match torch_table(py)?.filter(|_| !is_small) {
        Some(table) => table.object(py, borrowed),
        None => import(py, "torch")?.call_method1("from_dlpack", (tensor,)),
    }
}

/// Returns a tensor of PyTorch, copied to a device or cast if it is elsewhere or of another type.
pub fn moved<'py>(
    tensor: Bound<'py, PyAny>,
    device: Option<Bound<'py, PyAny>>,
    dtype: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if device.is_none() && dtype.is_none() {
        return Ok(tensor);
    }
    let options = [("device", device), ("dtype", dtype)].into_py_dict(tensor.py())?;
    tensor.call_method("to", (), Some(&options))
}

/// Returns the C functions of `torch.Tensor`, available from PyTorch 2.10 on.
fn torch_table(py: Python<'_>) -> PyResult<Option<ExchangeTable>> {
    static TABLE: OnceCell<Option<ExchangeTable>> = OnceCell::new();
    let table = made_once(&TABLE, || {
        ExchangeTable::from_class(import(py, "torch")?.getattr("Tensor")?.cast::<PyType>()?)
    })?;
    Ok(*table)
}

/// Returns a `jax.Array` of the same memory.
pub fn jax<'py>(tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let (py, shared) = (tensor.py(), tensor.get().shared());
    let jax = import(py, "jax")?;
    let wide = matches!(
        shared.dtype().as_number(),
        Some(Number::Int64 | Number::UInt64 | Number::Float64 | Number::Complex128)
    );
    if wide && !jax.getattr("config")?.getattr("jax_enable_x64")?.is_truthy()? {
        let message = format!(
            "JAX would narrow {} to 32 bits: call jax.config.update('jax_enable_x64', True), or cast with .astype()",
            shared.dtype()
        );
        return Err(exchange(py, "no_such_type", message));
    }
    if let Some(what) = copied_by_jax(shared) {
        return Err(exchange(py, "needs_copy", format!("JAX cannot share {what}: call .copy() first")));
    }
    import(py, "jax.dlpack")?.call_method1("from_dlpack", (tensor,))
}

/// Returns a `jax.Array`: cast by NumPy to another type first, and copied to a device.
pub fn moved_by_jax<'py>(
    tensor: &Bound<'py, Tensor>,
    device: Option<Bound<'py, PyAny>>,
    dtype: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let array = match dtype {
        None => jax(tensor)?,
        Some(dtype) => {
            let cast = numpy::as_asked(numpy::view(tensor)?, Some(dtype), None)?;
            import(py, "jax.numpy")?.call_method1("asarray", (cast,))?
        }
    };
    match device {
        None => Ok(array),
        Some(device) => import(py, "jax")?.call_method1("device_put", (array, device)),
    }
}

/// Returns the property of the memory that JAX refuses, or silently copies.
fn copied_by_jax(shared: &SharedTensor) -> Option<&'static str> {
    if !shared.pointer().as_ptr().addr().is_multiple_of(HOST_ALIGNMENT) && shared.size() > 0 {
        return Some("memory that is not aligned to 64 bytes");
    }
    let mut order: Vec<usize> = (0..shared.shape().len()).collect();
    order.sort_by_key(|axis| std::cmp::Reverse(shared.strides()[*axis]));
    let sorted = shared.transpose(&order).ok()?;
    (!sorted.is_c_contiguous()).then_some("a tensor with gaps")
}
