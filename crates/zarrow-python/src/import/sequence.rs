//! Conversion of Python objects: scalars, and sequences of numbers, times, structures and text.
//!
//! If a list or an array of objects has None, the other elements get the type that they would have without None.
//! Missing elements are filled with another element, or with zero if all are missing.

use super::producer::Family;
use super::text::{self, kind, kind_of, objects};
use super::{array, copied, shared_numpy};
use crate::export::data_type;
use crate::export::numpy;
use crate::python::error::{Attempt, Raise, data_type_mismatch};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, DataType, HOST_ALIGNMENT, Mask};

/// Refuses an object that nests its type at every depth, such as a table with row indexing:
/// NumPy would recurse into it forever.
fn refuse_endless(object: &Bound<'_, PyAny>) -> PyResult<()> {
    /// More than NumPy's maximum number of dimensions.
    const DEPTH: usize = 65;
    let is_sequence = |object: &Bound<'_, PyAny>| -> PyResult<bool> {
        let is_known = object.is_instance_of::<PyList>()
            || object.is_instance_of::<PyTuple>()
            || object.is_instance_of::<PyDict>()
            || object.is_instance_of::<PyString>();
        Ok(!is_known && object.hasattr("__getitem__")? && !object.hasattr("__array__")?)
    };
    let mut inner = object.clone();
    for _ in 0..DEPTH {
        if !is_sequence(&inner)? || !inner.get_type().is(object.get_type()) {
            return Ok(());
        }
        match inner.get_item(0).attempt(object.py())? {
            Some(element) => inner = element,
            None => return Ok(()),
        }
    }
    Err(PyTypeError::new_err(no_array(object)?))
}

/// Converts `object`, a scalar or a sequence of anything that NumPy supports.
///
/// Numbers are converted to the `expected` type if the kind of number is kept: a float does not become an integer.
pub fn from_python(object: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Imported> {
    let py = object.py();
    refuse_endless(object)?;
    let asarray = numpy::module(py)?.getattr("asarray")?;
    let mut array = match expected.is_some_and(DataType::is_variable) {
        true => objects(object)?,
        // Nested tuples have no common shape, and are structures if those are expected.
        false => match asarray.call1((object,)) {
            Err(error) if !matches!(expected, Some(DataType::Struct(_))) => return Err(error),
            array => match array.attempt(py)? {
                Some(array) => array,
                None => objects(object)?,
            },
        },
    };
    if let Some(expected) = expected
        && kind(&array)? == 'f'
        && "iu".contains(text::kind_of(&numpy::dtype(py, expected)?)?)
        && are_integers(object)?
    {
        // NumPy converts mixed integers below and above 2^63 to floats; they may all fit the expected type.
        array = asarray.call1((object, numpy::dtype(py, expected)?))?;
    }
    let kind = kind(&array)?;
    // An integer of more than 64 bits is a number if a type is expected, and NumPy converts Python's dates.
    let is_known = is_text(object)
        || (expected.is_some() && object.is_instance_of::<PyInt>())
        || matches!(expected, Some(DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. }));
    if kind == 'O' && array.getattr("ndim")?.extract::<usize>()? == 0 && !is_known {
        return Err(PyTypeError::new_err(no_array(object)?));
    }
    if (kind == 'U' || kind == 'S') && expected.is_none_or(DataType::is_variable) {
        array = objects(object)?;
    } else if let Some(expected) = expected.filter(|expected| !expected.is_variable()) {
        let dtype = numpy::dtype(py, expected)?;
        let rank = |kind: char| "biufc".find(kind).map(|rank| if rank == 2 { 1 } else { rank });
        let wanted = text::kind_of(&dtype)?;
        let loses = match (rank(kind), rank(wanted)) {
            (Some(found), Some(wanted)) => found > wanted && array.getattr("size")?.extract::<usize>()? > 0,
            // NumPy would convert their ticks to numbers, and the numbers of one unit to dates of another.
            _ => matches!(kind, 'M' | 'm') && kind != wanted,
        };
        if !loses {
            let options = PyDict::new(py);
            options.set_item("dtype", dtype)?;
            // NumPy refuses Python numbers out of range, but wraps its own. Tuples of structures stay tuples.
            let is_number = rank(text::kind(&array)?).is_some() && !matches!(expected, DataType::Struct(_));
            let object = if is_number { array.call_method0("tolist")? } else { object.clone() };
            let made = asarray.call((&object,), Some(&options))?;
            match is_changed(&object, &array, &made)? {
                false => array = made,
                true if "iu".contains(kind) && expected.as_number().is_some() => {
                    return Err(PyOverflowError::new_err(format!("{array} is out of range for {expected}")));
                }
                // The type found differs from the expected one.
                true => {}
            }
        }
    }
    if text::kind(&array)? == 'O' {
        if expected.is_none()
            && let Some(masked) = masked(object, None)?
        {
            return Ok(masked);
        }
        return text::array(&array, expected.filter(|expected| expected.is_variable()));
    }
    match shared_numpy(&array, Family::NumpyArray, None)? {
        // NumPy's new memory may not be aligned for other libraries.
        Imported::Tensor(tensor) if !tensor.pointer().as_ptr().addr().is_multiple_of(HOST_ALIGNMENT) => {
            copied(py, Imported::Tensor(tensor))
        }
        array => Ok(array),
    }
}

