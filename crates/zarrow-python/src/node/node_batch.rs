//! Creating many nodes, and writing to many arrays, in one call.

use crate::node::array_input::{self, ArrayInput};
use crate::node::batch::source;
use crate::node::group::{self, Group};
use crate::node::store::StoreLocation;
use crate::python::argument::{argument, known, refused};
use crate::python::error::{Attempt, Raise};
use crate::python::gil::Kept;
use crate::python::importing::import;
use crate::python::interrupt::changing;
use crate::python::json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::sync::Arc;
use zarrow::metadata::{MetadataLimits, NodeMetadata};
use zarrow::{Existing, OpenOptions, Selection, ValueSource, WriteOptions};
use zarrow_array::allocation::{self, Grow};

/// An array or a group to be created by `_create_all`.
#[pyclass(frozen, name = "_NewNode", module = "zarrow")]
pub struct NewNode(zarrow::NewNode);

impl NewNode {
    /// Creates the Python object of a node with these elements.
    pub fn new(node: zarrow::NewNode, elements: Option<ArrayInput>) -> NewNode {
        let Some(elements) = elements else { return NewNode(node) };
        let values: Arc<dyn ValueSource> = Arc::new(Kept::new(elements));
        NewNode(node.values(values))
    }
}

#[pymethods]
impl NewNode {
    #[new]
    #[pyo3(signature = (path, documents, *, data = None, existing = "refuse", write_empty_chunks = false))]
    fn from_documents(
        path: &str,
        documents: &Bound<'_, PyDict>,
        data: Option<&Bound<'_, PyAny>>,
        existing: &str,
        write_empty_chunks: bool,
    ) -> PyResult<NewNode> {
        let py = documents.py();
        let mut texts = Vec::new();
        for (name, document) in documents {
            texts.push((name.extract::<String>()?, text(&document)?));
        }
        let node = zarrow::NewNode::from_documents(path, &texts, &MetadataLimits::default()).raise(py)?;
        let node = node.write_empty_chunks(write_empty_chunks);
        let node = match existing {
            "refuse" => node,
            "erase" => node.existing(Existing::Erase),
            "array" => node.existing(Existing::EraseArray),
            "keep" => node.keep_group(),
            _ => {
                let message = format!(
                    "existing is {existing:?}, expected \"refuse\", \"erase\", \"array\" or \"keep\""
                );
                return Err(PyValueError::new_err(message));
            }
        };
        let values = match (data, node.metadata()) {
            (None, _) => None,
            (Some(_), NodeMetadata::Group(_)) => {
                return Err(PyValueError::new_err(format!("{path:?} is a group, which has no elements")));
            }
            (Some(data), NodeMetadata::Array(metadata)) => {
                Some(ArrayInput::new(data, &metadata.data_type, array_input::CASTING, Some(metadata))?)
            }
        };
        Ok(NewNode::new(node, values))
    }
}

/// Returns the text of a document given as text or as a dict.
fn text(document: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = document.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(text) = document.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    match document.cast::<PyDict>() {
        Ok(document) => Ok(json::attributes(document)?.text().as_bytes().to_vec()),
        Err(_) => Err(refused(document, "a document as a dict, a str or bytes")),
    }
}

/// Return whether a store, which need not exist, is remote and can be written.
#[pyfunction]
pub fn _is_remote(store: &Bound<'_, PyAny>) -> PyResult<bool> {
    let store = StoreLocation::from_python(store)?.into_remote();
    Ok(store.is_some_and(|store| store.writer().is_some()))
}

