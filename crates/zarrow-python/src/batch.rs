//! Many selections in one read.

use crate::array::Array;
use crate::decoded_array::wrap;
use crate::index_array::Indexing;
use crate::indexer::Indexer;
use crate::interrupt::interruptible;
use crate::out::Out;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;
use zarrow::{Batch, Selection};

/// The array that an item reads from, and how its index is meant.
fn source<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<(&'a Array, Indexing)> {
    if let Ok(array) = item.cast::<Array>() {
        return Ok((array.get(), Indexing::Plain));
    }
    let Ok(indexer) = item.cast::<Indexer>() else {
        let found = item.get_type();
        let message = format!("an item is a zarrow.Array, or its oindex, vindex or blocks, and not {found}");
        return Err(PyTypeError::new_err(message));
    };
    let (array, kind) = indexer.get().of();
    Ok((array.get(), kind))
}

/// Read many selections at once, each chunk that they need decoded once.
#[pyfunction]
#[pyo3(signature = (items, *, out = None))]
pub fn read_many<'py>(
    py: Python<'py>,
    items: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let items = items.iter().map(|(item, index)| {
        let (array, kind) = source(item)?;
        Ok((array.inner(), array.selection(index, kind)?))
    });
    let items = items.collect::<PyResult<Vec<(Arc<zarrow::Array>, Selection)>>>()?;
    let pairs: Vec<(&zarrow::Array, &Selection)> =
        items.iter().map(|(array, selection)| (&**array, selection)).collect();
    if let Some(object) = out {
        let Some((first, selection)) = pairs.first() else { return Ok(object) };
        let shape = [&[pairs.len() as u64][..], &selection.shape()].concat();
        let memory = Out::new(&object, first.data_type(), &shape)?;
        interruptible(py, |interrupt| {
            // SAFETY: as for `Array.read`.
            unsafe { zarrow::read_many_strided(&pairs, &memory.strided, interrupt) }
        })?;
        return Ok(object);
    }
    match interruptible(py, |interrupt| zarrow::read_many(&pairs, interrupt))? {
        Batch::Stacked(batch) => wrap(py, batch),
        Batch::Ragged(arrays) => {
            let arrays = arrays.into_iter().map(|array| wrap(py, array)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, arrays)?.into_any())
        }
    }
}
