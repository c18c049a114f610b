//! NumPy's C functions, from the table that NumPy exports to extensions.
//!
//! The table is in a capsule and is fetched once. Its slots are fixed within the ABI of NumPy 2.
//!
//! Arrays of numbers are read by the fields of their C struct, which is faster than the buffer protocol.
//!
//! Source: NumPy's `__multiarray_api.h` and `ndarraytypes.h`; NumPy C API, "Array API".

use crate::python::importing::import;
use crate::python::made_once::made_once;
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::{MaybeUninit, transmute_copy};
use zarrow_array::fork::OnceCell;
use zarrow_array::{Number, SharedTensor};
use zarrow_dlpack::MAX_NDIM;

/// `NPY_ABI_VERSION` of NumPy 2.
const ABI: c_uint = 0x0200_0000;
/// `NPY_ARRAY_WRITEABLE`.
const WRITEABLE: c_int = 0x0400;

type GetVersion = unsafe extern "C" fn() -> c_uint;
type NewFromDescr = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut ffi::PyObject,
    c_int,
    *const ffi::Py_ssize_t,
    *const ffi::Py_ssize_t,
    *mut c_void,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBaseObject = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;

/// `NPY_ARRAY_WARN_ON_WRITE`: NumPy warns on a write, and its buffers are read-only.
const WARN_ON_WRITE: c_int = c_int::MIN;
/// `NPY_CLONGDOUBLE` and `NPY_HALF`: the built-in numbers are those up to the first, and the second.
const COMPLEX_LONG_DOUBLE: c_int = 16;
const HALF: c_int = 23;

/// The header of a Python object: two words in interpreters with a GIL, which the wheel requires.
type Head = [usize; 2];

/// The first fields of `PyArrayObject`, fixed by NumPy's ABI.
#[repr(C)]
struct ArrayFields {
    head: Head,
    data: *mut u8,
    ndim: c_int,
    shape: *const i64,
    strides: *const i64,
    base: *const c_void,
    descriptor: *const DescriptorFields,
    flags: c_int,
}

/// The first fields of `PyArray_Descr`, fixed by NumPy's ABI.
#[repr(C)]
struct DescriptorFields {
    head: Head,
    class: *const c_void,
    kind: u8,
    letter: u8,
    byte_order: u8,
    old_flags: u8,
    number: c_int,
    flags: u64,
    item_size: ffi::Py_ssize_t,
}

/// The memory of a NumPy array of numbers.
pub struct Numbers<'a> {
    /// The address of the first element.
    pub pointer: *mut u8,
    /// The extents.
    pub shape: &'a [i64],
    /// The distances of neighbours, in bytes.
    pub strides: &'a [i64],
    /// The element type.
    pub number: Number,
    /// Whether the byte order is not the machine's.
    pub is_swapped: bool,
    /// Whether NumPy exports it as read-only.
    pub read_only: bool,
}

/// The table.
#[derive(Clone, Copy)]
pub struct NumpyApi(*const *const c_void);

// SAFETY: NumPy does not write to the table after its creation.
unsafe impl Send for NumpyApi {}
// SAFETY: as above.
unsafe impl Sync for NumpyApi {}

static TABLE: OnceCell<NumpyApi> = OnceCell::new();

impl NumpyApi {
    /// Returns the table, importing NumPy if necessary.
    pub fn get(py: Python<'_>) -> PyResult<NumpyApi> {
        made_once(&TABLE, || {
            let capsule = import(py, "numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?;
            // SAFETY: attached, with a live object; for anything but an unnamed capsule this returns null and sets
            // an exception.
            let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()) };
            if table.is_null() {
                return Err(PyErr::fetch(py));
            }
            let table = NumpyApi(table.cast());
            // SAFETY: the function in this slot returns the ABI in every version of NumPy.
            match unsafe { table.function::<0, GetVersion>()() } {
                ABI => Ok(table),
                other => Err(PyImportError::new_err(format!("NumPy has ABI {other:#x}, not {ABI:#x}"))),
            }
        })
        .copied()
    }

    /// Returns the function in a slot.
    ///
    /// # Safety
    /// `F` must be the type of NumPy 2's function in this slot.
    pub unsafe fn function<const PLACE: usize, F: Copy>(self) -> F {
        const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
        // SAFETY: the table has the slot, by the caller's contract, and holds a function's address there.
        unsafe { transmute_copy(&*self.0.add(PLACE)) }
    }
}

