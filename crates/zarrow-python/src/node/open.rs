//! Opening of paths and URLs, and the number of threads.

use crate::node::detached::{DetachedRead, tell_with};
use crate::node::group::{Group, items_of, node};
use crate::node::node_path::NodePath;
use crate::node::store::StoreLocation;
use crate::node::{array_input, cloud_store, creation_options};
use crate::python::argument::argument;
use crate::python::error::{Raise, is_ordinary};
use crate::python::importing::import;
use crate::python::interrupt::waiting;
use pyo3::exceptions::{PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;
use zarrow::metadata::Attributes;
use zarrow::store::{ReadOnlyStore, Store};
use zarrow::{DecodeLimits, ErrorKind, Existing, Node, OpenOptions, ZarrFormat};

#[doc = help!("open")]
#[pyfunction]
#[pyo3(
    signature = (store, path = None, *, mode = "r+", zarr_format = None, storage_options = None, cache_bytes = 0,
                 limits = None, durability = "none", **options),
    text_signature = "(store, path='', *, mode='r+', zarr_format=None, storage_options=None, cache_bytes=0, \
                      limits=None, durability='none', **options)"
)]
#[allow(clippy::too_many_arguments, reason = "they are keywords")]
pub fn open<'py>(
    store: &Bound<'py, PyAny>,
    path: Option<NodePath>,
    #[pyo3(from_py_with = argument)] mode: &str,
    #[pyo3(from_py_with = argument)] zarr_format: Option<u64>,
    storage_options: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = argument)] cache_bytes: usize,
    limits: Option<Bound<'py, PyAny>>,
    #[pyo3(from_py_with = argument)] durability: &str,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = store.py();
    let store = &cloud_store::_with_options(store, storage_options)?;
    let path = path.as_deref().unwrap_or_default();
    let zarr_format = zarr_format.map(creation_options::format).transpose()?;
    if let Some(description) = options {
        let opening = PyDict::new(py);
        opening.set_item("cache_bytes", cache_bytes)?;
        opening.set_item("limits", limits)?;
        opening.set_item("durability", durability)?;
        let format = zarr_format.map(creation_options::version);
        let arguments = (store, path, mode, format, opening, description);
        return import(py, "zarrow.api.opening")?.call_method1("_open_or_create_array", arguments);
    }
    let location = StoreLocation::from_python(store)?;
    let options = open_options(cache_bytes, limits, durability)?;
    let open = |store: Arc<dyn Store>| {
        expect_format(&*store, path, zarr_format);
        zarrow::open_with(store, path, &options)
    };
    let create = |store, existing| {
        let zarr_format = zarr_format.unwrap_or(ZarrFormat::V3);
        zarrow::create_group(store, path, zarr_format, Attributes::default(), existing, &options)
            .map(Node::Group)
    };
    check_mode(mode)?;
    let opened = waiting(py, || {
        let by_mode = || match mode {
            "r" => StoreLocation::ReadOnly(Box::new(location)).open_node(&open),
            "r+" => location.open_node(&open),
            "a" => {
                let store = location.create(path)?;
                expect_format(&*store, path, zarr_format);
                match (zarrow::find(Arc::clone(&store), path, &options)?, zarr_format) {
                    (Some(found), _) => Ok(found),
                    (None, None) => {
                        zarrow::create_absent_group(store, path, ZarrFormat::V3, &options).map(Node::Group)
                    }
                    // The documents of another version were not looked at.
                    (None, Some(_)) => create(store, Existing::Refuse),
                }
            }
            "w" => create(location.create(path)?, Existing::Erase),
            _ => create(location.create(path)?, Existing::Refuse),
        };
        by_mode().map_err(|error| with_mode_named(error, path))
    })?;
    check_format(opened, zarr_format).and_then(|opened| node(py, opened))
}

