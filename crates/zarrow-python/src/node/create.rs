//! Creation of arrays and groups from descriptions normalized by `zarrow.api.creation`.

use crate::export::data_type;
use crate::node::array::Array;
use crate::node::array_input::{self, ArrayInput};
use crate::node::array_parts::ArrayParts;
use crate::node::creation_options::{existing, format};
use crate::node::fill_value;
use crate::node::group::Group;
use crate::node::node_batch::NewNode;
use crate::node::store::StoreLocation;
use crate::node::zip_url;
use crate::python::argument::argument;
use crate::python::error::Raise;
use crate::python::interrupt::{changing, waiting};
use crate::python::json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::{Map, Value};
use zarrow::metadata::{ArrayMetadata, Attributes, ChunkKeyEncoding, CodecMetadata, MetadataLimits};
use zarrow::store::replace_folder;
use zarrow::{ArrayBuilder, ErrorKind, Existing, OpenOptions, Selection, Values, WriteOptions};
use zarrow_array::DataType;
use zarrow_array::fork::OnceCell;

/// Create an array in a store or a group, from arguments normalized by `zarrow.api.creation`.
#[pyfunction]
#[pyo3(signature = (target, path, dtype, fill_value, description, *, data, parts, overwrite, durability))]
#[allow(clippy::too_many_arguments, reason = "they are keywords")]
pub fn _create_array<'py>(
    target: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument)] path: &str,
    dtype: &Bound<'py, PyAny>,
    fill_value: &Bound<'py, PyAny>,
    description: &Bound<'py, PyDict>,
    data: Option<&Bound<'py, PyAny>>,
    parts: Option<&Bound<'py, PyAny>>,
    overwrite: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument)] durability: &str,
) -> PyResult<Bound<'py, Array>> {
    let py = target.py();
    let (metadata, input) = described(dtype, fill_value, description, data)?;
    let existing = replacing(overwrite)?;
    let options = OpenOptions::default().durability(array_input::durability(durability)?);
    if let Some(parts) = parts {
        return created_from(target, path, parts, metadata, existing, &options);
    }
    if let Ok(group) = target.cast::<Group>() {
        let created = group.get().change(py, |group, interrupt| match &input {
            None => group.create_array(path, metadata, existing),
            Some(input) => {
                // SAFETY: as for writing.
                let values = unsafe { input.values() }?;
                let write = WriteOptions::default().durability(group.options().durability).cancel(interrupt);
                group.create_array_with(path, metadata, &values, existing, &write)
            }
        });
        return created.and_then(|array| Array::create(py, array));
    }
    let location = StoreLocation::from_python(target)?;
    let created = changing(py, |interrupt| {
        let store = location.create(path)?;
        match &input {
            None => zarrow::create_array(store, path, metadata, existing, &options),
            Some(input) => {
                // SAFETY: as for writing.
                let values = unsafe { input.values() }?;
                let write = WriteOptions::default().durability(options.durability).cancel(interrupt);
                zarrow::create_array_with(store, path, metadata, &values, existing, &options, &write)
            }
        }
    });
    created.and_then(|array| Array::create(py, array))
}

/// Returns the metadata of a description, and the data as its elements. Data that do not fit are refused.
fn described(
    dtype: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    description: &Bound<'_, PyDict>,
    data: Option<&Bound<'_, PyAny>>,
) -> PyResult<(ArrayMetadata, Option<ArrayInput>)> {
    let py = dtype.py();
    // Attributes are not limited to strict JSON.
    let description = description.copy()?;
    let attributes = description.call_method1("pop", ("attributes", py.None()))?;
    let attributes = match attributes.cast::<PyDict>() {
        Ok(attributes) => json::attributes(attributes)?,
        Err(_) => Attributes::default(),
    };
    let builder = builder(dtype, fill_value, json::map(&description)?)?.attributes(attributes);
    let metadata = builder.build().raise(py)?;
    let input = data
        .map(|data| ArrayInput::new(data, &metadata.data_type, array_input::CASTING, Some(&metadata)))
        .transpose()?;
    Ok((metadata, input))
}

/// Returns what to do with an existing node.
fn replacing(overwrite: &Bound<'_, PyAny>) -> PyResult<Existing> {
    Ok(match overwrite.extract::<&str>() {
        Ok("array") => Existing::EraseArray,
        _ => existing(argument(overwrite)?),
    })
}

