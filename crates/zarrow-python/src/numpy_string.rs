//! Strings into a NumPy `StringDType` array, by NumPy's C functions and not by way of Python strings.
//!
//! 1. NumPy makes an array of empty strings, of a dtype of its own: each such dtype has an allocator.
//! 2. While the allocator is held (it is a lock, so that no Python code runs meanwhile) each element is packed: NumPy
//!    copies its bytes.
//!
//! Source: NumPy C API, "Numpy Static String API", since 2.0; the places in the table are fixed.

use crate::numpy;
use crate::numpy_api::NumpyApi;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use std::ffi::{c_char, c_int, c_void};
use zarrow_array::{DataType, Variable};

/// Bytes of one packed string, as NumPy's ABI has it on machines of 64 bits.
const PACKED_NBYTES: usize = 16;

type Acquire = unsafe extern "C" fn(*const c_void) -> *mut c_void;
type Pack = unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, usize) -> c_int;
type Release = unsafe extern "C" fn(*mut c_void);

/// A new one-dimensional `StringDType` array of the elements. The bytes are copied, once.
pub fn strings<'py>(py: Python<'py>, variable: &Variable) -> PyResult<Bound<'py, PyAny>> {
    let dtype = numpy::dtype(py, &DataType::String)?;
    let array = numpy::module(py)?.call_method1("empty", (variable.size(), dtype))?;
    let dtype = array.getattr("dtype")?;
    let item_size: usize = dtype.getattr("itemsize")?.extract()?;
    if item_size != PACKED_NBYTES {
        return Err(PyImportError::new_err(format!(
            "NumPy packs strings into {item_size} bytes, not {PACKED_NBYTES}"
        )));
    }
    let data: usize = array.getattr("ctypes")?.getattr("data")?.extract()?;
    let api = NumpyApi::get(py)?;
    let dtype = dtype.as_ptr().addr();
    let packed = py.detach(|| {
        // SAFETY: the array is new and alive (`array` holds it), of as many packed strings as there are elements, its
        // dtype is its own, and nobody else knows of it. No Python code runs while the allocator is held. The types
        // are those of NumPy 2 at these places.
        unsafe {
            let (pack, release) = (api.function::<314, Pack>(), api.function::<318, Release>());
            let allocator = api.function::<316, Acquire>()(std::ptr::with_exposed_provenance(dtype));
            let place = std::ptr::with_exposed_provenance_mut::<u8>(data);
            // Nothing may panic before the release: NumPy would wait for the allocator to free the array.
            let packed = (0..variable.size()).all(|index| {
                // Offsets that another library changed after all may lead nowhere.
                let bytes = variable.element(index).unwrap_or_default();
                let place = place.add(index * PACKED_NBYTES).cast::<c_void>();
                pack(allocator, place, bytes.as_ptr().cast(), bytes.len()) == 0
            });
            release(allocator);
            packed
        }
    });
    if packed {
        Ok(array)
    } else {
        Err(pyo3::exceptions::PyMemoryError::new_err("NumPy has no memory for the strings"))
    }
}