/// Returns the masked layout of `object`, with the `expected` type if given; `None` if no element is None, or if
/// there is text and no expected type.
pub fn masked(object: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Option<Imported>> {
    let py = object.py();
    let is_objects = numpy::is_array(object)? && data_type::kind(object)? == 'O';
    if !(object.is_none()
        || is_objects
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>())
    {
        return Ok(None);
    }
    let numpy = numpy::module(py)?;
    let objects = numpy.call_method1("asarray", (object, "O"))?;
    let elements = objects.call_method0("ravel")?.call_method0("tolist")?;
    let elements = elements.cast_into::<PyList>()?;
    let Some(first) = elements.iter().position(|element| element.is_none()) else { return Ok(None) };
    let mut missing = Buffer::zeroed(elements.len()).raise(py)?;
    let present = elements.iter().find(|element| !element.is_none());
    let shape = objects.getattr("shape")?;
    let present = match (present, expected) {
        (Some(present), Some(_)) => present,
        (Some(present), None)
            if !present.is_instance_of::<PyString>() && !present.is_instance_of::<PyBytes>() =>
        {
            present
        }
        (None, Some(expected)) => {
            missing.fill(1);
            let zeros = numpy.call_method1("zeros", (shape, numpy::dtype(py, expected)?))?;
            return joined(py, array(&zeros, Some(expected), None)?, missing, Some(expected));
        }
        _ => return Ok(None),
    };
    for at in first..elements.len() {
        if elements.get_item(at)?.is_none() {
            missing[at] = 1;
            elements.set_item(at, &present)?;
        }
    }
    // One by one, since elements may be tuples (values of structures).
    let filled = numpy.call_method1("empty", (elements.len(), "O"))?;
    for (at, element) in elements.iter().enumerate() {
        filled.set_item(at, element)?;
    }
    let filled = filled.call_method1("reshape", (shape,))?.call_method0("tolist")?;
    joined(py, from_python(&filled, expected)?, missing, expected)
}

fn joined(
    py: Python<'_>,
    elements: Imported,
    missing: Buffer,
    expected: Option<&DataType>,
) -> PyResult<Option<Imported>> {
    match (elements, expected) {
        (Imported::Tensor(tensor), _) if tensor.size() == missing.len() => {
            Ok(Some(Imported::MaskedTensor(tensor, Mask::new(vec![missing]).raise(py)?)))
        }
        // Elements of an unexpected type, such as text, do not match the mask.
        (other, Some(expected)) => Err(data_type_mismatch(py, expected, other.dtype())),
        _ => Ok(None),
    }
}

/// Returns whether a nested sequence only contains Python integers.
fn are_integers(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let elements = objects(object)?.call_method0("ravel")?.call_method0("tolist")?;
    let elements = elements.cast::<PyList>()?;
    Ok(elements.iter().all(|element| element.is_instance_of::<PyInt>()))
}

/// Returns whether `made`, NumPy's conversion to a type, changed elements: truncated text and times, integers out
/// of range, numbers converted to text. Rounded floats do not count. `found` is NumPy's conversion without a type.
pub fn is_changed(
    object: &Bound<'_, PyAny>,
    found: &Bound<'_, PyAny>,
    made: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let dtype = made.getattr("dtype")?;
    let (wanted, name) = (kind_of(&dtype)?, dtype.getattr("name")?.extract::<String>()?);
    let kind = kind(found)?;
    if made.getattr("size")?.extract::<usize>()? == 0 {
        return Ok(false);
    }
    if !dtype.getattr("names")?.is_none() {
        return is_record_changed(object, found, made);
    }
    let (is_text, is_number) = (|kind| "US".contains(kind), |kind| "biufc".contains(kind));
    let is_raw = name.starts_with("void");
    if (is_text(wanted) && is_number(kind)) || (is_text(kind) && is_number(wanted)) || (is_raw && kind == 'U')
    {
        return Ok(true);
    }
    // The small integers of `ml_dtypes` have NumPy's kind V too.
    let is_small = wanted == 'V' && (name.starts_with("int") || name.starts_with("uint"));
    if !("biuUSMm".contains(wanted) || is_raw || is_small) {
        return Ok(false);
    }
    let numpy = numpy::module(found.py())?;
    let is_time = "Mm".contains(wanted);
    let found = match is_time && "USO".contains(kind) {
        // In their own unit.
        true => numpy.call_method1("asarray", (found, format!("{wanted}8")))?,
        false => found.clone(),
    };
    let made = match is_raw {
        // NumPy cannot cast raw bytes.
        true => &made.call_method1("view", (format!("S{}", dtype.getattr("itemsize")?),))?,
        false => made,
    };
    let back = made.call_method1("astype", (found.getattr("dtype")?,))?;
    let options = PyDict::new(found.py());
    options.set_item("equal_nan", is_time)?;
    Ok(!numpy.getattr("array_equal")?.call((back, found), Some(&options))?.extract::<bool>()?)
}

/// Like [`is_changed`], for structures: one value for all fields, or tuples with one value per field.
fn is_record_changed(
    object: &Bound<'_, PyAny>,
    found: &Bound<'_, PyAny>,
    made: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let numpy = numpy::module(found.py())?;
    let names: Vec<Bound<'_, PyAny>> =
        made.getattr("dtype")?.getattr("names")?.try_iter()?.collect::<PyResult<_>>()?;
    let own = found.getattr("dtype")?.getattr("names")?;
    if !own.is_none() {
        // Already structured: NumPy matches the fields in order.
        let own: Vec<Bound<'_, PyAny>> = own.try_iter()?.collect::<PyResult<_>>()?;
        let mut fields = names.iter().zip(&own).map(|(name, own)| {
            let found = found.get_item(own)?;
            is_changed(&found, &found, &made.get_item(name)?)
        });
        return fields.try_fold(own.len() != names.len(), |any, field| Ok(any || field?));
    }
    let is_one_for_all = kind(found)? != 'O' && found.getattr("shape")?.eq(made.getattr("shape")?)?;
    if is_one_for_all {
        let mut fields = names.iter().map(|name| is_changed(object, found, &made.get_item(name)?));
        return fields.try_fold(false, |any, field| Ok(any || field?));
    }
    let dtype: Vec<_> = names.iter().map(|name| (name, "O")).collect();
    let columns = numpy.call_method1("asarray", (object, dtype))?;
    let mut fields = names.iter().map(|name| {
        let column = columns.get_item(name)?.call_method0("tolist")?;
        let found = numpy.call_method1("asarray", (&column,))?;
        is_changed(&column, &found, &made.get_item(name)?)
    });
    fields.try_fold(false, |any, field| Ok(any || field?))
}

/// Returns the message for an object that is not an array, with advice.
fn no_array(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let kind = object.get_type().fully_qualified_name()?.to_string();
    let hint = match () {
        () if object.hasattr("toarray")? => "call .toarray() first for a dense array",
        () if object.is_instance_of::<PyDict>() => "use zarrow.save(store, **arrays) to store arrays by name",
        () if object.hasattr("to_dataarray")? || object.hasattr("data_vars")? => "pass one of its variables",
        () if object.hasattr("__iter__")? => "pass list(values)",
        () => "pass an array, a number, text, or a list of these",
    };
    Ok(format!("{kind} is not an array and exposes no memory: {hint}"))
}

fn is_text(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() || object.is_none()
}
