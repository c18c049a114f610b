//! Shared by the targets: arrays in memory, and all ways of reading them.
//!
//! 1. The first byte of an input chooses a list of codecs, the rest is the stored value.
//! 2. The array is read whole, in part, by chunk and in a batch, under limits that every input must respect.
//! 3. Errors are valid results, except internal errors of the engine. A panic ends the process even if the engine
//!    would catch it.

use serde_json::{Value, json};
use std::sync::Arc;
use zarrow::store::MemoryStore;
use zarrow::{Array, DecodeLimits, ErrorKind, Index, Node, OpenOptions, Result, Selection};
use zarrow_array::DecodedArray;

/// Variable-length data beyond this is refused, so that a small `-malloc_limit_mb` detects unbounded allocations.
pub const MAX_VARIABLE_NBYTES: usize = 1 << 20;

/// Version 3 metadata of an array.
#[must_use]
pub fn metadata(data_type: &Value, shape: &[u64], chunks: &[u64], fill: &Value, codecs: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
    })
}

/// Opens the store in `values`, with limits for fuzzing and a cache of decoded chunks of `cache_nbytes`.
///
/// # Errors
/// The engine's error.
pub fn open<K: Into<String>>(
    values: impl IntoIterator<Item = (K, Vec<u8>)>,
    cache_nbytes: usize,
) -> Result<Node> {
    zarrow::set_num_threads(1);
    let limits = DecodeLimits::default().max_variable_nbytes(MAX_VARIABLE_NBYTES);
    let options = OpenOptions::default().limits(limits).cache_nbytes(cache_nbytes);
    checked(zarrow::open_with(Arc::new(MemoryStore::new(values)?), "", &options))
}

/// Opens an array with valid metadata and two chunks along the first axis: `chunk`, and a missing one.
///
/// # Panics
/// If the metadata are refused.
#[must_use]
pub fn array(metadata: &Value, chunk: &[u8], cache_nbytes: usize) -> Array {
    let axes = metadata["shape"].as_array().map_or(0, Vec::len);
    let key = format!("c{}", "/0".repeat(axes));
    let values = [("zarr.json".to_owned(), metadata.to_string().into_bytes()), (key, chunk.to_vec())];
    match open(values, cache_nbytes) {
        Ok(Node::Array(array)) => array,
        other => panic!("{other:?}"),
    }
}

/// Reads `array` in every way (step 2).
///
/// # Panics
/// If two ways differ (step 3).
pub fn read(array: &Array) {
    let slice = |start, stop, step| Index::Slice { start, stop, step };
    let whole = checked(array.read(&Selection::all(array.shape())));
    let mut parts: Vec<Vec<Index>> = vec![
        vec![slice(None, None, Some(-1)), Index::Ellipsis],
        vec![slice(Some(1), Some(3), None), Index::Ellipsis],
        vec![Index::Ellipsis, slice(Some(1), None, Some(2))],
    ];
    if array.shape().is_empty() {
        parts.clear();
    }
    for indices in parts {
        let Ok(selection) = Selection::new(array.shape(), &indices) else { continue };
        let part = checked(array.read(&selection));
        let many = checked(array.request(&selection).and_then(|request| zarrow::read_many(&[request.by_ref(), request.by_ref()])));
        // If a whole read succeeds, a read of a part does too.
        assert!(whole.is_err() || (part.is_ok() && many.is_ok()), "{part:?} {:?}", many.err());
        if let (Ok(whole), Ok(part)) = (&whole, &part) {
            compare(whole, part, &selection);
        }
    }
    let _ = checked(array.request(..).and_then(|request| request.map()));
    let first = vec![0; array.shape().len()];
    let _ = checked(array.chunk(&first).and_then(|chunk| array.read(chunk)));
}

/// Asserts that `part` has the selected elements of `whole`.
fn compare(whole: &DecodedArray, part: &DecodedArray, selection: &Selection) {
    for (at, from) in positions(whole.shape(), selection).into_iter().enumerate() {
        assert_eq!(element(whole, from), element(part, at), "{selection:?} at {at}");
    }
}

/// Returns the index, in an array of `shape`, of every element of a selection without points, by counting them all.
#[must_use]
pub fn positions(shape: &[u64], selection: &Selection) -> Vec<usize> {
    let mut places = vec![0];
    for (axis, extent) in selection.axes().iter().zip(shape) {
        let along = axis.positions();
        places = places
            .iter()
            .flat_map(|place| along.iter().map(move |at| place * *extent as usize + *at as usize))
            .collect();
    }
    places
}

/// Returns the bytes of one element, `None` if it is missing at any level.
fn element(decoded: &DecodedArray, at: usize) -> Option<&[u8]> {
    let of = |tensor: &'_ zarrow_array::Tensor| tensor.dtype().item_size().unwrap_or(0);
    match decoded {
        DecodedArray::Tensor(tensor) => Some(&tensor.bytes()[at * of(tensor)..(at + 1) * of(tensor)]),
        DecodedArray::Variable(variable) => variable.element(at),
        DecodedArray::MaskedTensor(masked) if masked.mask().missing()[at] == 0 => {
            let size = of(masked.data());
            Some(&masked.data().bytes()[at * size..(at + 1) * size])
        }
        DecodedArray::MaskedVariable(masked) if masked.mask().missing()[at] == 0 => masked.data().element(at),
        _ => None,
    }
}

/// Returns the result, unless it is an internal error of the engine.
///
/// # Panics
/// On internal errors.
pub fn checked<T>(result: Result<T>) -> Result<T> {
    if let Err(error) = &result {
        assert!(!matches!(error.kind(), ErrorKind::Internal(_)), "{error}");
    }
    result
}
