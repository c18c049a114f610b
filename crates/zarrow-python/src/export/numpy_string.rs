//! Conversion of strings to and from NumPy `StringDType` arrays, through NumPy's C functions instead of Python
//! strings.
//!
//! 1. NumPy creates an array of empty strings with a new dtype: each such dtype has its own allocator.
//! 2. While the allocator is held (it is a lock, so no Python code may run), each element is packed: NumPy copies
//!    its bytes.
//! 3. In the other direction each element is loaded while the allocator is held, and its bytes are copied: they may
//!    move once it is released. An array may have any strides.
//! 4. A missing element is loaded as the dtype's missing value, if that is text.
//!
//! Source: NumPy C API, "Numpy Static String API", since 2.0; the slots of the table are fixed.

use crate::export::numpy;
use crate::export::numpy_api::NumpyApi;
use crate::python::error::Raise;
use pyo3::exceptions::{PyImportError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ffi::{c_char, c_int, c_void};
use zarrow_array::allocation::{self, Grow};
use zarrow_array::{DataType, Variable, shape};

/// Bytes of one packed string in NumPy's ABI on 64-bit machines.
const PACKED_NBYTES: usize = 16;

type Acquire = unsafe extern "C" fn(*const c_void) -> *mut c_void;
type Pack = unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, usize) -> c_int;
type Load = unsafe extern "C" fn(*mut c_void, *const c_void, *mut Loaded) -> c_int;
type Release = unsafe extern "C" fn(*mut c_void);

/// `npy_static_string`: location of an element's bytes, valid while the allocator is held.
#[repr(C)]
struct Loaded {
    nbytes: usize,
    bytes: *const u8,
}

/// Creates a one-dimensional `StringDType` array of the elements. The bytes are copied once.
pub fn strings<'py>(py: Python<'py>, variable: &Variable) -> PyResult<Bound<'py, PyAny>> {
    let dtype = numpy::dtype(py, &DataType::String)?;
    let array = numpy::module(py)?.call_method1("empty", (variable.size(), dtype))?;
    let dtype = array.getattr("dtype")?;
    check_item_size(&dtype)?;
    let data: usize = array.getattr("ctypes")?.getattr("data")?.extract()?;
    let api = NumpyApi::get(py)?;
    let dtype = dtype.as_ptr().addr();
    let packed = py.detach(|| {
        // SAFETY: the array is new and alive (`array` holds it), has as many packed strings as there are elements,
        // has its own dtype, and is not shared yet. No Python code runs while the allocator is held. The types are
        // those of NumPy 2 in these slots.
        unsafe {
            let (pack, release) = (api.function::<314, Pack>(), api.function::<318, Release>());
            let allocator = api.function::<316, Acquire>()(std::ptr::with_exposed_provenance(dtype));
            let place = std::ptr::with_exposed_provenance_mut::<u8>(data);
            // Nothing may panic before the release: otherwise NumPy would deadlock on the allocator when it frees
            // the array.
            let packed = (0..variable.size()).all(|index| {
                // Offsets may be invalid if another library has changed them.
                let bytes = variable.element(index).unwrap_or_default();
                let place = place.add(index * PACKED_NBYTES).cast::<c_void>();
                pack(allocator, place, bytes.as_ptr().cast(), bytes.len()) == 0
            });
            release(allocator);
            packed
        }
    });
    if packed { Ok(array) } else { Err(PyMemoryError::new_err("NumPy could not allocate the strings")) }
}

/// The copied elements of a string array.
#[derive(Debug, Default)]
pub struct Strings {
    /// End of each element as an `i64`, preceded by 0.
    pub offsets: Vec<u8>,
    /// Bytes of all elements.
    pub data: Vec<u8>,
    /// 1 for missing elements; empty if no element is missing.
    pub missing: Vec<u8>,
}

impl Strings {
    /// Reserves room for `count` elements.
    pub fn with_capacity(count: usize) -> zarrow_array::Result<Strings> {
        let nbytes = count.saturating_add(1).saturating_mul(size_of::<i64>());
        let mut strings = Strings { offsets: allocation::with_capacity(nbytes)?, ..Strings::default() };
        strings.offsets.try_append(&0i64.to_ne_bytes())?;
        Ok(strings)
    }

