//! Methods that parse their arguments as fast as a C function.
//!
//! 1. Python passes the values in an array, and the names of the last values in a tuple (`METH_FASTCALL`).
//! 2. Names in a program are interned, and so are ours: comparing addresses finds the parameter. Only names without
//!    a match are compared as text.
//! 3. Every parameter is optional, and None means the same as omitting it.
//! 4. A caller in C passes one tuple of names at every call, so the parameters of the last tuple's names are kept.
//!
//! PyO3 compares the text of each name, and collects the arguments before it converts them, which costs as much as
//! all of `__dlpack__`.
//!
//! Source: Python C API, "Common Object Structures", `METH_FASTCALL | METH_KEYWORDS`.

use crate::python::c_entry;
use crate::python::made_once::made_once;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{Borrowed, PyClass, PyTypeInfo};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use zarrow_array::fork::OnceCell;

/// Values of a method's parameters, in order.
pub type Values<'a, 'py, const N: usize> = [Option<Borrowed<'a, 'py, PyAny>>; N];

/// Names of a method's parameters.
#[derive(Default)]
pub struct Names<const N: usize> {
    interned: OnceCell<[Py<PyString>; N]>,
    /// Places of the last call's names, a byte each (step 4).
    last: LastTuple,
}

impl<const N: usize> Names<N> {
    /// Creates names that are not interned yet.
    pub const fn new() -> Names<N> {
        Names { interned: OnceCell::new(), last: LastTuple::new() }
    }
}

/// The last tuple that a function got, and the number computed from it. Only the GIL protects both from changes by
/// other threads.
#[derive(Default)]
pub struct LastTuple {
    tuple: AtomicPtr<ffi::PyObject>,
    number: AtomicU64,
}

impl LastTuple {
    /// Creates it without a tuple.
    pub const fn new() -> LastTuple {
        LastTuple { tuple: AtomicPtr::new(null_mut()), number: AtomicU64::new(0) }
    }

    /// Returns the number for `tuple`, by `compute` unless it is the last tuple.
    pub fn number(
        &self,
        tuple: &Bound<'_, PyTuple>,
        compute: impl FnOnce() -> PyResult<u64>,
    ) -> PyResult<u64> {
        if self.tuple.load(Ordering::Relaxed) == tuple.as_ptr() {
            return Ok(self.number.load(Ordering::Relaxed));
        }
        let number = compute()?;
        // The kept reference prevents another tuple from getting this address.
        let before = self.tuple.swap(tuple.clone().into_ptr(), Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
        // SAFETY: attached; the pointer is null or the reference that was put here before.
        drop(unsafe { Bound::from_owned_ptr_or_opt(tuple.py(), before) });
        Ok(number)
    }
}

/// A method with `N` optional parameters.
pub trait FastMethod<const N: usize>: 'static {
    /// Class of the method.
    type Class: PyClass;
    /// Name of the method.
    const NAME: &'static CStr;
    /// Signature for Python's `inspect`, docstring, and a NUL.
    const DOC: &'static str;
    /// Names of the parameters, positional ones first.
    const PARAMETERS: [&'static str; N];
    /// Number of positional parameters.
    const POSITIONAL: usize;

    /// Returns the cell with the interned names.
    fn names() -> &'static Names<N>;

    /// Runs the method.
    fn answer<'py>(
        object: &Bound<'py, Self::Class>,
        values: Values<'_, 'py, N>,
    ) -> PyResult<Bound<'py, PyAny>>;
}

/// Adds the method to its class. It has at most 7 parameters.
pub fn add<M: FastMethod<N>, const N: usize>(py: Python<'_>) -> PyResult<()> {
    const { assert!(N < 8) };
    made_once(&M::names().interned, || Ok(M::PARAMETERS.map(|name| PyString::intern(py, name).unbind())))?;
    let doc = CStr::from_bytes_with_nul(M::DOC.as_bytes())
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: M::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: call::<M, N> },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }));
    // SAFETY: attached, with a class and a definition that are never freed; the function has the form declared by
    // the flags.
    let method = unsafe {
        let made = ffi::PyDescr_NewMethod(M::Class::type_object_raw(py), definition);
        Bound::from_owned_ptr_or_err(py, made)?
    };
    py.get_type::<M::Class>().setattr(PyString::from_bytes(py, M::NAME.to_bytes())?, method)
}

/// The C function of a method.
///
/// # Safety
/// The caller must follow the rules for a `METH_FASTCALL | METH_KEYWORDS` method of `M::Class`; only [`add`]
/// registers it, as such a method.
unsafe extern "C" fn call<M: FastMethod<N>, const N: usize>(
    object: *mut ffi::PyObject,
    values: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls methods attached, on an object of their class (it checked that), which lives during the
    // call, as do the values and the names. The names are null or a tuple; each name has a value after the first
    // `count` values; if there are no values the address may be null.
    let result = unsafe {
        c_entry::enter(|py| {
            let names = Borrowed::from_ptr_or_opt(py, names).map(|names| names.cast_unchecked::<PyTuple>());
            let count = count as usize;
            let values = match count + names.map_or(0, |names| names.len()) {
                0 => &[][..],
                all => std::slice::from_raw_parts(values.cast::<Borrowed<'_, '_, PyAny>>(), all),
            };
            let values = place::<M, N>(values, count, names.as_deref())?;
            M::answer(&Borrowed::from_ptr(py, object).cast_unchecked::<M::Class>(), values)
        })
    };
    result.map_or(null_mut(), Bound::into_ptr)
}

/// Assigns each value to its parameter.
fn place<'a, 'py, M: FastMethod<N>, const N: usize>(
    values: &[Borrowed<'a, 'py, PyAny>],
    count: usize,
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Values<'a, 'py, N>> {
    let mut placed = [None; N];
    if count > M::POSITIONAL {
        let most = M::POSITIONAL;
        return Err(wrong::<M, N>(format!("takes at most {most} positional arguments, got {count}")));
    }
    let (unnamed, named) = values.split_at(count);
    for (place, value) in placed.iter_mut().zip(unnamed) {
        *place = Some(*value);
    }
    if let Some(names) = names {
        let places = M::names().last.number(names, || {
            let mut places = [0; 8];
            for (name, place) in names.iter_borrowed().zip(&mut places) {
                *place = parameter::<M, N>(name)? as u8;
            }
            Ok(u64::from_le_bytes(places))
        })?;
        for (value, parameter) in named.iter().zip(places.to_le_bytes()) {
            let parameter = usize::from(parameter);
            if placed[parameter].replace(*value).is_some() {
                return Err(wrong::<M, N>(format!("got {} twice", M::PARAMETERS[parameter])));
            }
        }
    }
    // Step 3.
    Ok(placed.map(|value| value.filter(|value| !value.is_none())))
}

/// Step 2.
fn parameter<M: FastMethod<N>, const N: usize>(name: Borrowed<'_, '_, PyAny>) -> PyResult<usize> {
    let interned = M::names().interned.get();
    if let Some(found) = interned.and_then(|known| known.iter().position(|known| known.is(&*name))) {
        return Ok(found);
    }
    let name = name.cast::<PyString>()?;
    let name = name.to_str()?;
    let found = M::PARAMETERS.iter().position(|known| *known == name);
    found.ok_or_else(|| wrong::<M, N>(format!("has no parameter {name}")))
}

#[cold]
fn wrong<M: FastMethod<N>, const N: usize>(what: String) -> PyErr {
    PyTypeError::new_err(format!("{}() {what}", M::NAME.to_string_lossy()))
}
