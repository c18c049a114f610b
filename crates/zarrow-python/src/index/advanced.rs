//! Conversion of Python's index arrays and masks to selections.
//!
//! 1. Each index item that is not basic becomes a NumPy array: of integers, or a mask of bools.
//! 2. [`Indexing::Orthogonal`]: each axis is indexed separately, as by `numpy.ix_`; arrays have one axis.
//! 3. [`Indexing::Vectorized`]: arrays are broadcast together, as in NumPy; a mask counts as the positions of its
//!    true elements. A single mask with the array's own shape is used directly.
//! 4. [`Indexing::Plain`], plain brackets: cases where 2 and 3 agree, and cases that zarr-python supports. A single
//!    array of one axis is orthogonal, integers and arrays for every axis are points; all others are ambiguous and
//!    refused.
//!
//! Source: NumPy, "Advanced indexing"; zarr-python, `zarr.core.indexing`.

use crate::device::tensor::DeviceTensor;
use crate::export::numpy;
use crate::index::basic::{index_of, indices};
use crate::python::error::{Attempt, Raise, indexing};
use crate::python::made_once::name;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};
use zarrow::{Array, AxisIndex, Index, Selection};
use zarrow_array::allocation;

/// How to combine the arrays of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// As for plain brackets.
    Plain,
    /// Only basic indices.
    Basic,
    /// Each axis separately.
    Orthogonal,
    /// Point by point.
    Vectorized,
    /// Chunks of the grid.
    Block,
}

/// An item of an index.
enum Item<'py> {
    Basic(Index),
    /// Integers, of any shape.
    Positions(Bound<'py, PyAny>, Vec<u64>),
    /// Bools, of any shape.
    Mask(Bound<'py, PyAny>, Vec<u64>),
}

/// Index of one axis, in our memory.
enum Owned {
    Basic(Index),
    List(Vec<i64>),
    Mask(Vec<bool>),
}

impl Owned {
    fn index(&self) -> AxisIndex<'_> {
        match self {
            Owned::Basic(index) => AxisIndex::Basic(*index),
            Owned::List(list) => AxisIndex::List(list),
            Owned::Mask(mask) => AxisIndex::Mask(mask),
        }
    }
}

/// Returns the selection of `array` for `index`.
pub fn selection(array: &Array, index: &Bound<'_, PyAny>, kind: Indexing) -> PyResult<Selection> {
    let selection = match kind {
        Indexing::Block => match indices(index)? {
            Some(indices) => array.blocks(&indices),
            None => return Err(only_basic(index)),
        },
        kind => for_shape(array.shape(), index, kind)?,
    };
    selection.map_err(|error| error.in_array(array.store().name(), array.path())).raise(index.py())
}

/// Returns the selection for an array of `shape`, without block indexing.
pub fn for_shape(
    shape: &[u64],
    index: &Bound<'_, PyAny>,
    kind: Indexing,
) -> PyResult<zarrow::Result<Selection>> {
    match (indices(index)?, kind) {
        (Some(indices), _) => Ok(Selection::new(shape, &indices)),
        (None, Indexing::Block | Indexing::Basic) => Err(only_basic(index)),
        (None, _) => with_arrays(shape, index, kind),
    }
}

fn only_basic(index: &Bound<'_, PyAny>) -> PyErr {
    indexing(
        index.py(),
        "expected integers, slices and ... as indices here: use oindex or vindex for lists and masks",
    )
}

/// Whether an index is a selection with its values.
fn is_pair_of_iter_chunks(items: &Bound<'_, PyTuple>) -> bool {
    let first = items.get_item(0);
    items.len() == 2
        && first.is_ok_and(|first| {
            first.cast::<PyTuple>().is_ok_and(|slices| {
                !slices.is_empty() && slices.iter().all(|slice| slice.is_instance_of::<PySlice>())
            })
        })
}

