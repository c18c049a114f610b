//! Several selections in one read.

use crate::device::read::{Arguments, Destination};
use crate::index::advanced::Indexing;
use crate::index::field::requests;
use crate::layout::decoded_array::wrap;
use crate::node::array::Array;
use crate::node::current::Current;
use crate::node::indexer::Indexer;
use crate::node::missing;
use crate::node::out::Out;
use crate::node::reading::UNREPORTED;
use crate::python::argument::{argument, known, refused};
use crate::python::error::{Attempt, Raise};
use crate::python::importing::import;
use crate::python::interrupt::interruptible;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyEllipsis, PyList, PyTuple};
use std::sync::Arc;
use zarrow::{Batch, Selection};
use zarrow_array::DecodedArray;
use zarrow_array::allocation::{self, Grow};

/// Returns the array of an item of `function`, and its kind of indexing.
pub fn source<'a>(
    item: &'a Bound<'_, PyAny>,
    function: &str,
) -> PyResult<(&'a Current<zarrow::Array>, Indexing)> {
    if let Ok(array) = item.cast::<Array>() {
        return Ok((array.get().state(), Indexing::Plain));
    }
    let Ok(indexer) = item.cast::<Indexer>() else {
        let found = item.get_type().name()?;
        let items = match function {
            "write_many" => "(array, selection, values)",
            _ => "(array, selection) or of arrays",
        };
        let message = format!(
            "{function}() takes a list of {items}; an array is a zarrow.Array or its oindex, vindex or blocks; \
             found {found}"
        );
        return Err(PyTypeError::new_err(message));
    };
    Ok(indexer.get().array_and_kind())
}

/// Read all of each array, to separate memory: a list.
#[pyfunction]
pub fn _read_each<'py>(py: Python<'py>, arrays: Vec<Bound<'py, Array>>) -> PyResult<Bound<'py, PyList>> {
    let owned = arrays.iter().map(|array| array.get().inner());
    let owned: Vec<Arc<zarrow::Array>> = allocation::collected(owned).raise(py)?;
    let decoded = interruptible(py, |interrupt| {
        let requests = owned.iter().map(|array| Ok(array.request(..)?.cancel(interrupt)));
        zarrow::read_each(&allocation::try_collected::<_, zarrow::Error>(requests)?)
    })?;
    list(py, decoded)
}

/// Item of a batch: an array or indexer, and an index.
type IndexedItem<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Returns the array and the selection of each item.
fn selections(items: &[IndexedItem<'_>]) -> PyResult<Vec<(Arc<zarrow::Array>, Selection)>> {
    let selected = |(item, index): &IndexedItem<'_>| {
        let (array, kind) = source(item, "read_many")?;
        Ok((array.get(), array.selection(index, kind)?))
    };
    items.iter().map(selected).collect()
}

/// Return the shape of each item.
#[pyfunction]
pub fn _shapes_of<'py>(py: Python<'py>, items: Vec<IndexedItem<'py>>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    selections(&items)?.iter().map(|(_, selection)| PyTuple::new(py, selection.shape())).collect()
}

/// Read each item with its mask, as `Array.read` does, to separate memory: a list.
#[pyfunction]
pub fn _read_masked<'py>(
    py: Python<'py>,
    items: Vec<IndexedItem<'py>>,
    masks: Vec<Option<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyList>> {
    let owned = selections(&items)?;
    let missing = owned.iter().zip(&masks).map(|((array, _), mask)| {
        mask.as_ref().map(|mask| missing::values(array.metadata(), mask)).transpose()
    });
    let missing = missing.collect::<PyResult<Vec<_>>>()?;
    let decoded = interruptible(py, |interrupt| {
        let masked = requests(&owned, interrupt)?.into_iter().zip(&missing);
        let masked = masked.map(|(request, missing)| match missing {
            Some(missing) => request.missing(missing),
            None => request,
        });
        zarrow::read_each(&allocation::collected(masked)?)
    })?;
    list(py, decoded)
}

