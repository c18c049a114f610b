//! Tensors of PyTorch, which is imported on first use. They share the memory, except for another type or device.

use crate::export::exchange_table::ExchangeTable;
use crate::python::error::{Raise, exchange};
use crate::python::importing::import;
use crate::python::made_once::made_once;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyType};
use zarrow_array::fork::OnceCell;
use zarrow_array::{SharedTensor, export};
use zarrow_dlpack::DLDataTypeCode;

/// Returns a `torch.Tensor` of the memory of `tensor`, which `shared` describes.
pub fn shared<'py>(tensor: &Bound<'py, PyAny>, shared: &SharedTensor) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
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

/// Returns a tensor of PyTorch, copied to a device or cast if it is elsewhere or of another type. The type may be one of
/// PyTorch or of NumPy, or its name.
pub fn moved<'py>(
    tensor: Bound<'py, PyAny>,
    device: Option<Bound<'py, PyAny>>,
    dtype: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if device.is_none() && dtype.is_none() {
        return Ok(tensor);
    }
    let py = tensor.py();
    let torch_type = |dtype| import(py, "zarrow.arrays.read_casts")?.call_method1("torch_type", (dtype,));
    let options = [("device", device), ("dtype", dtype.map(torch_type).transpose()?)].into_py_dict(py)?;
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
