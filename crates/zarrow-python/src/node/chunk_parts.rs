//! The class `_ChunkParts`: parts of an array's chunks, read and written in batches for the codec pipeline of
//! `zarrow.zarr_python`.
//!
//! 1. zarr-python keeps the array's documents, so the array is [bare](zarrow::Array::bare). Its shape at a call comes
//!    from the batch.
//! 2. All parts of a read are one read of the engine: each chunk is opened and decoded once. Threads fill the parts'
//!    places in the result at the same time, so the places must be disjoint.

use crate::index::advanced::{self, Indexing};
use crate::node::array::Array;
use crate::node::array_input::ArrayInput;
use crate::node::current::Current;
use crate::node::detached::{DetachedRead, tell_with};
use crate::node::out::Out;
use crate::node::store::StoreLocation;
use crate::python::error::Raise;
use crate::python::gil::Kept;
use crate::python::interrupt::interruptible;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::ops::Range;
use zarrow::codec::{parse_v2_array, parse_v3};
use zarrow::metadata::{MetadataLimits, NodeMetadata};
use zarrow::store::remote::Coalescing;
use zarrow::{Detached, OpenOptions, Selection, Strided, WriteOptions};
use zarrow_array::allocation;

/// The chunks of a bare array.
#[pyclass(frozen, name = "_ChunkParts", module = "zarrow")]
pub struct ChunkParts {
    /// The array with the shape of the last call.
    array: Current<zarrow::Array>,
}

/// A part of the array, and memory of its shape.
type PartOfArray<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// A part of the array, and its place in the result: a slice for each axis.
type PlacedPart<'py> = (Bound<'py, PyAny>, Vec<Bound<'py, PySlice>>);

impl ChunkParts {
    /// Step 1.
    fn for_shape(&self, py: Python<'_>, shape: &[u64]) -> PyResult<zarrow::Array> {
        let last = self.array.get();
        let array = last.reshaped(shape).raise(py)?;
        if last.shape() != shape {
            self.array.set_later(array.clone(), |_| 0);
        }
        Ok(array)
    }

    /// Returns the read of pairs of a selection and its place in `result`.
    fn prepare<'py>(
        &self,
        py: Python<'py>,
        shape: &[u64],
        kind: &str,
        parts: &[PlacedPart<'py>],
        result: &Bound<'py, PyAny>,
        coalescing: Option<(u64, u64)>,
    ) -> PyResult<PartsRead> {
        let array = self.for_shape(py, shape)?.with_coalescing(coalescing.map(limits));
        let kind = indexing(kind)?;
        let out = Out::with_any_shape(result, array.data_type())?;
        let places = parts.iter().map(|(_, place)| ranges(place, out.shape()));
        let places: Vec<Vec<Range<usize>>> = places.collect::<PyResult<_>>()?;
        let selections = parts.iter().zip(&places).map(|((index, _), place)| {
            let selection = advanced::selection(&array, index, kind)?;
            check_extents(&selection, place)?;
            PyResult::Ok(selection)
        });
        let selections: Vec<Selection> = selections.collect::<PyResult<_>>()?;
        let Some(targets) = out.strided.disjoint_parts(&places).raise(py)? else {
            return Err(PyValueError::new_err("parts have common places in the result"));
        };
        Ok(PartsRead { array, selections, targets, out })
    }
}

/// A read of several parts, to disjoint places in a result.
struct PartsRead {
    array: zarrow::Array,
    selections: Vec<Selection>,
    targets: Vec<Strided>,
    out: Out,
}

/// Reads each selection to its target (step 2). The owner of the targets' memory keeps it alive, and is an [`Out`].
fn read_parts(
    array: &zarrow::Array,
    selections: &[Selection],
    targets: &[Strided],
    cancel: &dyn Fn() -> bool,
) -> zarrow::Result<()> {
    let requests = selections.iter().zip(targets).map(|(selection, target)| {
        // SAFETY: `Out` checked that the memory is writable and that elements do not overlap. `ranges` and
        // `check_extents` checked that each target has the selection's shape and is inside the result, and
        // `disjoint_parts` that their places are disjoint. zarr-python does not use the memory during the read.
        Ok(unsafe { array.request(selection)?.cancel(cancel).out(target.clone()) })
    });
    zarrow::read_each(&allocation::try_collected::<_, zarrow::Error>(requests)?)?;
    Ok(())
}

