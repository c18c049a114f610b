//! Strings into a NumPy `StringDType` array and out of one, by NumPy's C functions and not by way of Python strings.
//!
//! 1. NumPy makes an array of empty strings, of a dtype of its own: each such dtype has an allocator.
//! 2. While the allocator is held (it is a lock, so that no Python code runs meanwhile) each element is packed: NumPy
//!    copies its bytes.
//! 3. The other way each element is loaded while the allocator is held, and its bytes are copied: they may move as soon as
//!    it is released. Elements of one array may lie at any distance from each other.
//! 4. An element that is missing is the text that the dtype has for it, where that is text.
//!
//! Source: NumPy C API, "Numpy Static String API", since 2.0; the places in the table are fixed.

use crate::export::numpy;
use crate::export::numpy_api::NumpyApi;
use crate::python::error::Raise;
use pyo3::exceptions::{PyImportError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ffi::{c_char, c_int, c_void};
use zarrow_array::allocation::{self, Grow};
use zarrow_array::{DataType, Variable, shape};

/// Bytes of one packed string, as NumPy's ABI has it on machines of 64 bits.
const PACKED_NBYTES: usize = 16;

type Acquire = unsafe extern "C" fn(*const c_void) -> *mut c_void;
type Pack = unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, usize) -> c_int;
type Load = unsafe extern "C" fn(*mut c_void, *const c_void, *mut Loaded) -> c_int;
type Release = unsafe extern "C" fn(*mut c_void);

/// `npy_static_string`: where the bytes of an element lie, as long as the allocator is held.
#[repr(C)]
struct Loaded {
    nbytes: usize,
    bytes: *const u8,
}

/// A new one-dimensional `StringDType` array of the elements. The bytes are copied, once.
pub fn strings<'py>(py: Python<'py>, variable: &Variable) -> PyResult<Bound<'py, PyAny>> {
    let dtype = numpy::dtype(py, &DataType::String)?;
    let array = numpy::module(py)?.call_method1("empty", (variable.size(), dtype))?;
    let dtype = array.getattr("dtype")?;
    check_item_size(&dtype)?;
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
    if packed { Ok(array) } else { Err(PyMemoryError::new_err("NumPy could not allocate the strings")) }
}

/// The elements of an array of strings, copied.
#[derive(Debug, Default)]
pub struct Strings {
    /// Where each ends, as an `i64`; the first is where they begin.
    pub offsets: Vec<u8>,
    /// The bytes of all.
    pub data: Vec<u8>,
    /// 1 where one is missing; empty where none is.
    pub missing: Vec<u8>,
}

impl Strings {
    /// Room for `count` elements.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn with_capacity(count: usize) -> zarrow_array::Result<Strings> {
        let nbytes = count.saturating_add(1).saturating_mul(size_of::<i64>());
        let mut strings = Strings { offsets: allocation::with_capacity(nbytes)?, ..Strings::default() };
        strings.offsets.try_append(&0i64.to_ne_bytes())?;
        Ok(strings)
    }

    /// Adds an element; without bytes it is missing, the one at `index` of `count`.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
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

/// The elements of a `StringDType` array, in the C order of its axes (steps 3 and 4).
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
        // SAFETY: the array is alive (`array` holds it), and NumPy says that its packed strings lie there, so far apart.
        // Nobody writes to strings of an allocator that is held, and no Python code runs meanwhile. The types are those
        // of NumPy 2 at these places.
        unsafe {
            let (load, release) = (api.function::<313, Load>(), api.function::<318, Release>());
            let allocator = api.function::<316, Acquire>()(std::ptr::with_exposed_provenance(dtype));
            let start = std::ptr::with_exposed_provenance::<u8>(data);
            // Nothing may panic before the release: NumPy would wait for the allocator to free the array.
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

/// Goes on to the next element in C order: gives how many bytes away it is.
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

/// Refuses a NumPy whose strings are packed otherwise.
fn check_item_size(dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    match dtype.getattr("itemsize")?.extract::<usize>()? {
        PACKED_NBYTES => Ok(()),
        other => Err(PyImportError::new_err(format!(
            "NumPy packs strings into {other} bytes, expected {PACKED_NBYTES}: zarrow knows NumPy 2"
        ))),
    }
}
