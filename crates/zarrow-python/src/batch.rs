//! Many selections in one read.

use crate::array::Array;
use crate::decoded_array::wrap;
use crate::interrupt::interruptible;
use crate::out::Out;
use pyo3::prelude::*;
use pyo3::types::PyList;
use zarrow::{Batch, Selection};

/// Read many selections at once, each chunk that they need decoded once.
#[pyfunction]
#[pyo3(signature = (items, *, out = None))]
pub fn read_many<'py>(
    py: Python<'py>,
    items: Vec<(Bound<'py, Array>, Bound<'py, PyAny>)>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let selections = items
        .iter()
        .map(|(array, index)| array.get().selection(index))
        .collect::<PyResult<Vec<Selection>>>()?;
    let arrays: Vec<_> = items.iter().map(|(array, _)| array.get().inner()).collect();
    let pairs: Vec<(&zarrow::Array, &Selection)> =
        arrays.iter().map(|array| &**array).zip(&selections).collect();
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
