//! Strings into a NumPy `StringDType` array, by NumPy's C functions and not by way of Python strings.
//!
//! 1. NumPy makes an array of empty strings, of a dtype of its own: each such dtype has an allocator.
//! 2. NumPy's table of C functions is taken from its capsule, once.
//! 3. While the allocator is held (it is a lock, so that no Python code runs meanwhile) each element is packed: NumPy
//!    copies its bytes.
//!
//! Source: NumPy C API, "Numpy Static String API", since 2.0; the places in the table are fixed.

use crate::numpy;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::{c_char, c_int, c_void};
use zarrow_array::{DataType, Variable};

/// Bytes of one packed string, as NumPy's ABI has it on machines of 64 bits.
const PACKED_NBYTES: usize = 16;

/// The C functions that are needed.
#[derive(Clone, Copy)]
struct Functions {
    pack: unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, usize) -> c_int,
    acquire: unsafe extern "C" fn(*const c_void) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
}

/// Step 2.
fn functions(py: Python<'_>) -> PyResult<Functions> {
    static TABLE: PyOnceLock<usize> = PyOnceLock::new();
    let table = TABLE.get_or_try_init(py, || {
        let capsule = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?;
        // SAFETY: attached, with a live object; what is no capsule without a name gives null and an exception.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
        if table.is_null() { Err(PyErr::fetch(py)) } else { Ok(table.addr()) }
    })?;
    let table = std::ptr::with_exposed_provenance::<*const c_void>(*table);
    // SAFETY: NumPy 2 keeps the table for the life of the process, with these functions of these types at these
    // places; `empty_strings` made an array of a type that only NumPy 2 has.
    unsafe {
        Ok(Functions {
            pack: std::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, usize) -> c_int,
            >(*table.add(314)),
            acquire: std::mem::transmute::<*const c_void, unsafe extern "C" fn(*const c_void) -> *mut c_void>(
                *table.add(316),
            ),
            release: std::mem::transmute::<*const c_void, unsafe extern "C" fn(*mut c_void)>(*table.add(318)),
        })
    }
}

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
    let functions = functions(py)?;
    let dtype = dtype.as_ptr().addr();
    let packed = py.detach(|| {
        // SAFETY: the array is new and alive (`array` holds it), of as many packed strings as there are elements, its
        // dtype is its own, and nobody else knows of it. No Python code runs while the allocator is held.
        unsafe {
            let allocator = (functions.acquire)(std::ptr::with_exposed_provenance(dtype));
            let place = std::ptr::with_exposed_provenance_mut::<u8>(data);
            let packed = variable.offsets().windows(2).enumerate().all(|(index, pair)| {
                let bytes = &variable.data()[pair[0] as usize..pair[1] as usize];
                let place = place.add(index * PACKED_NBYTES).cast::<c_void>();
                (functions.pack)(allocator, place, bytes.as_ptr().cast(), bytes.len()) == 0
            });
            (functions.release)(allocator);
            packed
        }
    });
    if packed {
        Ok(array)
    } else {
        Err(pyo3::exceptions::PyMemoryError::new_err("NumPy has no memory for the strings"))
    }
}