/// Read each item into its own memory: at the same time, unless their memory may overlap.
#[pyfunction]
pub fn _read_into<'py>(
    py: Python<'py>,
    items: Vec<IndexedItem<'py>>,
    outs: Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let owned = selections(&items)?;
    let outs = owned
        .iter()
        .zip(&outs)
        .map(|((array, selection), out)| Out::new(out, array.data_type(), &selection.shape()));
    let outs = outs.collect::<PyResult<Vec<Out>>>()?;
    let mut addresses: Vec<_> = outs.iter().map(|out| out.strided.addresses()).collect();
    addresses.sort_unstable_by_key(|range| range.start);
    let is_apart = addresses.is_sorted_by(|one, next| one.end <= next.start);
    interruptible(py, |interrupt| {
        let pairs = requests(&owned, interrupt)?.into_iter().zip(&outs);
        // SAFETY: as for `Array.read`. Requests of one call have memory without common bytes.
        let targets = pairs.map(|(request, out)| unsafe { request.out(out.strided.clone()) });
        let targets: Vec<_> = allocation::collected(targets)?;
        if is_apart {
            return zarrow::read_each(&targets).map(drop);
        }
        targets.iter().try_for_each(|target| target.read().map(drop))
    })
}

/// Returns a list of the results.
fn list(py: Python<'_>, decoded: Vec<DecodedArray>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for array in decoded {
        list.append(wrap(py, array)?)?;
    }
    Ok(list)
}

#[doc = help!("read_many")]
#[pyfunction]
#[pyo3(
    signature = (items, *, out = None, decode = None, device = None, stream = None, decompress = None,
                 progress = None, **unknown),
    text_signature = "(items, *, out=None, decode=None, device=None, stream=None, decompress=None, progress=None)"
)]
#[allow(clippy::too_many_arguments, reason = "they are keywords")]
pub fn read_many<'py>(
    py: Python<'py>,
    items: Bound<'py, PyAny>,
    out: Option<Bound<'py, PyAny>>,
    decode: Option<Bound<'py, PyAny>>,
    device: Option<Bound<'py, PyAny>>,
    stream: Option<Bound<'py, PyAny>>,
    #[pyo3(from_py_with = argument)] decompress: Option<&str>,
    progress: Option<Bound<'py, PyAny>>,
    unknown: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    known(py, "read_many", unknown)?;
    let Some(listed) = items.try_iter().attempt(py)? else {
        return Err(refused(&items, "a list of arrays, or of pairs (array, selection)"));
    };
    if let Some(progress) = progress {
        if device.is_some() || stream.is_some() || decompress.is_some() {
            return Err(PyValueError::new_err(UNREPORTED));
        }
        let read = import(py, "zarrow.api.reported_batches")?.getattr("read_many")?;
        return read.call1((listed, out, decode, progress));
    }
    if let Some(decode) = decode {
        let others = [("out", out), ("device", device)].into_py_dict(py)?;
        return import(py, "zarrow.arrays.cf")?.call_method1("read_many", (listed, decode, others));
    }
    let arguments =
        Arguments { device: device.as_ref(), out: out.as_ref(), stream: stream.as_ref(), decompress };
    let place = Destination::from_arguments(&arguments)?;
    let mut owned: Vec<(Arc<zarrow::Array>, Selection)> = Vec::new();
    for item in listed {
        let item = item?;
        // An array without a selection means the whole array.
        let (item, index) = match item.cast::<PyTuple>() {
            Ok(_) => item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?,
            Err(_) => (item, PyEllipsis::get(py).to_owned().into_any()),
        };
        let (array, kind) = source(&item, "read_many")?;
        owned.try_push((array.get(), array.selection(&index, kind)?)).raise(py)?;
    }
    if let Some(place) = place {
        return place.read_many(py, &owned);
    }
    if let Some(object) = out {
        let Some((first, selection)) = owned.first() else { return Ok(object) };
        let shape = [&[owned.len() as u64][..], &selection.shape()].concat();
        let memory = Out::new(&object, first.data_type(), &shape)?;
        interruptible(py, |interrupt| {
            let requests = requests(&owned, interrupt)?;
            // SAFETY: as for `Array.read`.
            zarrow::read_each(&unsafe { zarrow::stacked_out(&requests, &memory.strided) }?)
        })?;
        return Ok(object);
    }
    match interruptible(py, |interrupt| zarrow::read_many(&requests(&owned, interrupt)?))? {
        Batch::Stacked(batch) => wrap(py, batch),
        Batch::Ragged(arrays) => Ok(list(py, arrays)?.into_any()),
    }
}