/// Creates a NumPy array over the memory of `tensor`, kept alive by `owner`. Nothing is copied.
///
/// `dtype` is a `numpy.dtype` for the elements, of the tensor's item size.
pub fn array<'py>(
    owner: &Bound<'py, PyAny>,
    tensor: &SharedTensor,
    dtype: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    let api = NumpyApi::get(py)?;
    let ndim = tensor.shape().len();
    if ndim > MAX_NDIM {
        return Err(PyValueError::new_err(format!("NumPy arrays have at most {MAX_NDIM} axes, not {ndim}")));
    }
    let mut strides = [const { MaybeUninit::<ffi::Py_ssize_t>::uninit() }; MAX_NDIM];
    for (place, stride) in strides.iter_mut().zip(tensor.strides()) {
        place.write(*stride as ffi::Py_ssize_t * tensor.item_size() as ffi::Py_ssize_t);
    }
    // SAFETY: these are the types of NumPy 2 in these slots. Extents are `i64`, which is NumPy's own type on 64-bit
    // machines, and there are as many strides as extents; they describe memory inside the tensor's (each
    // constructor of `SharedTensor` checked that), which lives as long as `owner`, and the array holds a reference
    // to `owner`. The call steals the references to the dtype and the owner, also if it fails.
    unsafe {
        let class = *api.0.add(2);
        let made = api.function::<94, NewFromDescr>()(
            class.cast_mut().cast(),
            dtype.into_ptr(),
            ndim as c_int,
            tensor.shape().as_ptr().cast(),
            strides.as_ptr().cast(),
            tensor.pointer().as_ptr().cast(),
            if tensor.is_read_only() { 0 } else { WRITEABLE },
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, made)?;
        match api.function::<282, SetBaseObject>()(array.as_ptr(), owner.clone().into_ptr()) {
            0 => Ok(array),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// Returns the memory of `object` if it is a `numpy.ndarray` of built-in numbers. `None` for other objects, for
/// subclasses, and until the [table](NumpyApi::get) is loaded.
pub fn numbers<'a>(object: &'a Bound<'_, PyAny>) -> Option<Numbers<'a>> {
    let api = TABLE.get()?;
    // SAFETY: slot 2 holds the address of the array class.
    let class: *const c_void = unsafe { *api.0.add(2) };
    if object.get_type_ptr().cast_const().cast() != class {
        return None;
    }
    // SAFETY: the ABI was checked when the table was loaded, so that the array begins with these fields. It keeps its
    // descriptor alive, and no other thread changes it while this one holds the GIL.
    let (array, element) = unsafe {
        let array = &*object.as_ptr().cast_const().cast::<ArrayFields>();
        (array, &*array.descriptor)
    };
    if element.number > COMPLEX_LONG_DOUBLE && element.number != HALF {
        return None;
    }
    let number = Number::from_kind_and_size(element.kind, usize::try_from(element.item_size).ok()?)?;
    let ndim = usize::try_from(array.ndim).ok()?;
    let axes = |axes: *const i64| match ndim {
        0 => &[][..],
        // SAFETY: an array has `ndim` extents and strides; only without axes may the address be null.
        _ => unsafe { std::slice::from_raw_parts(axes, ndim) },
    };
    let foreign = if cfg!(target_endian = "big") { b'<' } else { b'>' };
    Some(Numbers {
        pointer: array.data,
        shape: axes(array.shape),
        strides: axes(array.strides),
        number,
        is_swapped: element.byte_order == foreign,
        read_only: array.flags & WRITEABLE == 0 || array.flags & WARN_ON_WRITE != 0,
    })
}

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "extents are passed to NumPy, and read from its arrays, as `i64`, which requires a 64-bit machine"
);