/// Return an array for `_create_all`, from arguments normalized by `zarrow.api.creation`.
#[pyfunction]
#[pyo3(signature = (path, dtype, fill_value, description, *, data, overwrite))]
pub fn _new_array(
    #[pyo3(from_py_with = argument)] path: &str,
    dtype: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    description: &Bound<'_, PyDict>,
    data: Option<&Bound<'_, PyAny>>,
    overwrite: &Bound<'_, PyAny>,
) -> PyResult<NewNode> {
    let (metadata, input) = described(dtype, fill_value, description, data)?;
    Ok(NewNode::new(zarrow::NewNode::array(path, metadata).existing(replacing(overwrite)?), input))
}

/// Creates an array from parts.
fn created_from<'py>(
    target: &Bound<'py, PyAny>,
    path: &str,
    parts: &Bound<'py, PyAny>,
    metadata: ArrayMetadata,
    existing: Existing,
    options: &OpenOptions,
) -> PyResult<Bound<'py, Array>> {
    let py = target.py();
    let parts = ArrayParts::new(parts, metadata.clone());
    let source = |put: &mut dyn FnMut(&Selection, &Values<'_>) -> zarrow::Result<()>| parts.put_all(put);
    let created = match target.cast::<Group>() {
        Ok(group) => group.get().change(py, |group, interrupt| {
            let write = WriteOptions::default().durability(group.options().durability).cancel(interrupt);
            group.create_array_from(path, metadata, &source, existing, &write)
        }),
        Err(_) => {
            let location = StoreLocation::from_python(target)?;
            changing(py, |interrupt| {
                let write = WriteOptions::default().durability(options.durability).cancel(interrupt);
                let store = location.create(path)?;
                zarrow::create_array_from(store, path, metadata, &source, existing, options, &write)
            })
        }
    };
    match parts.raised(py) {
        Some(raised) => Err(raised),
        None => created.and_then(|array| Array::create(py, array)),
    }
}

/// Return the shape of data as elements of a type.
#[pyfunction]
pub fn _shape_as<'py>(data: &Bound<'py, PyAny>, dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let py = data.py();
    let input = ArrayInput::new(data, &data_type::stored(dtype)?.dtype, array_input::CASTING, None)?;
    // SAFETY: only the shape of these values is read.
    let values = unsafe { input.values() }.raise(py)?;
    PyTuple::new(py, values.shape())
}

/// Create a group in a store or a group.
#[pyfunction]
#[pyo3(signature = (target, path, attributes, *, zarr_format, overwrite, durability))]
pub fn _create_group<'py>(
    target: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument)] path: &str,
    attributes: &Bound<'py, PyDict>,
    #[pyo3(from_py_with = argument)] zarr_format: u64,
    #[pyo3(from_py_with = argument)] overwrite: bool,
    #[pyo3(from_py_with = argument)] durability: &str,
) -> PyResult<Group> {
    let py = target.py();
    let (attributes, existing) = (json::attributes(attributes)?, existing(overwrite));
    if let Ok(group) = target.cast::<Group>() {
        return group
            .get()
            .change(py, |group, _| group.create_group(path, attributes, existing))
            .map(Group::new);
    }
    let zarr_format = format(zarr_format)?;
    let location = StoreLocation::from_python(target)?;
    let options = OpenOptions::default().durability(array_input::durability(durability)?);
    let created = waiting(py, || {
        zarrow::create_group(location.create(path)?, path, zarr_format, attributes, existing, &options)
    });
    created.map(Group::new)
}

/// Create a group with the members that `members` creates in it, whole or not at all; return whether that is possible.
///
/// At the root of a folder `may_replace` returns, right before, whether the folder may be replaced.
#[pyfunction]
#[pyo3(signature = (target, path, attributes, members, may_replace, *, zarr_format, overwrite))]
pub fn _create_whole_group(
    target: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = argument)] path: &str,
    attributes: &Bound<'_, PyDict>,
    members: &Bound<'_, PyAny>,
    may_replace: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = argument)] zarr_format: u64,
    #[pyo3(from_py_with = argument)] overwrite: bool,
) -> PyResult<bool> {
    let py = target.py();
    let (attributes, existing) = (json::attributes(attributes)?, existing(overwrite));
    let (members, may_replace) = (members.clone().unbind(), may_replace.clone().unbind());
    let raised = OnceCell::<PyErr>::new();
    // An exception of a function of Python stops the engine, and is raised at the end.
    let kept = |error: PyErr| {
        raised.set(error);
        zarrow::Error::from(ErrorKind::Interrupted)
    };
    let create = |group| Python::attach(|py| members.call1(py, (Group::new(group),)).map(drop)).map_err(kept);
    let created = if let Ok(group) = target.cast::<Group>() {
        let create = |group: &mut zarrow::Group| group.create_group_with(path, attributes, &create, existing);
        group.get().change(py, |group, _| create(group)).map(|created| created.is_some())
    } else {
        let (zarr_format, options) = (format(zarr_format)?, OpenOptions::default());
        match StoreLocation::from_python(target)? {
            StoreLocation::Folder(folder) if path.is_empty() && !zip_url::is_named_so(&folder) => {
                let build = |store| {
                    let refuse = Existing::Refuse;
                    let group = zarrow::create_group(store, "", zarr_format, attributes, refuse, &options)?;
                    create(group)
                };
                let may_replace =
                    || Python::attach(|py| may_replace.call0(py)?.extract::<bool>(py)).map_err(kept);
                waiting(py, || replace_folder(&folder, build, may_replace))
            }
            StoreLocation::ReadOnly(_) | StoreLocation::Archive(_) => Ok(false),
            StoreLocation::Folder(folder) if zip_url::is_named_so(&folder) => Ok(false),
            location => waiting(py, || {
                let store = location.create(path)?;
                zarrow::create_group_with(store, path, zarr_format, attributes, &create, existing, &options)
                    .map(|created| created.is_some())
            }),
        }
    };
    match raised.get().map(|error| error.clone_ref(py)) {
        Some(raised) => Err(raised),
        None => created,
    }
}