/// Begin to open a node as `open` does; `callback` is called with the node or the error. Return None, without
/// beginning, if this needs a thread: for a local store, an archive, or a mode other than "r" and "r+".
#[pyfunction]
#[pyo3(signature = (store, path, callback, *, mode = "r+", zarr_format = None, storage_options = None, cache_bytes = 0,
                    limits = None, durability = "none", **options))]
#[allow(clippy::too_many_arguments, reason = "they are keywords")]
pub fn _open_detached(
    store: &Bound<'_, PyAny>,
    path: NodePath,
    callback: Py<PyAny>,
    #[pyo3(from_py_with = argument)] mode: &str,
    #[pyo3(from_py_with = argument)] zarr_format: Option<u64>,
    storage_options: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument)] cache_bytes: usize,
    limits: Option<Bound<'_, PyAny>>,
    #[pyo3(from_py_with = argument)] durability: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<DetachedRead>> {
    let py = store.py();
    if options.is_some() {
        return Ok(None);
    }
    let store = cloud_store::_with_options(store, storage_options)?;
    let zarr_format = zarr_format.map(creation_options::format).transpose()?;
    let (location, options) =
        (StoreLocation::from_python(&store)?, open_options(cache_bytes, limits, durability)?);
    check_mode(mode)?;
    let Some(store) = location.into_remote().filter(|_| matches!(mode, "r" | "r+")) else { return Ok(None) };
    let store = if mode == "r" { Arc::new(ReadOnlyStore::new(store)) as Arc<dyn Store> } else { store };
    let done = move |opened: zarrow::Result<Node>| {
        tell_with(callback, opened, |py, opened| {
            check_format(opened, zarr_format).and_then(|opened| node(py, opened))
        });
    };
    let begun = py.detach(|| {
        expect_format(&*store, &path, zarr_format);
        zarrow::open_detached(store, &path, &options, done)
    });
    begun.raise(py).map(|detached| Some(DetachedRead(detached)))
}

fn open_options(
    cache_bytes: usize,
    limits: Option<Bound<'_, PyAny>>,
    durability: &str,
) -> PyResult<OpenOptions> {
    let limits = limits.map_or(Ok(DecodeLimits::default()), |limits| decode_limits(&limits))?;
    let durability = array_input::durability(durability)?;
    Ok(OpenOptions::default().limits(limits).cache_nbytes(cache_bytes).durability(durability))
}

fn check_mode(mode: &str) -> PyResult<()> {
    match MODES.contains(&mode) {
        true => Ok(()),
        false => {
            let message = format!("mode is {mode:?}, expected \"r\", \"r+\", \"a\", \"w\" or \"w-\"");
            Err(PyValueError::new_err(message))
        }
    }
}

fn expect_format(store: &dyn Store, path: &str, zarr_format: Option<ZarrFormat>) {
    if let Some(zarr_format) = zarr_format {
        zarrow::expect_format(store, path, zarr_format);
    }
}

/// Returns the node, if it has the version that the caller requested.
fn check_format(opened: Node, zarr_format: Option<ZarrFormat>) -> PyResult<Node> {
    let found = match &opened {
        Node::Array(array) => array.metadata().zarr_format,
        Node::Group(group) => group.zarr_format(),
    };
    if let Some(requested) = zarr_format.filter(|requested| *requested != found) {
        let (requested, found) = (creation_options::version(requested), creation_options::version(found));
        let message =
            format!("the stored node has zarr_format {found}, not {requested}: leave zarr_format out");
        return Err(PyValueError::new_err(message));
    }
    Ok(opened)
}

/// Open for reading, and return the children of a group as pairs of name and node; None for an array.
#[pyfunction]
pub fn _open_members<'py>(
    store: &Bound<'py, PyAny>,
    path: NodePath,
) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyList>>)> {
    let py = store.py();
    let location = StoreLocation::from_python(store)?;
    let (opened, children) = waiting(py, || {
        let open = || {
            let store = Arc::new(ReadOnlyStore::new(location.open()?));
            zarrow::open_members(store, &path, &OpenOptions::default())
        };
        open().map_err(|error| with_mode_named(error, &path))
    })?;
    let members = match &opened {
        Node::Group(_) => Some(items_of(py, children)?),
        Node::Array(_) => None,
    };
    Ok((node(py, opened)?, members))
}

