//! Elements of a new array that Python provides in parts.
//!
//! 1. The engine runs without the GIL. It takes the GIL to get the next part, and writes the part without it.
//! 2. An exception of the source aborts the creation. It is stored, and raised once the engine has cleaned up.

use crate::index::advanced::{self, Indexing};
use crate::node::array_input::{self, ArrayInput};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use zarrow::metadata::{ArrayMetadata, ChunkGrid};
use zarrow::{ErrorKind, Result, Selection, Values};
use zarrow_array::fork::OnceCell;

/// A Python function that receives a block shape and yields pairs of an index and its elements, aligned to these
/// blocks.
pub struct ArrayParts {
    source: Py<PyAny>,
    metadata: ArrayMetadata,
    raised: OnceCell<PyErr>,
}

impl ArrayParts {
    /// Creates parts for an array with `metadata`.
    pub fn new(source: &Bound<'_, PyAny>, metadata: ArrayMetadata) -> ArrayParts {
        ArrayParts { source: source.clone().unbind(), metadata, raised: OnceCell::new() }
    }

    /// Writes all parts.
    pub fn put_all(&self, put: &mut dyn FnMut(&Selection, &Values<'_>) -> Result<()>) -> Result<()> {
        let parts = self.kept(Python::attach(|py| self.start(py)))?;
        let mut last: Option<ArrayInput> = None;
        // Step 1. The memory of a part is freed before the next one is read.
        loop {
            let next = Python::attach(|py| {
                drop(last.take());
                self.next(parts.bind(py))
            });
            let Some((selection, input)) = self.kept(next)? else { return Ok(()) };
            // SAFETY: as for writing.
            let values = unsafe { input.values() }?;
            put(&selection?, &values)?;
            last = Some(input);
        }
    }

    /// Returns the exception of the source (step 2).
    pub fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        self.raised.get().map(|error| error.clone_ref(py))
    }

    fn start(&self, py: Python<'_>) -> PyResult<Py<PyIterator>> {
        let unit = match &self.metadata.chunk_grid {
            ChunkGrid::Regular { chunk_shape } => chunk_shape,
            _ => &self.metadata.shape,
        };
        Ok(self.source.bind(py).call1((unit.clone(),))?.try_iter()?.unbind())
    }

    fn next(&self, parts: &Bound<'_, PyIterator>) -> PyResult<Option<(Result<Selection>, ArrayInput)>> {
        let Some(part) = parts.clone().next().transpose()? else { return Ok(None) };
        let (index, elements): (Bound<'_, PyAny>, Bound<'_, PyAny>) = part.extract()?;
        let selection = advanced::for_shape(&self.metadata.shape, &index, Indexing::Plain)?;
        let data_type = &self.metadata.data_type;
        let input = ArrayInput::new(&elements, data_type, array_input::CASTING, Some(&self.metadata))?;
        Ok(Some((selection, input)))
    }

    fn kept<T>(&self, result: PyResult<T>) -> Result<T> {
        result.map_err(|error| {
            self.raised.set(error);
            ErrorKind::Interrupted.into()
        })
    }
}
