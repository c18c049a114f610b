//! The class `_ChunkParts`: parts of an array's chunks, read and written in batches for the codec pipeline of
//! `zarrow.zarr_python`.
//!
//! 1. zarr-python keeps the array's documents, so the array is [bare](zarrow::Array::bare). Its shape at a call comes
//!    from the batch.
//! 2. All parts of a read are one read of the engine: each chunk is opened and decoded once.

use crate::index::advanced::{self, Indexing};
use crate::node::array::Array;
use crate::node::array_input::ArrayInput;
use crate::node::current::Current;
use crate::node::out::Out;
use crate::node::store::StoreLocation;
use crate::python::error::Raise;
use crate::python::interrupt::interruptible;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use zarrow::codec::{parse_v2_array, parse_v3};
use zarrow::metadata::{MetadataLimits, NodeMetadata};
use zarrow::{OpenOptions, Selection, WriteOptions};
use zarrow_array::allocation;

/// The chunks of a bare array.
#[pyclass(frozen, name = "_ChunkParts", module = "zarrow")]
pub struct ChunkParts {
    /// The array with the shape of the last call.
    array: Current<zarrow::Array>,
}

/// A part of the array, and memory of its shape.
type PartOfArray<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

impl ChunkParts {
    /// Step 1.
    fn of_shape(&self, py: Python<'_>, shape: &[u64]) -> PyResult<Arc<zarrow::Array>> {
        let last = self.array.get();
        let array = last.reshaped(shape).raise(py)?;
        if last.shape() != shape {
            self.array.set_later(array.clone(), |_| 0);
        }
        Ok(Arc::new(array))
    }
}

/// Returns the kind of indexing of this name.
fn indexing(kind: &str) -> PyResult<Indexing> {
    match kind {
        "basic" => Ok(Indexing::Basic),
        "orthogonal" => Ok(Indexing::Orthogonal),
        "vectorized" => Ok(Indexing::Vectorized),
        other => Err(PyValueError::new_err(format!(
            "indexing is {other:?}, expected \"basic\", \"orthogonal\" or \"vectorized\""
        ))),
    }
}

#[pymethods]
impl ChunkParts {
    /// Open the chunks of the array at `path` of a store, described by its document.
    #[new]
    fn new(store: &Bound<'_, PyAny>, path: &str, zarr_format: u8, document: &[u8]) -> PyResult<ChunkParts> {
        let py = store.py();
        let location = StoreLocation::from_python(store)?;
        let array = py.detach(|| {
            let limits = MetadataLimits::default();
            let metadata = match zarr_format {
                2 => parse_v2_array(document, None, &limits)?,
                _ => match parse_v3(document, &limits)? {
                    NodeMetadata::Array(metadata) => metadata,
                    NodeMetadata::Group(_) => return Err(zarrow::ErrorKind::NotFound.into()),
                },
            };
            zarrow::Array::bare(location.open()?, path, metadata, &OpenOptions::default())
        });
        Ok(ChunkParts { array: Current::new(array.raise(py)?) })
    }

    /// Return the array with this shape.
    fn array<'py>(&self, py: Python<'py>, shape: Vec<u64>) -> PyResult<Bound<'py, Array>> {
        Array::create(py, (*self.of_shape(py, &shape)?).clone())
    }

    /// Return whether the store answers immediately, such as a folder.
    fn is_local(&self) -> bool {
        self.array.get().store().remote().is_none()
    }

    /// Read pairs of a selection and memory of its shape, in one read of an array of this shape. Memory of different
    /// pairs must not overlap. Return the indices of the missing chunks.
    fn read<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<u64>,
        kind: &str,
        parts: Vec<PartOfArray<'py>>,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let (array, kind) = (self.of_shape(py, &shape)?, indexing(kind)?);
        let owned = parts.iter().map(|(index, memory)| {
            let selection = advanced::selection(&array, index, kind)?;
            let out = Out::new(memory, array.data_type(), &selection.shape())?;
            PyResult::Ok((selection, out))
        });
        let owned: Vec<(Selection, Out)> = owned.collect::<PyResult<_>>()?;
        interruptible(py, |interrupt| {
            let requests = owned.iter().map(|(selection, out)| {
                // SAFETY: `Out` checked that the memory is writable and that elements do not overlap, and keeps it
                // alive. Memory of different parts is disjoint: `zarrow.zarr_python.batches` makes a batch one part, or
                // checks that its parts have no place in common. The caller does not use the memory during the call.
                Ok(unsafe { array.request(selection)?.cancel(interrupt).out(out.strided.clone()) })
            });
            zarrow::read_each(&allocation::try_collected::<_, zarrow::Error>(requests)?)
        })?;
        array.take_missing_chunks().iter().map(|chunk_index| PyTuple::new(py, chunk_index)).collect()
    }

    /// Write pairs of a selection and its values, one after the other, to an array of this shape.
    #[pyo3(signature = (shape, kind, parts, *, write_empty_chunks, replace_edges))]
    fn write<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<u64>,
        kind: &str,
        parts: Vec<PartOfArray<'py>>,
        write_empty_chunks: bool,
        replace_edges: bool,
    ) -> PyResult<()> {
        let (array, kind) = (self.of_shape(py, &shape)?, indexing(kind)?);
        let owned = parts.iter().map(|(index, values)| {
            let selection = advanced::selection(&array, index, kind)?;
            let input = ArrayInput::new(values, array.data_type(), "equiv", None)?;
            PyResult::Ok((selection, input))
        });
        let owned: Vec<(Selection, ArrayInput)> = owned.collect::<PyResult<_>>()?;
        interruptible(py, |interrupt| {
            let options =
                WriteOptions::default().write_empty_chunks(write_empty_chunks).replace_edges(replace_edges);
            owned.iter().try_for_each(|(selection, input)| {
                // SAFETY: the caller must not write to the values during the call, as with NumPy.
                let values = unsafe { input.values() }?;
                array.write_request(selection)?.options(&options.cancel(interrupt)).write(&values)
            })
        })
    }
}
