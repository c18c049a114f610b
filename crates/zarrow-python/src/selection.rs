//! Basic indices of Python as selections: integers, slices, `...` and, for views of memory, `None`.
//!
//! Source: NumPy, "Basic indexing". Index arrays and masks are for [`index_array`](crate::index_array).

use crate::error::{Attempt, Raise, indexing};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyList, PySlice, PyTuple};
use zarrow::{AxisSelection, Index, Selection};
use zarrow_array::IndexStep;

/// One item of an index.
#[derive(Clone, Copy)]
enum Part {
    /// None.
    New,
    Basic(Index),
    /// An array, or nothing that is an index.
    Other,
}

/// The indices for a stored array; `None` where one is no basic index.
pub fn indices(index: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Index>>> {
    let of = |item: &Bound<'_, PyAny>| match part(item)? {
        Part::Basic(index) => Ok(Some(index)),
        Part::Other => Ok(None),
        Part::New => Err(indexing(item.py(), "None adds an axis to a Tensor; here it means nothing")),
    };
    match index.cast::<PyTuple>() {
        Ok(items) => items.iter().map(|item| of(&item)).collect(),
        Err(_) => Ok(of(index)?.map(|index| vec![index])),
    }
}

/// The index of one axis; `None` where it is no basic index.
pub fn index_of(item: &Bound<'_, PyAny>) -> PyResult<Option<Index>> {
    Ok(indices(item)?.and_then(|indices| indices.first().copied()))
}

/// The view that `index` takes of memory of `shape`.
pub fn steps(index: &Bound<'_, PyAny>, shape: &[i64]) -> PyResult<Vec<IndexStep>> {
    let parts = parts(index)?;
    let basic = |part: &Part| match part {
        Part::Basic(index) => Some(*index),
        _ => None,
    };
    let indices: Vec<Index> = parts.iter().filter_map(basic).collect();
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
            Part::Basic(Index::Ellipsis) => steps.extend(axes.by_ref().take(shape.len() - given)),
            Part::Basic(_) => steps.extend(axes.next()),
            _ => steps.push(IndexStep::New),
        }
    }
    steps.extend(axes);
    Ok(steps)
}

/// The position of one element in C order, where `index` has an integer for every axis of `shape`.
pub fn position(index: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<usize> {
    let one = || indexing(index.py(), "strings are taken one by one, with an integer for every axis");
    let selection = Selection::new(shape, &indices(index)?.ok_or_else(one)?).raise(index.py())?;
    if !selection.shape().is_empty() {
        return Err(one());
    }
    let mut position = 0;
    for (axis, extent) in selection.axes().iter().zip(shape) {
        position = position * extent + axis.position(0);
    }
    Ok(position as usize)
}

/// One part for each item of the index, none of which is an array.
fn parts(index: &Bound<'_, PyAny>) -> PyResult<Vec<Part>> {
    let of = |item: &Bound<'_, PyAny>| match part(item)? {
        Part::Other => {
            let kind = item.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
            let message = format!("only integers, slices and ... are indices here, and not {kind}");
            Err(indexing(item.py(), message))
        }
        part => Ok(part),
    };
    match index.cast::<PyTuple>() {
        Ok(items) => items.iter().map(|item| of(&item)).collect(),
        Err(_) => Ok(vec![of(index)?]),
    }
}

fn part(item: &Bound<'_, PyAny>) -> PyResult<Part> {
    let py = item.py();
    if item.is_none() {
        return Ok(Part::New);
    }
    if item.is(PyEllipsis::get(py)) {
        return Ok(Part::Basic(Index::Ellipsis));
    }
    if item.is_instance_of::<PySlice>() {
        return slice(item).map(Part::Basic);
    }
    if item.is_instance_of::<PyBool>() || item.is_instance_of::<PyList>() {
        return Ok(Part::Other);
    }
    match item.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            Err(indexing(py, format!("index {item} is out of bounds")))
        }
        other => Ok(other.attempt(py)?.map_or(Part::Other, |position| Part::Basic(Index::At(position)))),
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