    /// Appends element `index` of `count`; `None` is a missing element.
    pub fn push(&mut self, bytes: Option<&[u8]>, index: usize, count: usize) -> zarrow_array::Result<()> {
        match bytes {
            Some(bytes) => self.data.try_append(bytes)?,
            None => {
                self.missing.try_resize(count, 0)?;
                if let Some(missing) = self.missing.get_mut(index) {
                    *missing = 1;
                }
            }
        }
        self.offsets.try_append(&(self.data.len() as i64).to_ne_bytes())
    }
}

/// Copies the elements of a `StringDType` array, in C order of its axes (steps 3 and 4).
pub fn load(array: &Bound<'_, PyAny>) -> PyResult<Strings> {
    let py = array.py();
    let dtype = array.getattr("dtype")?;
    check_item_size(&dtype)?;
    let extents: Vec<u64> = array.getattr("shape")?.extract()?;
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    let data: usize = array.getattr("ctypes")?.getattr("data")?.extract()?;
    let stands_for_missing = dtype.getattr_opt("na_object")?;
    let stands_for_missing = match &stands_for_missing {
        Some(object) => object.cast::<PyString>().ok().map(|text| text.to_str()).transpose()?,
        None => None,
    };
    let count = shape::nbytes(&extents, 1).raise(py)?;
    let mut strings = Strings::with_capacity(count).raise(py)?;
    let api = NumpyApi::get(py)?;
    let dtype = dtype.as_ptr().addr();
    let loaded = py.detach(|| {
        let (mut position, mut offset) = (vec![0u64; extents.len()], 0isize);
        // SAFETY: the array is alive (`array` holds it), and NumPy reports that its packed strings are at these
        // addresses and strides. Strings are not written to while their allocator is held, and no Python code runs
        // then. The types are those of NumPy 2 in these slots.
        unsafe {
            let (load, release) = (api.function::<313, Load>(), api.function::<318, Release>());
            let allocator = api.function::<316, Acquire>()(std::ptr::with_exposed_provenance(dtype));
            let start = std::ptr::with_exposed_provenance::<u8>(data);
            // Nothing may panic before the release: otherwise NumPy would deadlock on the allocator when it frees
            // the array.
            let mut add_all = || -> zarrow_array::Result<bool> {
                for index in 0..count {
                    let mut view = Loaded { nbytes: 0, bytes: std::ptr::null() };
                    let bytes = match load(allocator, start.wrapping_offset(offset).cast(), &mut view) {
                        0 if view.nbytes == 0 || view.bytes.is_null() => Some(&[][..]),
                        0 => Some(std::slice::from_raw_parts(view.bytes, view.nbytes)),
                        1 => stands_for_missing.map(str::as_bytes),
                        _ => return Ok(false),
                    };
                    strings.push(bytes, index, count)?;
                    offset = offset.wrapping_add(next(&mut position, &extents, &strides));
                }
                Ok(true)
            };
            let loaded = add_all();
            release(allocator);
            loaded
        }
    });
    if loaded.raise(py)? {
        Ok(strings)
    } else {
        Err(PyValueError::new_err("NumPy cannot load the strings of this array: call .copy() first"))
    }
}

/// Advances to the next element in C order; returns the distance in bytes.
fn next(position: &mut [u64], extents: &[u64], strides: &[isize]) -> isize {
    let mut step = 0isize;
    for ((position, extent), stride) in position.iter_mut().zip(extents).zip(strides).rev() {
        *position += 1;
        step = step.wrapping_add(*stride);
        if *position < *extent {
            break;
        }
        step = step.wrapping_sub(stride.wrapping_mul(*extent as isize));
        *position = 0;
    }
    step
}

/// Refuses a NumPy with another size of packed strings.
fn check_item_size(dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    match dtype.getattr("itemsize")?.extract::<usize>()? {
        PACKED_NBYTES => Ok(()),
        other => Err(PyImportError::new_err(format!(
            "NumPy packs strings into {other} bytes, expected {PACKED_NBYTES}: zarrow supports NumPy 2"
        ))),
    }
}
