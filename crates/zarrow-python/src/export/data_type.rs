//! Data types in Python: NumPy's dtypes and their equivalents.

use crate::export::numpy;
use crate::python::error::{Raise, unsupported};
use crate::python::interpreter_exit;
use crate::python::json;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use zarrow::metadata::parse_data_type;
use zarrow_array::import::element::Element;
use zarrow_array::{DataType, Field, Number, Struct};

/// Returns the element type of a `numpy.dtype`; `None` if there is no equivalent fixed-size type.
pub fn from_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<Option<Element>> {
    from_numpy_at(dtype, 0)
}

/// Returns a time without a unit at the scale of a `numpy.dtype`: the code `M8` lacks the 2 of `M8[2generic]`.
fn scaled(dtype: &Bound<'_, PyAny>, time: DataType) -> PyResult<DataType> {
    let parts = numpy::module(dtype.py())?.call_method1("datetime_data", (dtype,))?;
    let scale = parts.get_item(1)?.extract()?;
    Ok(match time {
        DataType::DateTime64 { unit, .. } => DataType::DateTime64 { unit, scale },
        DataType::TimeDelta64 { unit, .. } => DataType::TimeDelta64 { unit, scale },
        other => other,
    })
}

/// Like [`from_numpy`], at nesting level `depth`.
fn from_numpy_at(dtype: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<Element>> {
    interpreter_exit::guard_thread();
    check_depth(depth)?;
    let code: String = dtype.getattr("str")?.extract()?;
    let element = Element::from_type_string(&code);
    match element {
        Some(Element { dtype: DataType::RawBytes { .. }, .. }) | None => {}
        Some(Element { dtype: time, is_swapped }) if time.is_without_unit() => {
            return Ok(Some(Element { dtype: scaled(dtype, time)?, is_swapped }));
        }
        known => return Ok(known),
    }
    if !dtype.getattr("names")?.is_none() {
        return structure(dtype, depth);
    }
    // The type code of ml_dtypes types only contains their size.
    let name: String = dtype.getattr("name")?.extract()?;
    let number = Number::ALL.iter().find(|number| number.names().ml_dtypes == Some(&name));
    if let Some(number) = number {
        return Ok(Some(Element { dtype: (*number).into(), is_swapped: false }));
    }
    Ok(element.filter(|_| name.starts_with("void")))
}

/// Returns the structure of a `numpy.dtype` with fields; `None` if a field has no equivalent, or overlaps another.
fn structure(dtype: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<Element>> {
    let names: Vec<String> = dtype.getattr("names")?.extract()?;
    let described = dtype.getattr("fields")?;
    let (mut fields, mut is_swapped) = (Vec::with_capacity(names.len()), false);
    for name in names {
        let description = described.get_item(&name)?;
        let (item, offset) = (description.get_item(0)?, description.get_item(1)?.extract()?);
        let (item, shape) = match item.getattr("subdtype")?.extract::<(Bound<'_, PyAny>, Vec<u64>)>() {
            Ok(parts) => parts,
            Err(_) => (item, Vec::new()),
        };
        let Some(element) = from_numpy_at(&item, depth + 1)? else { return Ok(None) };
        is_swapped |= element.is_swapped;
        fields.push(Field { name: name.into(), data_type: element.dtype, shape: shape.into(), offset });
    }
    let structure = Struct::new(fields, dtype.getattr("itemsize")?.extract()?);
    Ok(structure.ok().map(|structure| Element { dtype: DataType::Struct(structure), is_swapped }))
}

/// Parses an argument `dtype=`: a Zarr or NumPy name, or any argument of `numpy.dtype`.
pub fn requested(object: &Bound<'_, PyAny>) -> PyResult<DataType> {
    interpreter_exit::guard_thread();
    match named(object)? {
        Element { is_swapped: true, dtype } => Err(PyValueError::new_err(format!(
            "dtype {dtype} is not native-endian: call .newbyteorder('=') on it"
        ))),
        Element { dtype, .. } => Ok(dtype),
    }
}

/// Parses the type of stored elements: like [`requested`], and also non-native-endian, as a dict or a name of Zarr
/// version 3, and as `optional[...]` of any name.
pub fn stored(object: &Bound<'_, PyAny>) -> PyResult<Element> {
    let py = object.py();
    if let Ok(dict) = object.cast::<PyDict>() {
        let name = serde_json::Value::Object(json::map(dict)?);
        let dtype = parse_data_type(&name).map_err(zarrow::Error::from).raise(py)?;
        return Ok(Element { dtype, is_swapped: false });
    }
    let Ok(name) = object.cast::<PyString>() else { return named(object) };
    let (mut inner, mut depth) = (name.to_str()?, 0);
    while let Some(rest) = inner.strip_prefix("optional[").and_then(|rest| rest.strip_suffix(']')) {
        depth += 1;
        check_depth(depth)?;
        inner = rest;
    }
    let Element { dtype, is_swapped } = named(PyString::new(py, inner).as_any())?;
    let dtype = (0..depth).fold(dtype, |dtype, _| DataType::Optional(Box::new(dtype)));
    Ok(Element { dtype, is_swapped })
}

/// Refuses a type that exceeds the maximum nesting depth.
fn check_depth(depth: usize) -> PyResult<()> {
    if depth > DataType::MAX_DEPTH {
        let message = format!("a data type is nested at most {} levels deep", DataType::MAX_DEPTH);
        return Err(PyValueError::new_err(message));
    }
    Ok(())
}

fn named(object: &Bound<'_, PyAny>) -> PyResult<Element> {
    let py = object.py();
    let native = |dtype: DataType| Ok(Element { dtype, is_swapped: false });
    let name = match object.cast::<PyString>() {
        Ok(name) => name.to_str()?.to_owned(),
        // PyTorch's types only show their name in their text form.
        Err(_) => object.str()?.to_str()?.strip_prefix("torch.").unwrap_or_default().to_owned(),
    };
    match name.as_str() {
        "string" => return native(DataType::String),
        "bytes" => return native(DataType::Bytes),
        name => {
            if let Some(number) = Number::from_zarr_name(name) {
                return native(number.into());
            }
        }
    }
    let dtype = numpy::module(py)?.getattr("dtype")?.call1((object,)).map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(py) {
            return error;
        }
        let shown = object.repr().map(|text| text.to_string()).unwrap_or_else(|_| "not shown".into());
        let message = format!(
            "dtype is {shown}, expected an argument of numpy.dtype (\"float32\", \"f4\", numpy.int64), a Zarr name \
             (\"bfloat16\", \"optional[int32]\"), str or bytes"
        );
        let refused = PyTypeError::new_err(message);
        refused.set_cause(py, Some(error));
        refused
    })?;
    match dtype.getattr("str")?.cast::<PyString>()?.to_str()? {
        // `str`, `bytes`, and NumPy's variable-length strings.
        "<U0" | ">U0" => return native(DataType::String),
        "|S0" => return native(DataType::Bytes),
        code if code.contains('T') => return native(DataType::String),
        _ => {}
    }
    from_numpy(&dtype)?.ok_or_else(|| unknown(&dtype))
}

/// Returns the error for a dtype without an equivalent.
pub fn unknown(dtype: &Bound<'_, PyAny>) -> PyErr {
    unsupported(dtype.py(), format!("NumPy dtype {dtype}, which has no Zarr data type"))
}

/// Returns NumPy's kind letter of an object with a dtype.
pub fn kind(object: &Bound<'_, PyAny>) -> PyResult<char> {
    object.getattr("dtype")?.getattr("kind")?.extract()
}