/// Returns the limits of merged requests from their gap and their size in bytes.
fn limits((gap_nbytes, merged_nbytes): (u64, u64)) -> Coalescing {
    Coalescing { gap_nbytes, merged_nbytes }
}

/// Returns the indices of chunks as tuples.
fn indices(py: Python<'_>, chunks: Vec<Vec<u64>>) -> PyResult<Vec<Bound<'_, PyTuple>>> {
    chunks.iter().map(|chunk_index| PyTuple::new(py, chunk_index)).collect()
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

/// Returns the positions of a place in a result of this shape.
fn ranges(place: &[Bound<'_, PySlice>], shape: &[i64]) -> PyResult<Vec<Range<usize>>> {
    if place.len() != shape.len() {
        let message = format!("a place with {} axes in a result with {}", place.len(), shape.len());
        return Err(PyValueError::new_err(message));
    }
    let range = |(slice, extent): (&Bound<'_, PySlice>, &i64)| {
        let found = slice.indices(*extent as isize)?;
        match (usize::try_from(found.start), found.step) {
            (Ok(start), 1) => Ok(start..start + found.slicelength),
            _ => Err(PyValueError::new_err(format!("a place in the result with the step {}", found.step))),
        }
    };
    place.iter().zip(shape).map(range).collect()
}

/// Checks that a selection has the extents of its place.
fn check_extents(selection: &Selection, place: &[Range<usize>]) -> PyResult<()> {
    let extents: Vec<u64> = place.iter().map(|range| range.len() as u64).collect();
    if selection.shape()[..] == extents {
        return Ok(());
    }
    let message = format!("the selection has shape {:?}, but its place {extents:?}", selection.shape());
    Err(PyValueError::new_err(message))
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

    /// Return the array with this shape, with the maximum gap and size of merged requests in bytes.
    #[pyo3(signature = (shape, *, coalescing = None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<u64>,
        coalescing: Option<(u64, u64)>,
    ) -> PyResult<Bound<'py, Array>> {
        Array::create(py, self.for_shape(py, &shape)?.with_coalescing(coalescing.map(limits)))
    }

    /// Return the indices of the chunks that reads of a result of `array` missed since the last call.
    fn take_missing<'py>(&self, array: &Bound<'py, Array>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        indices(array.py(), array.get().inner().take_missing_chunks())
    }

    /// Return whether the store answers immediately, such as a folder.
    fn is_local(&self) -> bool {
        self.array.get().store().remote().is_none()
    }

    /// Read pairs of a selection and its place in `result`, in one read of an array of this shape. Return the indices
    /// of the missing chunks. `coalescing` has the maximum gap and size of merged requests in bytes.
    #[pyo3(signature = (shape, kind, parts, result, *, coalescing = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<u64>,
        kind: &str,
        parts: Vec<PlacedPart<'py>>,
        result: &Bound<'py, PyAny>,
        coalescing: Option<(u64, u64)>,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let read = self.prepare(py, &shape, kind, &parts, result, coalescing)?;
        interruptible(py, |interrupt| read_parts(&read.array, &read.selections, &read.targets, interrupt))?;
        indices(py, read.array.take_missing_chunks())
    }

    /// Begin `read` on the engine's threads; `callback` is called with the indices of the missing chunks and the error.
    #[pyo3(signature = (shape, kind, parts, result, callback, *, coalescing = None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn begin_read<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<u64>,
        kind: &str,
        parts: Vec<PlacedPart<'py>>,
        result: &Bound<'py, PyAny>,
        callback: Py<PyAny>,
        coalescing: Option<(u64, u64)>,
    ) -> PyResult<DetachedRead> {
        let PartsRead { array, selections, targets, out } =
            self.prepare(py, &shape, kind, &parts, result, coalescing)?;
        let keeper = Kept::new((out, result.clone().unbind()));
        let work = move |cancel: &dyn Fn() -> bool| {
            read_parts(&array, &selections, &targets, cancel)?;
            Ok(array.take_missing_chunks())
        };
        let done = |missing: zarrow::Result<Vec<Vec<u64>>>| {
            drop(keeper);
            tell_with(callback, missing, |py, missing| {
                Ok(indices(py, missing)?.into_pyobject(py)?.into_any())
            });
        };
        py.detach(|| Detached::spawn(work, done)).raise(py).map(DetachedRead)
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
        let (array, kind) = (self.for_shape(py, &shape)?, indexing(kind)?);
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
