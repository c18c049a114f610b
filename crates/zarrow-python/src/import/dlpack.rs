//! DLPack, from the side of the one who asks.
//!
//! 1. A capsule is taken as it is.
//! 2. `__dlpack__` is asked for the newest version that is read here, and a producer of before DLPack 1.0, which
//!    knows no versions, once more without one.
//!
//! 3. A tensor of PyTorch's that is the negative or the conjugate of its memory, which DLPack cannot say and PyTorch
//!    itself does not refuse in every case, is refused.
//!
//! Source: array API, `from_dlpack`; DLPack 1.3.

use super::torch;
use crate::capsule::{self, Consumed};
use crate::error::{Raise, exchange};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use zarrow_array::SharedTensor;
use zarrow_array::import::dlpack;
use zarrow_dlpack::{DLPackVersion, IS_COPIED};

/// The tensor that `object` lends; `None` where it speaks no DLPack.
pub fn tensor(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Option<SharedTensor>> {
    let py = object.py();
    let is_torch = torch::is_tensor(object)?;
    if is_torch {
        torch::check(object)?;
    }
    let capsule = match object.cast::<PyCapsule>() {
        Ok(capsule) => capsule.clone().into_any(),
        Err(_) => match ask(object)? {
            Some(capsule) => capsule,
            None => return Ok(None),
        },
    };
    let tensor = match capsule::consume(&capsule)? {
        Consumed::Versioned(foreign) => {
            if copy == Some(false) && foreign.flags() & IS_COPIED != 0 {
                return Err(exchange(py, "needs_copy", "the producer copied, which copy=False forbids"));
            }
            dlpack::versioned(foreign)
        }
        Consumed::Legacy(foreign) => dlpack::legacy(foreign, is_torch),
    };
    tensor.raise(py).map(Some)
}

/// Step 2.
fn ask<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some(method) = object.getattr_opt("__dlpack__")? else { return Ok(None) };
    let options = PyDict::new(py);
    options.set_item("max_version", (DLPackVersion::CURRENT_MAJOR, DLPackVersion::CURRENT_MINOR))?;
    match method.call((), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0().map(Some),
        answer => answer.map(Some),
    }
}
