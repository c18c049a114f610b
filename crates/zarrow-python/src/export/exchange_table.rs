//! The DLPack C exchange API of other libraries: converts a tensor to their Python object without a capsule.
//!
//! 1. The type, not the object, has the table, as `__dlpack_c_exchange_api__`, in a capsule.
//! 2. The table may have a newer version than ours; then it links to older ones, one of which may be readable.
//! 3. None of its functions waits for a stream; CPU memory has no streams.
//!
//! Source: the DLPack 1.3 header, `DLPackExchangeAPI`.

use crate::python::made_once::name;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::CStr;
use std::ptr::{NonNull, null_mut};
use zarrow_dlpack::{DLManagedTensorVersioned, DLPackExchangeAPI, Owned};

/// Name of a capsule with a table.
pub const NAME: &CStr = c"dlpack_exchange_api";

/// The table of a type.
#[derive(Clone, Copy)]
pub struct ExchangeTable(&'static DLPackExchangeAPI);

impl ExchangeTable {
    /// Returns the table of `class`, if it has a readable one.
    pub fn from_class(class: &Bound<'_, PyType>) -> PyResult<Option<ExchangeTable>> {
        // Step 1.
        let Some(capsule) = class.getattr_opt(name!(class.py(), "__dlpack_c_exchange_api__"))? else {
            return Ok(None);
        };
        // SAFETY: attached, with a live object. A capsule of this name has a table that lives as long as the
        // process.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) != 1 {
                return Ok(None);
            }
            let header = ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr());
            // Step 2.
            Ok(DLPackExchangeAPI::readable(header.cast()).map(ExchangeTable))
        }
    }

    /// Exports the tensor of `object`, an exact instance of the table's class. Nothing is copied.
    pub fn borrowed(self, object: &Bound<'_, PyAny>) -> PyResult<NonNull<DLManagedTensorVersioned>> {
        let lend = self.0.managed_tensor_from_py_object_no_sync.ok_or_else(missing)?;
        let mut tensor = null_mut();
        // SAFETY: attached, with a live object of the table's class.
        match unsafe { lend(object.as_ptr().cast(), &mut tensor) } {
            0 => NonNull::new(tensor).ok_or_else(missing),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// Creates an object of the table's class from `tensor`. Nothing is copied.
    pub fn object(
        self,
        py: Python<'_>,
        tensor: Owned<DLManagedTensorVersioned>,
    ) -> PyResult<Bound<'_, PyAny>> {
        let take = self.0.managed_tensor_to_py_object_no_sync.ok_or_else(missing)?;
        let mut object = null_mut();
        // SAFETY: attached. The function takes over the tensor, also if it fails, and returns a new reference.
        unsafe {
            match take(tensor.into_raw().as_ptr(), &mut object) {
                0 => Bound::from_owned_ptr_or_err(py, object.cast()),
                _ => Err(PyErr::fetch(py)),
            }
        }
    }
}

fn missing() -> PyErr {
    PyBufferError::new_err("the DLPack exchange API of the library is incomplete")
}
