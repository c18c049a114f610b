//! The class `ArrowStream`: rows of an array or of a group, which Arrow libraries read when they want them.
//!
//! It holds no rows: each time that a library asks, it gets a stream of its own, which reads a batch at a time on the
//! library's thread, without the GIL of ours.

use crate::export::{arrow, capsule};
use crate::python::error::Raise;
use crate::python::importing::import;
use crate::python::{gil, interrupt};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PySlice};
use std::sync::Arc;
use zarrow::arrow::Table;
use zarrow::visible;
use zarrow_array::export::arrow_abi::{ArrowArray, ArrowSchema};
use zarrow_array::export::arrow_stream::{ArrowArrayStream, BatchSource, StreamError};

#[doc = help!("ArrowStream")]
#[pyclass(frozen, module = "zarrow")]
pub struct ArrowStream {
    table: Table,
}

/// The type of a table's batches in a capsule.
pub fn schema<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyCapsule>> {
    capsule::arrow_schema(py, table.schema().raise(py)?.into_c())
}

/// A stream of a table in a capsule, in the form that `requested` asks for where that can be had.
pub fn stream<'py>(
    py: Python<'py>,
    table: Table,
    requested: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let table = match arrow::requested(requested)? {
        Some(schema) => table.requested(schema),
        None => table,
    };
    // What is wrong with a type is told here, with a class and a kind; a stream has texts only.
    table.schema().raise(py)?;
    let batches = Arc::new(table).batches(interrupt::of_this_thread());
    capsule::arrow_stream(py, ArrowArrayStream::new(Box::new(WithoutGil(batches))))
}

/// Batches that are read without the GIL, whichever library asks for them: codecs that are written in Python need it on
/// other threads.
struct WithoutGil<S>(S);

impl<S: BatchSource> BatchSource for WithoutGil<S> {
    fn schema(&self) -> Result<ArrowSchema, StreamError> {
        self.0.schema()
    }

    fn next_batch(&mut self) -> Result<Option<ArrowArray>, StreamError> {
        gil::without(|| self.0.next_batch())
    }
}

impl ArrowStream {
    /// The rows of `table` that `rows` asks for.
    pub fn new(table: Table, rows: Option<Bound<'_, PySlice>>) -> PyResult<ArrowStream> {
        let Some(rows) = rows else { return Ok(ArrowStream { table }) };
        let range = rows.indices(isize::try_from(table.rows().end).unwrap_or(isize::MAX))?;
        if range.step != 1 {
            return Err(PyValueError::new_err(
                "expected rows as a slice without a step, such as slice(0, 100)",
            ));
        }
        let (start, stop) = (range.start.unsigned_abs() as u64, range.stop.unsigned_abs() as u64);
        Ok(ArrowStream { table: table.with_rows(start..stop) })
    }

    /// Has a library read the stream, by one function for a table and another for the rows of one array.
    fn read_by<'py>(
        &self,
        library: &str,
        [table, rows]: [&str; 2],
        stream: &Bound<'py, Self>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = stream.py();
        let function = if self.table.is_struct() { table } else { rows };
        // Where Ctrl-C ended the stream, it is that which is raised, and not the library's error of the stream's end.
        import(py, library)?.call_method1(function, (stream,)).map_err(|error| match py.check_signals() {
            Ok(()) => error,
            Err(interruption) => interruption,
        })
    }
}

#[pymethods]
impl ArrowStream {
    #[doc = help!("ArrowStream.num_rows")]
    #[getter]
    fn num_rows(&self) -> u64 {
        let rows = self.table.rows();
        rows.end - rows.start
    }

    #[doc = help!("ArrowStream.batch_rows")]
    #[getter]
    fn batch_rows(&self) -> u64 {
        self.table.batch_rows().get()
    }

    #[doc = help!("ArrowStream.column_names")]
    #[getter]
    fn column_names(&self) -> Option<Vec<String>> {
        let names = self.table.columns().map(|(column, _)| column.name().to_owned());
        self.table.is_struct().then(|| names.collect())
    }

    #[doc = help!("ArrowStream.arrow")]
    fn arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().read_by("pyarrow", ["table", "chunked_array"], slf)
    }

    #[doc = help!("ArrowStream.polars")]
    fn polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().read_by("polars", ["DataFrame", "Series"], slf)
    }

    #[doc = help!("ArrowStream.__arrow_c_schema__")]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.table)
    }

    #[doc = help!("ArrowStream.__arrow_c_stream__")]
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream(py, self.table.clone(), requested_schema.as_ref())
    }

    fn __repr__(&self) -> String {
        let rows = self.num_rows();
        let names: Vec<String> = self.column_names().unwrap_or_default();
        let columns =
            if names.is_empty() { String::new() } else { format!(" of {}", visible(&names.join(", "))) };
        format!("<zarrow.ArrowStream {rows} rows{columns}, {} a batch>", self.batch_rows())
    }
}
