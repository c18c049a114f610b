//! Conversion of Python's basic indices to selections: integers, slices, `...` and, for views of memory, `None`.
//!
//! Source: NumPy, "Basic indexing". [`advanced`](crate::index::advanced) converts index arrays and masks.

use crate::python::error::{Attempt, Raise, indexing};
use crate::python::importing::import;
use crate::python::interpreter_exit;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyList, PySlice, PyTuple};
use zarrow::{AxisSelection, Index, Selection};
use zarrow_array::IndexStep;
use zarrow_array::shape::Axes;

/// One item of an index.
#[derive(Clone, Copy)]
enum IndexItem {
    /// None, a new axis.
    New,
    Basic(Index),
    /// An array, or an invalid index.
    Other,
}

impl IndexItem {
    /// Returns the index of a stored array's axis.
    fn basic(self) -> Option<Index> {
        match self {
            IndexItem::Basic(index) => Some(index),
            IndexItem::New | IndexItem::Other => None,
        }
    }
}

/// Returns the part of a decoded array for an index that is not a single element or not basic.
pub fn part_of<'py>(array: &Bound<'py, PyAny>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    import(array.py(), "zarrow.arrays.indexing")?.call_method1("part", (array, index))
}

/// Returns the indices for a stored array; `None` if one is not basic.
pub fn indices(index: &Bound<'_, PyAny>) -> PyResult<Option<Axes<Index>>> {
    interpreter_exit::guard_thread();
    match index.cast::<PyTuple>() {
        Ok(items) => {
            let mut indices = Axes::new();
            for item in items.iter() {
                let Some(index) = index_of(&item)? else { return Ok(None) };
                indices.push(index);
            }
            Ok(Some(indices))
        }
        Err(_) => Ok(index_of(index)?.map(|index| Axes::from_elem(index, 1))),
    }
}

/// Returns the index of one axis of a stored array; `None` if it is not basic, as a tuple, which is a list there.
pub fn index_of(item: &Bound<'_, PyAny>) -> PyResult<Option<Index>> {
    match part(item)? {
        IndexItem::Basic(index) => Ok(Some(index)),
        IndexItem::Other => Ok(None),
        IndexItem::New => Err(indexing(
            item.py(),
            "None (np.newaxis) does not select from a stored array: read first, then add the axis",
        )),
    }
}

/// Returns the view of memory of `shape` for a basic index; `None` for other indices.
pub fn steps(index: &Bound<'_, PyAny>, shape: &[i64]) -> PyResult<Option<Vec<IndexStep>>> {
    let Some(parts) = parts(index)? else { return Ok(None) };
    let indices: Vec<Index> = parts.iter().copied().filter_map(IndexItem::basic).collect();
    let extents: Vec<u64> = shape.iter().map(|extent| extent.unsigned_abs()).collect();
    let selection = Selection::new(&extents, &indices).raise(index.py())?;
    let given = indices.iter().filter(|index| **index != Index::Ellipsis).count();
    let mut axes = selection.axes().iter().filter_map(|axis| match axis {
        AxisSelection::Even { start, dropped: true, .. } => Some(IndexStep::At(*start as i64)),
        AxisSelection::Even { start, step, count, .. } => {
            Some(IndexStep::Range { start: *start as i64, step: *step, count: *count as i64 })
        }
        // Basic indices contain neither lists nor points.
        _ => None,
    });
    let mut steps = Vec::with_capacity(shape.len() + parts.len());
    for part in parts {
        match part {
            IndexItem::Basic(Index::Ellipsis) => steps.extend(axes.by_ref().take(shape.len() - given)),
            IndexItem::Basic(_) => steps.extend(axes.next()),
            _ => steps.push(IndexStep::New),
        }
    }
    steps.extend(axes);
    Ok(Some(steps))
}

/// Returns the position of a single element in C order, if `index` has an integer for every axis of `shape`.
pub fn position(index: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Option<usize>> {
    let Some(indices) =
        parts(index)?.and_then(|parts| parts.into_iter().map(IndexItem::basic).collect::<Option<Vec<_>>>())
    else {
        return Ok(None);
    };
    let selection = Selection::new(shape, &indices).raise(index.py())?;
    if !selection.shape().is_empty() {
        return Ok(None);
    }
    let mut position = 0;
    for (axis, extent) in selection.axes().iter().zip(shape) {
        position = position * extent + axis.position(0);
    }
    Ok(Some(position as usize))
}

/// Parses each item of the index; `None` if one is an array.
fn parts(index: &Bound<'_, PyAny>) -> PyResult<Option<Vec<IndexItem>>> {
    let of = |item: &Bound<'_, PyAny>| match part(item)? {
        IndexItem::Other => Ok(None),
        part => Ok(Some(part)),
    };
    match index.cast::<PyTuple>() {
        Ok(items) => items.iter().map(|item| of(&item)).collect(),
        Err(_) => Ok(of(index)?.map(|part| vec![part])),
    }
}

fn part(item: &Bound<'_, PyAny>) -> PyResult<IndexItem> {
    let py = item.py();
    if item.is_none() {
        return Ok(IndexItem::New);
    }
    if item.is(PyEllipsis::get(py)) {
        return Ok(IndexItem::Basic(Index::Ellipsis));
    }
    if item.is_instance_of::<PySlice>() {
        return slice(item).map(IndexItem::Basic);
    }
    if item.is_instance_of::<PyBool>() || item.is_instance_of::<PyList>() {
        return Ok(IndexItem::Other);
    }
    match item.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            Err(indexing(py, format!("index {item} is out of bounds")))
        }
        other => {
            Ok(other.attempt(py)?.map_or(IndexItem::Other, |position| IndexItem::Basic(Index::At(position))))
        }
    }
}

/// Returns a slice. Bounds that are None or out of range become the largest or smallest integers, which clip to the
/// same positions.
fn slice(item: &Bound<'_, PyAny>) -> PyResult<Index> {
    let py = item.py();
    let (mut start, mut stop, mut step) = (0isize, 0isize, 0isize);
    // SAFETY: attached, `item` is a slice (the caller checked), and the results are locals.
    if unsafe { ffi::PySlice_Unpack(item.as_ptr(), &mut start, &mut stop, &mut step) } == 0 {
        let (start, stop, step) = (start as i64, stop as i64, step as i64);
        return Ok(Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) });
    }
    match PyErr::fetch(py) {
        error if error.is_instance_of::<PyValueError>(py) => {
            Err(indexing(py, "slice step is 0, expected another integer"))
        }
        error if error.is_instance_of::<PyTypeError>(py) => {
            Err(indexing(py, "expected integers or None as bounds of a slice"))
        }
        error => Err(error),
    }
}