/// Return the members of a group with their names, and an exception in place of a member that cannot be opened.
#[pyfunction]
pub fn _members_or_errors<'py>(group: &Bound<'py, Group>) -> PyResult<Bound<'py, PyList>> {
    let py = group.py();
    let group = group.get().latest(py)?;
    let members = PyList::empty(py);
    for (name, child) in waiting(py, || group.children())? {
        let member = match child.raise(py).and_then(|child| node(py, child)) {
            Ok(member) => member,
            Err(error) if is_ordinary(py, &error) => error.into_value(py).into_bound(py).into_any(),
            Err(error) => return Err(error),
        };
        members.append((name, member))?;
    }
    Ok(members)
}

/// In other libraries the second argument is the mode; here it is the path of a node.
fn with_mode_named(error: zarrow::Error, path: &str) -> zarrow::Error {
    match error.kind() {
        ErrorKind::NotFound if MODES.contains(&path) => error.with_hint(format!(
            "no array or group has the path {path:?}; to set the mode, pass mode={path:?}"
        )),
        _ => error,
    }
}

/// The modes of `open`.
const MODES: [&str; 6] = ["r", "r+", "a", "w", "w-", "x"];

/// Returns the limits set by a `zarrow.DecodeLimits`; None means the default.
fn decode_limits(limits: &Bound<'_, PyAny>) -> PyResult<DecodeLimits> {
    let get = |name: &str| match limits.getattr(name) {
        Ok(limit) => limit.extract::<Option<u64>>(),
        Err(_) => {
            let found = limits.get_type().name()?;
            Err(PyTypeError::new_err(format!("limits is of type {found}, expected a zarrow.DecodeLimits")))
        }
    };
    let size = |nbytes: u64| usize::try_from(nbytes).unwrap_or(usize::MAX);
    let mut chosen = DecodeLimits::default();
    chosen.metadata.max_chunk_nbytes = get("max_chunk_nbytes")?.unwrap_or(chosen.metadata.max_chunk_nbytes);
    chosen.metadata.max_ndim = get("max_ndim")?.map_or(chosen.metadata.max_ndim, size);
    chosen.metadata.max_metadata_nbytes =
        get("max_metadata_nbytes")?.unwrap_or(chosen.metadata.max_metadata_nbytes);
    chosen.max_variable_nbytes = get("max_variable_nbytes")?.map_or(chosen.max_variable_nbytes, size);
    chosen.max_ratio = get("max_ratio")?.unwrap_or(chosen.max_ratio);
    Ok(chosen)
}

#[doc = help!("set_num_threads")]
#[pyfunction]
pub fn set_num_threads(#[pyo3(from_py_with = argument)] count: i64) -> PyResult<()> {
    match usize::try_from(count) {
        Ok(count) if count > 0 => zarrow::set_num_threads(count),
        _ => return Err(PyValueError::new_err(format!("{count} threads: expected 1 or more"))),
    }
    Ok(())
}

/// Warns about an invalid number of threads in the environment.
pub fn check_environment(py: Python<'_>) -> PyResult<()> {
    const NAME: &str = "ZARROW_NUM_THREADS";
    let Some(value) = std::env::var_os(NAME) else { return Ok(()) };
    let value = value.to_string_lossy();
    if value.trim().is_empty() || value.trim().parse::<usize>().is_ok_and(|count| count > 0) {
        return Ok(());
    }
    let message = format!("{NAME} is {value:?} and is ignored: expected a number of threads, 1 or more");
    let warning = (message, py.get_type::<PyRuntimeWarning>());
    import(py, "warnings")?.call_method1("warn", warning).map(drop)
}

#[doc = help!("num_threads")]
#[pyfunction]
pub fn num_threads() -> usize {
    zarrow::num_threads()
}
