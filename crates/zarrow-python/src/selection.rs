//! Python indices as selections: integers, slices, `...` and, for views of memory, `None`.
//!
//! Source: NumPy, "Basic indexing". Index arrays and masks are refused.

use crate::error::{Raise, indexing};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use zarrow::{AxisSelection, Index, Selection};
use zarrow_array::IndexStep;

/// The indices for a stored array, where `None` has no meaning.
pub fn indices(index: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    let given = |item: &Bound<'_, PyAny>| {
        let refused = || indexing(item.py(), "None adds an axis to a Tensor; here it means nothing");
        part(item)?.ok_or_else(refused)
    };
    match index.cast::<PyTuple>() {
        Ok(items) => items.iter().map(|item| given(&item)).collect(),
        Err(_) => Ok(vec![given(index)?]),
    }
}

/// The view that `index` takes of memory of `shape`.
pub fn steps(index: &Bound<'_, PyAny>, shape: &[i64]) -> PyResult<Vec<IndexStep>> {
    let parts = parts(index)?;
    let indices: Vec<Index> = parts.iter().copied().flatten().collect();
    let extents: Vec<u64> = shape.iter().map(|extent| extent.unsigned_abs()).collect();
    let selection = Selection::new(&extents, &indices).raise(index.py())?;
    let given = indices.iter().filter(|index| **index != Index::Ellipsis).count();
    let mut axes = selection.axes().iter().filter_map(|axis| match axis {
        AxisSelection::Even { start, dropped: true, .. } => Some(IndexStep::At(*start as i64)),
        AxisSelection::Even { start, step, count, .. } => {
            Some(IndexStep::Range { start: *start as i64, step: *step, count: *count as i64 })
        }
        // Basic indices give neither lists nor points.
        _ => None,
    });
    let mut steps = Vec::with_capacity(shape.len() + parts.len());
    for part in parts {
        match part {
            None => steps.push(IndexStep::New),
            Some(Index::Ellipsis) => steps.extend(axes.by_ref().take(shape.len() - given)),
            Some(_) => steps.extend(axes.next()),
        }
    }
    steps.extend(axes);
    Ok(steps)
}

/// The position of one element in C order, where `index` has an integer for every axis of `shape`.
pub fn position(index: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<usize> {
    let selection = Selection::new(shape, &indices(index)?).raise(index.py())?;
    if !selection.shape().is_empty() {
        return Err(indexing(index.py(), "strings are taken one by one, with an integer for every axis"));
    }
    let mut position = 0;
    for (axis, extent) in selection.axes().iter().zip(shape) {
        position = position * extent + axis.position(0);
    }
    Ok(position as usize)
}

/// One part for each item of the index; `None` stands for a new axis.
fn parts(index: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Index>>> {
    match index.cast::<PyTuple>() {
        Ok(items) => items.iter().map(|item| part(&item)).collect(),
        Err(_) => Ok(vec![part(index)?]),
    }
}

fn part(item: &Bound<'_, PyAny>) -> PyResult<Option<Index>> {
    let py = item.py();
    if item.is_none() {
        return Ok(None);
    }
    if item.is(PyEllipsis::get(py)) {
        return Ok(Some(Index::Ellipsis));
    }
    if item.is_instance_of::<PySlice>() {
        return slice(item).map(Some);
    }
    let refused = || {
        let kind = item.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
        indexing(py, format!("only integers, slices and ... are indices here, and not {kind}"))
    };
    if item.is_instance_of::<PyBool>() {
        return Err(refused());
    }
    match item.extract::<i64>() {
        Ok(position) => Ok(Some(Index::At(position))),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            Err(indexing(py, format!("index {item} is out of bounds")))
        }
        Err(_) => Err(refused()),
    }
}

/// The bounds of a slice; those that are None or beyond every array become the largest or smallest integers, which
/// clip to the same positions.
fn slice(item: &Bound<'_, PyAny>) -> PyResult<Index> {
    let py = item.py();
    let (mut start, mut stop, mut step) = (0isize, 0isize, 0isize);
    // SAFETY: attached, `item` is a slice (the caller asked), and the results are locals.
    if unsafe { ffi::PySlice_Unpack(item.as_ptr(), &mut start, &mut stop, &mut step) } == 0 {
        let (start, stop, step) = (start as i64, stop as i64, step as i64);
        return Ok(Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) });
    }
    match PyErr::fetch(py) {
        error if error.is_instance_of::<PyValueError>(py) => Err(indexing(py, "slice step cannot be zero")),
        error if error.is_instance_of::<PyTypeError>(py) => {
            Err(indexing(py, "the bounds of a slice are integers or None"))
        }
        error => Err(error),
    }
}
