//! Python's own objects: numbers and sequences of them by NumPy, text and bytes into offsets and bytes.

use super::producer::Family;
use super::{copied, of_numpy};
use crate::data_type;
use crate::error::{Attempt, Raise, data_type_mismatch};
use crate::numpy;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString};
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, DataType, HOST_ALIGNMENT, Mask, MaskedVariable, Variable};

/// An array of what `object` holds: a scalar, or a sequence of anything that NumPy knows.
///
/// Numbers become those of the `expected` type where no kind of number is lost: a float does not become an integer.
pub fn from_python(object: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Imported> {
    let py = object.py();
    let asarray = numpy::module(py)?.getattr("asarray")?;
    let mut array = match expected.is_some_and(DataType::is_variable) {
        true => objects(object)?,
        // Tuples in tuples have no shape, and are structures where these are expected.
        false => match asarray.call1((object,)) {
            Err(error) if !matches!(expected, Some(DataType::Struct(_))) => return Err(error),
            array => match array.attempt(py)? {
                Some(array) => array,
                None => objects(object)?,
            },
        },
    };
    let kind = kind(&array)?;
    // An integer of more than 64 bits is a number where a type is given, and Python's dates are what NumPy makes of them.
    let is_known = is_text(object)
        || (expected.is_some() && object.is_instance_of::<PyInt>())
        || matches!(expected, Some(DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. }));
    if kind == 'O' && array.getattr("ndim")?.extract::<usize>()? == 0 && !is_known {
        return Err(PyTypeError::new_err(format!("{} is no array, and lends no memory", object.get_type())));
    }
    if (kind == 'U' || kind == 'S') && expected.is_none_or(DataType::is_variable) {
        array = objects(object)?;
    } else if let Some(expected) = expected.filter(|expected| !expected.is_variable()) {
        let dtype = numpy::dtype(py, expected)?;
        let rank = |kind: char| "biufc".find(kind).map(|rank| if rank == 2 { 1 } else { rank });
        let loses = match (rank(kind), rank(self::kind_of(&dtype)?)) {
            (Some(found), Some(wanted)) => found > wanted && array.getattr("size")?.extract::<usize>()? > 0,
            _ => false,
        };
        if !loses {
            let options = PyDict::new(py);
            options.set_item("dtype", dtype)?;
            // Python's own numbers are refused where the type has no such number; NumPy's would be cut off. The tuples
            // of structures stay tuples.
            let is_number = rank(self::kind(&array)?).is_some() && !matches!(expected, DataType::Struct(_));
            let object = if is_number { array.call_method0("tolist")? } else { object.clone() };
            let made = asarray.call((&object,), Some(&options))?;
            match is_changed(&object, &array, &made)? {
                false => array = made,
                true if "iu".contains(kind) && expected.as_number().is_some() => {
                    return Err(PyOverflowError::new_err(format!("{array} is no value of type {expected}")));
                }
                // What it is by itself is not what was expected.
                true => {}
            }
        }
    }
    if self::kind(&array)? == 'O' {
        return self::array(&array, expected.filter(|expected| expected.is_variable()));
    }
    match of_numpy(&array, Family::NumpyArray, None)? {
        // NumPy's memory is new, and would be as good as ours if other libraries could share it.
        Imported::Tensor(tensor) if !tensor.pointer().as_ptr().addr().is_multiple_of(HOST_ALIGNMENT) => {
            copied(py, Imported::Tensor(tensor))
        }
        array => Ok(array),
    }
}

/// Whether elements are others in the type that NumPy has `made` of them: text and times that were cut off, integers that
/// do not fit, numbers that became text. Floats are rounded, which is no such change. `found` is what NumPy makes of the
/// object by itself.
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
    // The small numbers of `ml_dtypes` are of NumPy's kind V too.
    let is_small = wanted == 'V' && (name.starts_with("int") || name.starts_with("uint"));
    if !("biuUSMm".contains(wanted) || is_raw || is_small) {
        return Ok(false);
    }
    let numpy = numpy::module(found.py())?;
    let is_time = "Mm".contains(wanted);
    let found = match is_time && "USO".contains(kind) {
        // In the unit that they are written in.
        true => numpy.call_method1("asarray", (found, format!("{wanted}8")))?,
        false => found.clone(),
    };
    let made = match is_raw {
        // NumPy casts raw bytes to no type.
        true => &made.call_method1("view", (format!("S{}", dtype.getattr("itemsize")?),))?,
        false => made,
    };
    let back = made.call_method1("astype", (found.getattr("dtype")?,))?;
    let options = PyDict::new(found.py());
    options.set_item("equal_nan", is_time)?;
    Ok(!numpy.getattr("array_equal")?.call((back, found), Some(&options))?.extract::<bool>()?)
}

/// As [`is_changed`], of structures: one value for all fields, or tuples with one for each.
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
        // A structure already: NumPy takes its fields in their order.
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

/// The text or the bytes of a NumPy array of objects or of `StringDType`, copied; None is a missing element.
pub fn array(array: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Imported> {
    let py = array.py();
    let dtype = array.getattr("dtype")?;
    let is_string = kind_of(&dtype)? == 'T';
    if !is_string && kind_of(&dtype)? != 'O' {
        return Err(data_type::unknown(&dtype));
    }
    let shape: Vec<u64> = array.getattr("shape")?.extract()?;
    let elements = array.call_method0("ravel")?.call_method0("tolist")?;
    let elements = elements.cast::<PyList>()?;
    let mut kind = expected.cloned().or(is_string.then_some(DataType::String));
    let (mut offsets, mut data, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    offsets.extend(0i64.to_ne_bytes());
    for (index, element) in elements.iter().enumerate() {
        let (found, bytes) = match (element.cast::<PyString>(), element.cast::<PyBytes>()) {
            (Ok(text), _) => (DataType::String, text.to_str()?.as_bytes()),
            (_, Ok(bytes)) => (DataType::Bytes, bytes.as_bytes()),
            // What a StringDType has for a missing value is an object of its own.
            _ if element.is_none() || is_string => {
                missing.resize(elements.len(), 0u8);
                missing[index] = 1;
                offsets.extend((data.len() as i64).to_ne_bytes());
                continue;
            }
            _ => {
                let message =
                    format!("element {index} is {}, and neither text nor bytes nor None", element.get_type());
                return Err(PyTypeError::new_err(message));
            }
        };
        if let Some(expected) = expected.filter(|expected| **expected != found) {
            return Err(data_type_mismatch(py, expected, &found));
        }
        if *kind.get_or_insert(found.clone()) != found {
            return Err(PyTypeError::new_err(format!(
                "element {index} is {found} among others that are not"
            )));
        }
        data.extend_from_slice(bytes);
        offsets.extend((data.len() as i64).to_ne_bytes());
    }
    let dtype = kind.unwrap_or(DataType::String);
    // A vector is aligned only to its elements, which here are bytes.
    let offsets = Buffer::copy_of(&offsets).raise(py)?;
    let variable = Variable::new(offsets, Buffer::from(data), shape, dtype).raise(py)?;
    if missing.is_empty() {
        return Ok(Imported::Variable(variable));
    }
    let mask = Mask::new(vec![Buffer::from(missing)]).raise(py)?;
    Ok(Imported::MaskedVariable(MaskedVariable::new(variable, mask).raise(py)?))
}