/// Create arrays and groups in a store or at and below a group, in a few round trips to a remote store.
#[pyfunction]
#[pyo3(signature = (target, nodes, *, consolidate = None, attributes_last = None, durability = "none"))]
pub fn _create_all<'py>(
    target: &Bound<'py, PyAny>,
    nodes: Vec<Bound<'py, NewNode>>,
    consolidate: Option<&str>,
    attributes_last: Option<(String, Bound<'py, PyDict>)>,
    #[pyo3(from_py_with = argument)] durability: &str,
) -> PyResult<Bound<'py, PyList>> {
    let py = target.py();
    let mut nodes: Vec<zarrow::NewNode> = nodes.iter().map(|node| node.get().0.clone()).collect();
    if let Some((path, attributes)) = attributes_last
        && let Some(node) = nodes.iter_mut().find(|node| node.path() == path)
    {
        *node = node.clone().attributes_last(json::attributes(&attributes)?);
    }
    let created = if let Ok(group) = target.cast::<Group>() {
        let group = group.get().latest(py)?;
        changing(py, |interrupt| {
            let write = WriteOptions::default().durability(group.options().durability).cancel(interrupt);
            group.create_all(nodes, consolidate, &write)
        })?
    } else {
        let location = StoreLocation::from_python(target)?;
        let options = OpenOptions::default().durability(array_input::durability(durability)?);
        changing(py, |interrupt| {
            let write = WriteOptions::default().durability(options.durability).cancel(interrupt);
            zarrow::create_all(&location.create("")?, nodes, consolidate, &options, &write)
        })?
    };
    let list = PyList::empty(py);
    for node in created {
        list.append(group::node(py, node)?)?;
    }
    Ok(list)
}

/// A write of `write_many`: the array, the selection and the values.
struct Write {
    array: Arc<zarrow::Array>,
    selection: Selection,
    values: Arc<dyn ValueSource>,
}

impl Write {
    /// Converts a tuple of an array or indexer, a selection and values.
    fn from_python(item: &Bound<'_, PyAny>, casting: &str) -> PyResult<Write> {
        let py = item.py();
        let Some(parts) =
            item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>)>().attempt(py)?
        else {
            return Err(refused(item, "a tuple (array, selection, values)"));
        };
        let (array, index, values) = parts;
        let (current, kind) = source(&array, "write_many")?;
        let (array, selection) = (current.get(), current.selection(&index, kind)?);
        let input = ArrayInput::new(&values, array.data_type(), casting, Some(array.metadata()))?;
        Ok(Write { array, selection, values: Arc::new(Kept::new(input)) })
    }
}

#[doc = help!("write_many")]
#[pyfunction]
#[pyo3(
    signature = (items, *, casting = "same_kind", durability = None, write_empty_chunks = false, progress = None,
                 **unknown),
    text_signature = "(items, *, casting=\"same_kind\", durability=None, write_empty_chunks=False, progress=None)"
)]
pub fn write_many(
    items: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = argument)] casting: &str,
    #[pyo3(from_py_with = argument)] durability: Option<&str>,
    #[pyo3(from_py_with = argument)] write_empty_chunks: bool,
    progress: Option<&Bound<'_, PyAny>>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let py = items.py();
    known(py, "write_many", unknown)?;
    let Some(items) = items.try_iter().attempt(py)? else {
        return Err(refused(items, "a list of tuples (array, selection, values)"));
    };
    if let Some(progress) = progress {
        let write = import(py, "zarrow.api.reported_batches")?.getattr("write_many")?;
        return write.call1((items, casting, durability, write_empty_chunks, progress)).map(drop);
    }
    let durability = durability.map(array_input::durability).transpose()?;
    let mut writes: Vec<Write> = Vec::new();
    for item in items {
        writes.try_push(Write::from_python(&item?, casting)?).raise(py)?;
    }
    changing(py, |interrupt| {
        let requests = writes.iter().map(|Write { array, selection, values }| {
            let options = WriteOptions::default()
                .durability(durability.unwrap_or(array.durability()))
                .write_empty_chunks(write_empty_chunks);
            Ok((array.write_request(selection)?.options(&options), Arc::clone(values)))
        });
        zarrow::write_many(allocation::try_collected::<_, zarrow::Error>(requests)?, interrupt)
    })
}