fn with_arrays(
    shape: &[u64],
    index: &Bound<'_, PyAny>,
    kind: Indexing,
) -> PyResult<zarrow::Result<Selection>> {
    let items = match index.cast::<PyTuple>() {
        Ok(items) if is_pair_of_iter_chunks(items) => {
            let text = "iter_chunks() gives pairs: type for selection, values in array.iter_chunks()";
            return Err(indexing(index.py(), text));
        }
        Ok(items) => items.iter().map(|item| Item::new(&item)).collect::<PyResult<Vec<_>>>()?,
        Err(_) => vec![Item::new(index)?],
    };
    match (kind, &items[..]) {
        (Indexing::Orthogonal, _) => orthogonal(index.py(), shape, &items),
        (_, [Item::Mask(mask, own)]) if own == shape && shape.len() > 1 => {
            Ok(Selection::mask(shape, &bools(mask)?))
        }
        (Indexing::Vectorized, _) => vectorized(index.py(), shape, &items),
        _ => plain(index.py(), shape, &items),
    }
}

/// Step 4.
fn plain(py: Python<'_>, shape: &[u64], items: &[Item<'_>]) -> PyResult<zarrow::Result<Selection>> {
    let arrays = items.iter().filter(|item| !matches!(item, Item::Basic(_))).count();
    let of_one_axis = |item: &Item<'_>| match item {
        Item::Positions(_, own) | Item::Mask(_, own) => own.len() == 1,
        Item::Basic(_) => true,
    };
    let is_point = |item: &Item<'_>| matches!(item, Item::Positions(..) | Item::Basic(Index::At(_)));
    if arrays == 1 && items.iter().all(of_one_axis) {
        orthogonal(py, shape, items)
    } else if arrays == 1 || (items.len() == shape.len() && items.iter().all(is_point)) {
        vectorized(py, shape, items)
    } else {
        let message = "indexing with several arrays is ambiguous: use .oindex[...] for all their combinations, or \
                       .vindex[...] to take them together, position by position";
        Err(indexing(py, message))
    }
}

/// Step 2.
fn orthogonal(py: Python<'_>, shape: &[u64], items: &[Item<'_>]) -> PyResult<zarrow::Result<Selection>> {
    let owned = items.iter().map(|item| match item {
        Item::Basic(index) => Ok(Owned::Basic(*index)),
        Item::Positions(array, own) if own.len() == 1 => Ok(Owned::List(integers(array)?)),
        Item::Mask(array, own) if own.len() == 1 => Ok(Owned::Mask(bools(array)?)),
        _ => Err(indexing(py, "expected 1-D index arrays: use vindex for arrays of several axes")),
    });
    let owned = owned.collect::<PyResult<Vec<_>>>()?;
    Ok(Selection::orthogonal(shape, &owned.iter().map(Owned::index).collect::<Vec<_>>()))
}

/// Step 3.
fn vectorized(py: Python<'_>, shape: &[u64], items: &[Item<'_>]) -> PyResult<zarrow::Result<Selection>> {
    let width = |item: &Item<'_>| match item {
        Item::Basic(Index::Ellipsis) => 0,
        Item::Mask(_, own) => own.len(),
        _ => 1,
    };
    let given: usize = items.iter().map(width).sum();
    let mut axis = 0usize;
    // Basic indices, and indices into `arrays`.
    let mut places: Vec<Result<Index, usize>> = Vec::new();
    let mut arrays: Vec<Bound<'_, PyAny>> = Vec::new();
    for item in items {
        match item {
            Item::Basic(index) => places.push(Ok(*index)),
            Item::Positions(array, _) => {
                places.push(Err(arrays.len()));
                arrays.push(array.clone());
            }
            Item::Mask(mask, own) => {
                if shape.get(axis..axis + own.len()) != Some(own) {
                    let message = format!(
                        "the mask has shape {own:?}, which does not match axis {axis} of an array of shape {shape:?}"
                    );
                    return Err(indexing(py, message));
                }
                for positions in mask.call_method0(name!(py, "nonzero"))?.try_iter()? {
                    places.push(Err(arrays.len()));
                    arrays.push(positions?);
                }
            }
        }
        axis += match item {
            Item::Basic(Index::Ellipsis) => shape.len().saturating_sub(given),
            item => width(item),
        };
    }
    let broadcast = numpy::module(py)?.getattr(name!(py, "broadcast_arrays"))?;
    let arrays = broadcast.call1(PyTuple::new(py, &arrays)?).map_err(|error| {
        if error.is_instance_of::<pyo3::exceptions::PyValueError>(py) {
            indexing(py, "index arrays could not be broadcast to one shape")
        } else {
            error
        }
    })?;
    let arrays = arrays.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let points_shape: Vec<u64> = match arrays.first() {
        Some(array) => array.getattr(name!(py, "shape"))?.extract()?,
        None => Vec::new(),
    };
    let owned = places.iter().map(|place| match place {
        Ok(index) => Ok(Owned::Basic(*index)),
        Err(number) => Ok(Owned::List(integers(&arrays[*number])?)),
    });
    let owned = owned.collect::<PyResult<Vec<_>>>()?;
    let indices: Vec<AxisIndex<'_>> = owned.iter().map(Owned::index).collect();
    Ok(Selection::points(shape, &indices, &points_shape))
}

