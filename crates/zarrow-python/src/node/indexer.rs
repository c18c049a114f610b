//! The class `Indexer`: an array with one kind of indexing, `oindex`, `vindex` or `blocks`.

use crate::device::read::{Arguments, Destination};
use crate::index::advanced::Indexing;
use crate::node::array_input::Writing;
use crate::node::current::Current;
use crate::node::origin::Reduced;
use crate::python::argument::{argument, known};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis};
use zarrow::visible;

#[doc = help!("Indexer")]
#[pyclass(frozen, module = "zarrow")]
pub struct Indexer {
    object: Py<PyAny>,
    array: Current<zarrow::Array>,
    kind: Indexing,
}

impl Indexer {
    /// Creates the indexer of this kind for `object`, an Array with the state `array`.
    pub fn new(object: &Bound<'_, PyAny>, array: &Current<zarrow::Array>, kind: Indexing) -> Indexer {
        Indexer { object: object.clone().unbind(), array: array.clone(), kind }
    }

    /// Returns the array and its kind of indexing.
    pub fn array_and_kind(&self) -> (&Current<zarrow::Array>, Indexing) {
        (&self.array, self.kind)
    }

    /// Returns the name of the attribute of an Array.
    fn name(&self) -> &'static str {
        match self.kind {
            Indexing::Orthogonal => "oindex",
            Indexing::Vectorized => "vindex",
            Indexing::Block => "blocks",
            Indexing::Plain | Indexing::Basic => "index",
        }
    }
}

#[pymethods]
impl Indexer {
    #[doc = help!("Indexer.array")]
    #[getter]
    fn array(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.clone_ref(py)
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.array.read_by(index, self.kind, None, None)
    }

    fn __setitem__(&self, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.array.write_by(index, value, self.kind, Writing::default())
    }

    #[doc = help!("Indexer.read")]
    #[pyo3(
        signature = (selection = None, *, out = None, device = None, stream = None, decompress = None, **unknown),
        text_signature = "($self, selection=None, *, out=None, device=None, stream=None, decompress=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        selection: Option<Bound<'py, PyAny>>,
        out: Option<Bound<'py, PyAny>>,
        device: Option<Bound<'py, PyAny>>,
        stream: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument)] decompress: Option<&str>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        known(py, "Indexer.read", unknown)?;
        let arguments =
            Arguments { device: device.as_ref(), out: out.as_ref(), stream: stream.as_ref(), decompress };
        let place = Destination::from_arguments(&arguments)?;
        let index = selection.unwrap_or_else(|| PyEllipsis::get(py).to_owned().into_any());
        self.array.read_by(&index, self.kind, out, place)
    }

    #[doc = help!("Indexer.write")]
    #[pyo3(
        signature = (selection, value, *, casting = "same_kind", durability = None, write_empty_chunks = false,
                     **unknown),
        text_signature = "($self, selection, value, *, casting=\"same_kind\", durability=None, \
                          write_empty_chunks=False)"
    )]
    fn write(
        &self,
        selection: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument)] casting: &str,
        #[pyo3(from_py_with = argument)] durability: Option<&str>,
        #[pyo3(from_py_with = argument)] write_empty_chunks: bool,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        known(selection.py(), "Indexer.write", unknown)?;
        let options = Writing { durability, write_empty_chunks, casting };
        self.array.write_by(selection, value, self.kind, options)
    }

    #[doc = help!("Indexer.__reduce__")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let arguments = (self.array(py), self.name()).into_pyobject(py)?;
        Ok((py.import("builtins")?.getattr("getattr")?, arguments))
    }

    fn __repr__(&self) -> String {
        let name = self.name();
        let array = self.array.get();
        format!("<{name} of /{} in {}>", visible(array.path()), visible(array.store().name()))
    }
}
