//! DLPack, from the side of the one who asks.
//!
//! 1. A capsule is taken as it is.
//! 2. An object whose type has a table of C functions lends its tensor by it. Where that fails, `__dlpack__` knows
//!    better why.
//! 3. `__dlpack__` is asked for the newest version that is read here, and a producer of before DLPack 1.0, which
//!    knows no versions, once more without one.
//! 4. A tensor of PyTorch's has more to say than DLPack can (see `torch`).
//!
//! Source: array API, `from_dlpack`; DLPack 1.3.

use super::producer::{self, Producer};
use super::torch;
use crate::capsule::{self, Consumed};
use crate::error::{Raise, exchange};
use crate::exchange_table::ExchangeTable;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use zarrow_array::SharedTensor;
use zarrow_array::import::dlpack;
use zarrow_dlpack::{DLManagedTensorVersioned, DLPackVersion, Foreign, IS_COPIED};

/// The tensor that `object` lends; `None` where it speaks no DLPack.
pub fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Option<SharedTensor>> {
    let py = object.py();
    let producer = producer::of(object)?;
    if let Some(table) = producer.table
        && let Some(foreign) = by_table(object, table, producer)?
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
    if producer.is_torch {
        torch::check_lazy(object)?;
    }
    let tensor = match consumed {
        Consumed::Versioned(foreign) => {
            if copy == Some(false) && foreign.flags() & IS_COPIED != 0 {
                return Err(exchange(py, "needs_copy", "the producer copied, which copy=False forbids"));
            }
            dlpack::versioned(foreign)
        }
        // PyTorch's memory may always be written to, which its capsules of before 2.9 cannot say.
        Consumed::Legacy(foreign) => dlpack::legacy(foreign, producer.is_torch),
    };
    tensor.raise(py).map(Some)
}

/// Step 2.
fn by_table(
    object: &Bound<'_, PyAny>,
    table: ExchangeTable,
    producer: Producer,
) -> PyResult<Option<Foreign<DLManagedTensorVersioned>>> {
    let Ok(lent) = table.lent(object) else { return Ok(None) };
    // SAFETY: the table gave the tensor to us alone.
    let Ok(foreign) = (unsafe { Foreign::from_raw(lent) }) else { return Ok(None) };
    if producer.is_torch {
        torch::check_lazy(object)?;
        // `__dlpack__` refuses tensors that PyTorch differentiates, and says what to do.
        if torch::requires_grad(object)? {
            return Ok(None);
        }
    }
    Ok(Some(foreign))
}

/// Step 3.
fn ask<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(intern!(py, "__dlpack__"))? else { return Ok(None) };
    let options = PyDict::new(py);
    let newest = (DLPackVersion::CURRENT_MAJOR, DLPackVersion::CURRENT_MINOR);
    options.set_item(intern!(py, "max_version"), newest)?;
    match method.call((), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0().map(Some),
        answer => answer.map(Some),
    }
}
