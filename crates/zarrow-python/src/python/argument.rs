//! Conversion of arguments, with our error messages; PyO3 adds the name of the parameter as a note.
//!
//! Typed parameters of public functions use `#[pyo3(from_py_with = argument)]`, since PyO3's own conversions name types
//! of Rust. Unknown keywords arrive in `**unknown`, and [`known`] refuses them with a hint. A test calls every public
//! function with wrong types.

use crate::python::error::{Attempt, indexing};
use crate::python::importing::import;
use crate::python::interpreter_exit;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PySlice, PyString, PyTuple};
use std::num::NonZeroU64;

/// Type of an argument.
pub trait Argument<'a, 'py>: Sized {
    /// Returns the name of this type in messages, such as "a str".
    fn expected() -> String;

    /// Converts an object; `None` means that it has another type.
    fn convert(object: &'a Bound<'py, PyAny>) -> PyResult<Option<Self>>;
}

/// Converts an argument: `#[pyo3(from_py_with = argument)]`.
pub fn argument<'a, 'py, T: Argument<'a, 'py>>(object: &'a Bound<'py, PyAny>) -> PyResult<T> {
    interpreter_exit::guard_thread();
    match T::convert(object)? {
        Some(value) => Ok(value),
        None => Err(refused(object, &T::expected())),
    }
}

/// Implements [`Argument`] by PyO3's own conversion.
macro_rules! arguments {
    ($($type:ty => $expected:literal),* $(,)?) => {$(
        impl<'a, 'py> Argument<'a, 'py> for $type {
            fn expected() -> String {
                $expected.to_owned()
            }

            fn convert(object: &'a Bound<'py, PyAny>) -> PyResult<Option<Self>> {
                object.extract::<$type>().map_err(PyErr::from).attempt(object.py())
            }
        }
    )*};
}

arguments! {
    &'a str => "a str",
    bool => "True or False",
    i64 => "an int",
    isize => "an int",
    u64 => "an int from 0 to 2^64 - 1",
    usize => "an int from 0 to 2^64 - 1",
    NonZeroU64 => "an int of 1 or more",
    Bound<'py, PySlice> => "a slice, such as slice(0, 10)",
    Vec<u64> => "ints from 0 to 2^64 - 1",
    Vec<i64> => "ints",
    Vec<Option<String>> => "a list with a str or None for each axis",
}

impl<'a, 'py, T: Argument<'a, 'py>> Argument<'a, 'py> for Option<T> {
    fn expected() -> String {
        format!("{} or None", T::expected())
    }

    fn convert(object: &'a Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        match object.is_none() {
            true => Ok(Some(None)),
            false => Ok(T::convert(object)?.map(Some)),
        }
    }
}

/// Refuses unknown keywords, with a hint.
pub fn known(py: Python<'_>, function: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    interpreter_exit::guard_thread();
    match unknown {
        None => Ok(()),
        Some(unknown) => import(py, "zarrow.hints.unknown_keywords")?
            .call_method1("refuse_keywords", (function, unknown))
            .map(drop),
    }
}

/// Casts an argument to a dict.
pub fn dict<'a, 'py>(object: &'a Bound<'py, PyAny>, name: &str) -> PyResult<&'a Bound<'py, PyDict>> {
    object.cast::<PyDict>().map_err(|_| match object.get_type().name() {
        // The value may be a secret.
        Ok(found) => PyTypeError::new_err(format!("expected a dict as {name}, got {found}")),
        Err(error) => error,
    })
}

/// Returns the index of an axis, which may be counted from the end.
pub fn axis_to_append(py: Python<'_>, axis: isize, ndim: usize) -> PyResult<usize> {
    if ndim == 0 {
        return Err(indexing(py, "an array of shape () has no axis to append along"));
    }
    let counted = if axis < 0 { ndim.checked_add_signed(axis) } else { usize::try_from(axis).ok() };
    counted.filter(|axis| *axis < ndim).ok_or_else(|| {
        let most = ndim - 1;
        indexing(py, format!("axis {axis} of an array of {ndim} axes: expected -{ndim} to {most}"))
    })
}

/// Returns an error that shows the value if its text is short, else its type: a `ValueError` for an int out of range.
pub fn refused(object: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let is_int = object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>();
    let expected = if is_int && expected == "an int" { "an int from -2^63 to 2^63 - 1" } else { expected };
    let is_shown = is_int
        || object.is_none()
        || object.is_instance_of::<PyBool>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyTuple>();
    let shown = match is_shown {
        true => object.repr().map(|text| text.to_string()).ok().filter(|text| text.len() <= 60),
        false => None,
    };
    let found = match shown {
        Some(text) => Ok(text),
        None => object.get_type().name().map(|name| name.to_string()),
    };
    match found {
        Ok(found) if is_int && expected.starts_with("an int") => {
            PyValueError::new_err(format!("expected {expected}, got {found}"))
        }
        Ok(found) => PyTypeError::new_err(format!("expected {expected}, got {found}")),
        Err(error) => error,
    }
}

/// Parses the names of a table's columns: one name, or a list.
pub fn column_names(columns: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(name) = columns.extract::<String>() {
        return Ok(vec![name]);
    }
    columns.extract::<Vec<String>>().map_err(|_| {
        let found = columns.get_type();
        PyTypeError::new_err(format!(
            "expected columns to be names of arrays, such as [\"id\", \"height\"], got {found}"
        ))
    })
}