impl<'py> Item<'py> {
    fn new(item: &Bound<'py, PyAny>) -> PyResult<Item<'py>> {
        let py = item.py();
        if let Some(index) = index_of(item)? {
            return Ok(Item::Basic(index));
        }
        let refused = || {
            let kind = item.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
            if item.is_instance_of::<DeviceTensor>() {
                let message =
                    "index arrays and masks must be on the CPU, but these are on a GPU: call .cpu()";
                return indexing(py, message.to_owned());
            }
            if item.is_instance_of::<PyDict>() {
                let message = "an array has no index by dimension name: type array[i, j] in the order of \
                               array.dimension_names";
                return indexing(py, message.to_owned());
            }
            let message = "expected integers, slices, ... and arrays of integers or bools as indices";
            indexing(py, format!("{message}, got {kind}"))
        };
        let array = numpy::module(py)?.call_method1(name!(py, "asarray"), (item,)).attempt(py)?;
        let array = array.ok_or_else(refused)?;
        let kind: char = array.getattr(name!(py, "dtype"))?.getattr(name!(py, "kind"))?.extract()?;
        let shape: Vec<u64> = array.getattr(name!(py, "shape"))?.extract()?;
        match (kind, &shape[..]) {
            // A 0-dimensional mask would insert an axis.
            ('b', []) => Err(indexing(
                py,
                "a single bool is no index: a mask is an array of bools, with one axis or more",
            )),
            ('b', _) => Ok(Item::Mask(array, shape)),
            ('i' | 'u', []) => match index_of(&array.call_method0(name!(py, "item"))?)? {
                Some(index) => Ok(Item::Basic(index)),
                None => Err(refused()),
            },
            ('i' | 'u', _) => Ok(Item::Positions(array, shape)),
            // NumPy converts an empty list to floats.
            ('f', [0]) if !item.hasattr(name!(py, "dtype"))? => Ok(Item::Positions(array, shape)),
            _ => Err(refused()),
        }
    }
}

/// Returns the integers of an array, in C order.
fn integers(array: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let py = array.py();
    let numpy = numpy::module(py)?;
    let dtype = array.getattr(name!(py, "dtype"))?;
    let is_large = dtype.getattr(name!(py, "str"))?.extract::<String>()?.ends_with("u8");
    // The check works on a copy, because other threads may write to the array.
    let array = if is_large { &array.call_method0(name!(py, "copy"))? } else { array };
    if is_large && array.call_method1(name!(py, "__gt__"), (i64::MAX,))?.call_method0("any")?.is_truthy()? {
        return Err(indexing(py, "an index is out of bounds"));
    }
    let array = numpy.call_method1(name!(py, "ascontiguousarray"), (array, name!(py, "int64")))?;
    elements(&array, 0i64)
}

/// Copies the elements of a contiguous array.
fn elements<T: pyo3::buffer::Element + Clone>(array: &Bound<'_, PyAny>, zero: T) -> PyResult<Vec<T>> {
    let py = array.py();
    let buffer = PyBuffer::<T>::get(array)?;
    let mut elements = allocation::filled(zero, buffer.item_count()).raise(py)?;
    buffer.copy_to_slice(py, &mut elements)?;
    Ok(elements)
}

/// Returns the bools of an array, in C order.
fn bools(array: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    let py = array.py();
    let array = numpy::module(py)?.call_method1(name!(py, "ascontiguousarray"), (array,))?;
    let bytes = array.call_method1(name!(py, "view"), (name!(py, "uint8"),))?;
    allocation::collected(elements(&bytes, 0u8)?.into_iter().map(|byte| byte != 0)).raise(py)
}
