//! Python's own objects: numbers and sequences of them by NumPy, text and bytes into offsets and bytes.

use super::producer::Family;
use super::{copied, of_numpy};
use crate::data_type;
use crate::error::{Raise, data_type_mismatch};
use crate::numpy;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString};
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, DataType, HOST_ALIGNMENT, Mask, MaskedVariable, Number, Variable};

/// An array of what `object` holds: a scalar, or a sequence of anything that NumPy knows.
///
/// Numbers become those of the `expected` type where no kind of number is lost: a float does not become an integer.
pub fn from_python(object: &Bound<'_, PyAny>, expected: Option<&DataType>) -> PyResult<Imported> {
    let py = object.py();
    let asarray = numpy::module(py)?.getattr("asarray")?;
    let mut array = match expected.is_some_and(DataType::is_variable) {
        true => objects(object)?,
        false => asarray.call1((object,))?,
    };
    let kind = kind(&array)?;
    let is_one = kind == 'O' && array.getattr("ndim")?.extract::<usize>()? == 0;
    // An integer beyond 64 bits is an object to NumPy, and a number still.
    if is_one && !is_text(object) && !object.is_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err(format!("{} is no array, and lends no memory", object.get_type())));
    }
    if (kind == 'U' || kind == 'S') && expected.is_none_or(DataType::is_variable) {
        array = objects(object)?;
    } else if let Some(expected) = expected.filter(|expected| !expected.is_variable()) {
        let dtype = numpy::dtype(py, expected)?;
        let rank = |kind: char| "biufc".find(kind).map(|rank| if rank == 2 { 1 } else { rank });
        let loses = match (rank(kind), rank(self::kind_of(&dtype)?)) {
            (Some(found), Some(wanted)) => found > wanted && array.getattr("size")?.extract::<usize>()? > 0,
            _ => is_cut(&array, expected)?,
        };
        if !loses {
            let options = PyDict::new(py);
            options.set_item("dtype", dtype)?;
            // Python's own numbers are refused where the type has no such number; NumPy's would be cut off. The tuples
            // of structures stay tuples.
            let is_number = rank(self::kind(&array)?).is_some() && !matches!(expected, DataType::Struct(_));
            let object = if is_number { array.call_method0("tolist")? } else { object.clone() };
            array = asarray.call((object,), Some(&options))?;
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

/// Whether NumPy would make an element of one length of what is longer, or text of what is none, or the other way round.
fn is_cut(array: &Bound<'_, PyAny>, expected: &DataType) -> PyResult<bool> {
    let found = kind(array)?;
    let nbytes: usize = array.getattr("dtype")?.getattr("itemsize")?.extract()?;
    let length = if found == 'U' { nbytes / 4 } else { nbytes };
    Ok(match (expected, found) {
        (
            DataType::FixedLengthUtf32 { length: most } | DataType::NullTerminatedBytes { length: most },
            'U' | 'S',
        )
        | (DataType::RawBytes { length: most }, 'S') => length > *most as usize,
        (DataType::FixedLengthUtf32 { .. } | DataType::NullTerminatedBytes { .. }, _)
        | (DataType::Number(_), 'U' | 'S')
        | (DataType::Number(Number::Bool), 'O')
        | (DataType::RawBytes { .. }, 'U') => array.getattr("size")?.extract::<usize>()? > 0,
        _ => false,
    })
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
