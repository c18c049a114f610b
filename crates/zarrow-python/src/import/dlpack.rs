//! Consumer side of DLPack.
//!
//! 1. A capsule is taken directly.
//! 2. If the object's type has a table of C functions, that exports the tensor. If it fails, `__dlpack__` is
//!    called, because its error is better.
//! 3. `__dlpack__` is asked for the newest supported version. A producer before DLPack 1.0, which does not accept a
//!    version, is asked again without one.
//! 4. PyTorch's tensors have properties that DLPack cannot express (see `torch`).
//!
//! Source: array API, `from_dlpack`; DLPack 1.3.

use super::producer::{Family, Producer};
use super::torch::{self, Lazy};
use crate::export::exchange_table::ExchangeTable;
use crate::python::capsule::{self, Consumed};
use crate::python::error::{Attempt, Raise, exchange};
use crate::python::made_once::{made_once, name};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use zarrow_array::SharedTensor;
use zarrow_array::fork::OnceCell;
use zarrow_array::import::dlpack;
use zarrow_dlpack::{DLDataTypeCode, DLManagedTensorVersioned, DLPackVersion, Foreign, IS_COPIED};

/// Returns the tensor exported by `object`; `None` if it does not support DLPack.
pub fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Option<SharedTensor>> {
    by_producer(object, Producer::from_object(object)?, copy)
}

/// Returns the tensor exported by `object` of this producer.
pub fn by_producer(
    object: &Bound<'_, PyAny>,
    producer: Producer,
    copy: Option<bool>,
) -> PyResult<Option<SharedTensor>> {
    let py = object.py();
    let lazy = match producer.family {
        Family::Torch(lazy) => Some(lazy),
        _ => None,
    };
    if let Some(table) = producer.table
        && let Some(foreign) = by_table(object, table, lazy)?
    {
        return dlpack::versioned(foreign).raise(py).map(Some);
    }
    let capsule = match object.cast::<PyCapsule>() {
        Ok(capsule) => capsule.clone().into_any(),
        Err(_) => match ask(object)? {
            Some(capsule) => capsule,
            None => return Ok(None),
        },
    };
    let consumed = capsule::consume(&capsule)?;
    if let Some(lazy) = lazy {
        lazy.check(object, true)?;
    }
    let tensor = match consumed {
        Consumed::Versioned(foreign) => {
            if copy == Some(false) && foreign.flags() & IS_COPIED != 0 {
                return Err(exchange(py, "needs_copy", "the producer made a copy, which copy=False forbids"));
            }
            dlpack::versioned(foreign)
        }
        // PyTorch's memory is always writable, but its capsules before 2.9 cannot express this.
        Consumed::Legacy(foreign) => dlpack::legacy(foreign, lazy.is_some()),
    };
    tensor.raise(py).map(Some)
}

/// Step 2.
fn by_table(
    object: &Bound<'_, PyAny>,
    table: ExchangeTable,
    lazy: Option<Lazy>,
) -> PyResult<Option<Foreign<DLManagedTensorVersioned>>> {
    let Some(borrowed) = table.borrowed(object).attempt(object.py())? else { return Ok(None) };
    // SAFETY: the table exported the tensor to us alone.
    let Ok(foreign) = (unsafe { Foreign::from_raw(borrowed) }) else { return Ok(None) };
    if let Some(lazy) = lazy {
        let code = foreign.dtype().code;
        lazy.check(object, code == DLDataTypeCode::COMPLEX)?;
        // `__dlpack__` refuses tensors that require gradients, with advice. Integers never require gradients.
        let is_integer = matches!(code, DLDataTypeCode::INT | DLDataTypeCode::UINT | DLDataTypeCode::BOOL);
        if !is_integer && torch::requires_grad(object)? {
            return Ok(None);
        }
    }
    Ok(Some(foreign))
}

/// Step 3.
fn ask<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(name!(py, "__dlpack__"))? else { return Ok(None) };
    static NEWEST: OnceCell<Py<PyTuple>> = OnceCell::new();
    let newest = made_once(&NEWEST, || {
        let newest = (DLPackVersion::CURRENT_MAJOR, DLPackVersion::CURRENT_MINOR);
        newest.into_pyobject(py).map(Bound::unbind)
    })?;
    let options = PyDict::new(py);
    options.set_item(name!(py, "max_version"), newest)?;
    match method.call((), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0().map(Some),
        answer => answer.map(Some),
    }
}
