//! Conversion of Python objects: numbers and sequences by NumPy, text and bytes to offsets and data.

use super::producer::Family;
use super::{copied, nulls, of_numpy};
use crate::export::data_type;
use crate::export::numpy;
use crate::export::numpy_string::{self, Strings};
use crate::python::error::{Attempt, Raise, data_type_mismatch};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, DataType, HOST_ALIGNMENT, Mask, MaskedVariable, Variable};

/// Refuses an object that contains elements of its own type at every depth, such as a table with row indexing:
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
        && "iu".contains(self::kind_of(&numpy::dtype(py, expected)?)?)
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
        let wanted = self::kind_of(&dtype)?;
        let loses = match (rank(kind), rank(wanted)) {
            (Some(found), Some(wanted)) => found > wanted && array.getattr("size")?.extract::<usize>()? > 0,
            // NumPy would convert their ticks to numbers, and the numbers of one unit to dates of another.
            _ => matches!(kind, 'M' | 'm') && kind != wanted,
        };
        if !loses {
            let options = PyDict::new(py);
            options.set_item("dtype", dtype)?;
            // NumPy refuses Python numbers out of range, but wraps its own. Tuples of structures stay tuples.
            let is_number = rank(self::kind(&array)?).is_some() && !matches!(expected, DataType::Struct(_));
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
    if self::kind(&array)? == 'O' {
        if expected.is_none()
            && let Some(masked) = nulls::masked(object, None)?
        {
            return Ok(masked);
        }
        return self::array(&array, expected.filter(|expected| expected.is_variable()));
    }
    match of_numpy(&array, Family::NumpyArray, None)? {
        // NumPy's new memory may not be aligned for other libraries.
        Imported::Tensor(tensor) if !tensor.pointer().as_ptr().addr().is_multiple_of(HOST_ALIGNMENT) => {
            copied(py, Imported::Tensor(tensor))
        }
        array => Ok(array),
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

fn objects<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    numpy::module(object.py())?.call_method1("asarray", (object, "O"))
}

fn kind(array: &Bound<'_, PyAny>) -> PyResult<char> {
    kind_of(&array.getattr("dtype")?)
}

fn kind_of(dtype: &Bound<'_, PyAny>) -> PyResult<char> {
    dtype.getattr("kind")?.extract()
}

/// Copies the text or bytes of a NumPy array of objects or `StringDType`; None is a missing element.
pub fn array(array: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Imported> {
    let py = array.py();
    let dtype = array.getattr("dtype")?;
    let shape: Vec<u64> = array.getattr("shape")?.extract()?;
    let (strings, dtype) = match kind_of(&dtype)? {
        'T' => {
            let is_empty = shape.contains(&0);
            if let Some(expected) = expected.filter(|expected| **expected != DataType::String && !is_empty) {
                return Err(data_type_mismatch(py, expected, &DataType::String));
            }
            (numpy_string::load(array)?, expected.cloned().unwrap_or(DataType::String))
        }
        'O' => of_objects(array, expected)?,
        _ => return Err(data_type::unknown(&dtype)),
    };
    // A vector is only aligned for its elements, here bytes.
    let offsets = Buffer::copy_of(&strings.offsets).raise(py)?;
    let variable = Variable::new(offsets, Buffer::from(strings.data), shape, dtype).raise(py)?;
    if strings.missing.is_empty() {
        return Ok(Imported::Variable(variable));
    }
    let mask = Mask::new(vec![Buffer::from(strings.missing)]).raise(py)?;
    Ok(Imported::MaskedVariable(MaskedVariable::new(variable, mask).raise(py)?))
}

/// Copies the elements of an array of objects, and returns their common type: text or bytes.
fn of_objects(array: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<(Strings, DataType)> {
    let py = array.py();
    let elements = array.call_method0("ravel")?.call_method0("tolist")?;
    let elements = elements.cast::<PyList>()?;
    let mut kind = expected.cloned();
    let mut strings = Strings::with_capacity(elements.len()).raise(py)?;
    for (index, element) in elements.iter().enumerate() {
        let (found, bytes) = match (element.cast::<PyString>(), element.cast::<PyBytes>()) {
            (Ok(text), _) => (DataType::String, text.to_str()?.as_bytes()),
            (_, Ok(bytes)) => (DataType::Bytes, bytes.as_bytes()),
            _ if is_missing(&element)? => {
                strings.push(None, index, elements.len()).raise(py)?;
                continue;
            }
            _ => return Err(no_text(index, &element)?),
        };
        if let Some(expected) = expected.filter(|expected| **expected != found) {
            return Err(data_type_mismatch(py, expected, &found));
        }
        if *kind.get_or_insert(found.clone()) != found {
            return Err(PyTypeError::new_err(format!(
                "element {index} is {found}, unlike the elements before it: use one type for all elements"
            )));
        }
        strings.push(Some(bytes), index, elements.len()).raise(py)?;
    }
    match kind {
        Some(kind) => Ok((strings, kind)),
        // NaN alone is no text.
        None => match elements.iter().enumerate().find(|(_, element)| !element.is_none()) {
            Some((index, element)) => Err(no_text(index, &element)?),
            None => Ok((strings, DataType::String)),
        },
    }
}

fn no_text(index: usize, element: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let kind = element.get_type().name()?;
    let message = format!(
        "element {index} of an array of Python objects has type {kind}, expected text, bytes or None: convert the \
         values to one NumPy dtype by numpy.asarray(values, dtype)"
    );
    Ok(PyTypeError::new_err(message))
}

/// Tells whether an element is None, or what pandas puts where text is missing: NaN or `pandas.NA`.
fn is_missing(element: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_nan = || element.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    Ok(element.is_none() || is_nan() || element.get_type().name()? == "NAType")
}