/// Returns the builder for a description; missing keys mean defaults.
fn builder(
    dtype: &Bound<'_, PyAny>,
    fill: &Bound<'_, PyAny>,
    mut description: Map<String, Value>,
) -> PyResult<ArrayBuilder> {
    let py = dtype.py();
    let element = data_type::stored(dtype)?;
    let mut take = |key: &str| description.remove(key).filter(|value| !value.is_null());
    let dtype = match take("optional") {
        Some(Value::Bool(true)) => DataType::Optional(Box::new(element.dtype)),
        _ => element.dtype,
    };
    MetadataLimits::default().check_item(&dtype).map_err(zarrow::Error::from).raise(py)?;
    let mut builder = ArrayBuilder::new(extents("shape", take("shape"))?.unwrap_or_default(), dtype.clone())
        .fill_value(fill_value::from_python(fill, &dtype)?)
        .zarr_format(format(take("zarr_format").and_then(|version| version.as_u64()).unwrap_or(3))?)
        .big_endian(element.is_swapped == cfg!(target_endian = "little"))
        .column_major(take("order").is_some_and(|order| order == "F"));
    if let Some(chunks) = extents("chunks", take("chunks"))? {
        builder = builder.chunk_shape(chunks);
    }
    match take("shards") {
        Some(Value::String(_)) => builder = builder.automatic_shards(true),
        given => {
            if let Some(shards) = extents("shards", given)? {
                builder = builder.shard_shape(shards);
            }
        }
    }
    let codecs = |value: Option<Value>| -> PyResult<Option<Vec<CodecMetadata>>> {
        let Some(Value::Array(choices)) = value else { return Ok(None) };
        let chosen = choices.iter().map(|choice| CodecMetadata::from_choice(choice, &dtype));
        chosen.collect::<zarrow::Result<Vec<_>>>().raise(py).map(Some)
    };
    if let Some(filters) = codecs(take("filters"))? {
        builder = builder.filters(filters);
    }
    if let Some(serializer) = codecs(take("serializer"))?.and_then(|mut codecs| codecs.pop()) {
        builder = builder.serializer(serializer);
    }
    if let Some(compressors) = codecs(take("compressors"))? {
        builder = builder.compressors(compressors);
    }
    if let Some(codecs) = codecs(take("codecs"))? {
        builder = builder.codecs(codecs);
    }
    if take("has_fill_value") == Some(Value::Bool(false)) {
        builder = builder.without_fill_value();
    }
    if let Some(encoding) = take("chunk_key_encoding") {
        let encoding = ChunkKeyEncoding::parse(&encoding).map_err(zarrow::Error::from).raise(py)?;
        builder = builder.chunk_key_encoding(encoding);
    }
    if let Some(Value::Array(names)) = take("dimension_names") {
        let name = |name: &Value| match name {
            Value::Null => Ok(None),
            Value::String(name) => Ok(Some(name.clone())),
            other => Err(PyValueError::new_err(format!(
                "dimension_names contains {other}, expected a str or None for each axis"
            ))),
        };
        builder = builder.dimension_names(names.iter().map(name).collect::<PyResult<Vec<_>>>()?);
    }
    Ok(builder)
}

fn extents(key: &str, value: Option<Value>) -> PyResult<Option<Vec<u64>>> {
    let Some(value) = value else { return Ok(None) };
    let extents = value.as_array().and_then(|items| items.iter().map(Value::as_u64).collect());
    let message = || PyValueError::new_err(format!("{key} is {value}, expected integers from 0 to 2^63 - 1"));
    extents.map(Some).ok_or_else(message)
}
