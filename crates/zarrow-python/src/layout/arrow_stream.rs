//! The class `ArrowStream`: rows of an array or of a group that Arrow libraries read on demand.
//!
//! It holds no rows: each export is a new stream, which reads a batch at a time on the consumer's thread, without
//! our GIL.

use crate::export::arrow;
use crate::python::capsule;
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

/// Returns the type of a table's batches in a capsule.
pub fn schema<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyCapsule>> {
    capsule::arrow_schema(py, table.schema().raise(py)?.into_c())
}

/// Returns a stream of a table in a capsule, in the `requested` form if possible.
pub fn stream<'py>(
    py: Python<'py>,
    table: Table,
    requested: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let table = match arrow::requested(requested)? {
        Some(schema) => table.requested(schema),
        None => table,
    };
    // Type errors are raised here, with a class and a kind; a stream only has error texts.
    table.schema().raise(py)?;
    let batches = Arc::new(table).batches(interrupt::for_this_thread());
    capsule::arrow_stream(py, ArrowArrayStream::new(Box::new(WithoutGil(batches))))
}

/// Reads batches without the GIL on any consumer's thread, because codecs written in Python need it on other
/// threads.
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
    /// Selects `rows` of `table`.
    pub fn new(table: Table, rows: Option<Bound<'_, PySlice>>) -> PyResult<ArrowStream> {
        let Some(rows) = rows else { return Ok(ArrowStream { table }) };
        let range = rows.indices(isize::try_from(table.rows().end).unwrap_or(isize::MAX))?;
        if range.step != 1 {
            return Err(PyValueError::new_err(
                "expected rows to be a slice without a step, such as slice(0, 100)",
            ));
        }
        let (start, stop) = (range.start.unsigned_abs() as u64, range.stop.unsigned_abs() as u64);
        Ok(ArrowStream { table: table.with_rows(start..stop) })
    }

    /// Passes the stream to a function of a library: one for a table, another for the rows of one array.
    fn read_by<'py>(
        &self,
        library: &str,
        [table, rows]: [&str; 2],
        stream: &Bound<'py, Self>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = stream.py();
        let function = if self.table.is_struct() { table } else { rows };
        // If Ctrl-C ended the stream, raises that instead of the library's error.
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
