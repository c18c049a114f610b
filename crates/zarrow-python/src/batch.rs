//! Many selections in one read.

use crate::array::Array;
use crate::decoded_array::wrap;
use crate::error::Raise;
use crate::index_array::Indexing;
use crate::indexer::Indexer;
use crate::interrupt::interruptible;
use crate::out::Out;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;
use zarrow::{Batch, Selection};
use zarrow_array::allocation::{self, Grow};

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
    items: Bound<'py, PyAny>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut owned: Vec<(Arc<zarrow::Array>, Selection)> = Vec::new();
    for item in items.try_iter()? {
        let (item, index): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let (array, kind) = source(&item)?;
        owned.try_push((array.inner(), array.selection(&index, kind)?)).raise(py)?;
    }
    let pairs = owned.iter().map(|(array, selection)| (&**array, selection));
    let pairs: Vec<(&zarrow::Array, &Selection)> = allocation::collected(pairs).raise(py)?;
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
            let list = PyList::empty(py);
            for array in arrays {
                list.append(wrap(py, array)?)?;
            }
            Ok(list.into_any())
        }
    }
}
