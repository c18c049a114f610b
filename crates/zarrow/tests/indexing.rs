//! Selections by lists, masks and points, of arrays written by zarrs: every element is correct, and every chunk is
//! opened once, for any number of positions.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod recoded;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use zarrow::store::{FilesystemStore, Store, Value};
use zarrow::{Array, AxisIndex, Batch, Index, MissingValues, Node, Result, Selection, Strided};
use zarrow_array::DecodedArray;

/// A store that counts how often each key is opened, and the bytes read from it.
#[derive(Debug)]
struct Counting {
    store: FilesystemStore,
    opened: Mutex<BTreeMap<String, usize>>,
    requests: Mutex<Vec<usize>>,
    /// How many requests find their bytes in memory, before one would have to wait.
    at_once: AtomicUsize,
}

struct Counted<'a> {
    value: Box<dyn Value + 'a>,
    requests: &'a Mutex<Vec<usize>>,
    at_once: &'a AtomicUsize,
}

impl Store for Counting {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        // After a missing chunk, a read checks that its array still exists: this does not count.
        if key == "zarr.json" {
            return self.store.open(key);
        }
        *self.opened.lock().unwrap().entry(key.to_owned()).or_default() += 1;
        let value = self.store.open(key)?;
        Ok(value.map(|value| {
            Box::new(Counted { value, requests: &self.requests, at_once: &self.at_once }) as Box<dyn Value>
        }))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.store.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        self.store.nbytes(prefix)
    }
}

impl Value for Counted<'_> {
    fn nbytes(&self) -> Result<u64> {
        self.value.nbytes()
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        self.requests.lock().unwrap().push(destination.len());
        self.value.read_at(offset, destination)
    }

    fn read_at_once<'a>(
        &self,
        offset: u64,
        destination: &'a mut [MaybeUninit<u8>],
    ) -> Result<Option<&'a mut [u8]>> {
        let left =
            self.at_once.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_err() { Ok(None) } else { self.read_at(offset, destination).map(Some) }
    }
}

fn open(folder: &Path) -> (Arc<Counting>, Array) {
    let store = FilesystemStore::open(folder).unwrap();
    let store = Arc::new(Counting {
        store,
        opened: Mutex::default(),
        requests: Mutex::default(),
        at_once: AtomicUsize::new(0),
    });
    let Node::Array(array) = zarrow::open(Arc::clone(&store) as Arc<dyn Store>, "").unwrap() else {
        panic!()
    };
    store.opened.lock().unwrap().clear();
    store.requests.lock().unwrap().clear();
    (store, array)
}

/// Writes its element numbers to an array of `uint32` by zarrs, except for every fifth chunk.
fn write(folder: &Path, shape: &[u64], chunks: &[u64], codecs: &Json) -> Vec<u32> {
    let metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint32", "fill_value": 7,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
    });
    let mut elements: Vec<u32> = (0..shape.iter().product::<u64>() as u32).collect();
    recoded::write(folder, &metadata, |metadata| {
        let store = Arc::new(zarrs_filesystem::FilesystemStore::new(folder).unwrap());
        let metadata = serde_json::from_value(metadata).unwrap();
        let array = zarrs::array::Array::new_with_metadata(store, "/", metadata).unwrap();
        array.store_metadata().unwrap();
        array.store_array_subset(&array.subset_all(), elements.clone()).unwrap();
    });
    let mut number = 0;
    for (at, element) in elements.iter_mut().enumerate() {
        let chunk_index = chunk_of(&unravel(at as u64, shape), chunks);
        let of_grid = chunk_index.iter().zip(shape).zip(chunks);
        number = of_grid.fold(0, |at, ((index, extent), chunk)| at * extent.div_ceil(*chunk) + index);
        if number % 5 == 3 {
            *element = 7;
            let key: String = chunk_index.iter().map(|index| format!("/{index}")).collect();
            let _ = std::fs::remove_file(folder.join(format!("c{key}")));
        }
    }
    assert!(number > 2, "few chunks test little");
    elements
}

fn unravel(at: u64, shape: &[u64]) -> Vec<u64> {
    let mut rest = at;
    let mut position: Vec<u64> = shape
        .iter()
        .rev()
        .map(|extent| {
            let own = rest % extent;
            rest /= extent;
            own
        })
        .collect();
    position.reverse();
    position
}

fn chunk_of(position: &[u64], chunks: &[u64]) -> Vec<u64> {
    position.iter().zip(chunks).map(|(position, chunk)| position / chunk).collect()
}

/// Returns the positions selected by indices, in the C order of the result, by counting them all.
fn selected(shape: &[u64], indices: &[AxisIndex<'_>], points: Option<u64>) -> Vec<Vec<u64>> {
    let axis_of = |axis: usize| Selection::orthogonal(&shape[axis..=axis], &indices[axis..=axis]).unwrap();
    let axes: Vec<Vec<u64>> = (0..shape.len()).map(|axis| axis_of(axis).axes()[0].positions()).collect();
    let is_slice = |axis: &usize| matches!(indices[*axis], AxisIndex::Basic(Index::Slice { .. }));
    let is_point = |axis: &usize| points.is_some() && !matches!(indices[*axis], AxisIndex::Basic(_));
    // Each loop iterates over axes that are indexed together; NumPy defines the position of the points' axes.
    let mut loops: Vec<Vec<usize>> =
        (0..shape.len()).filter(|axis| !is_point(axis)).map(|axis| vec![axis]).collect();
    let joined: Vec<usize> = (0..shape.len()).filter(is_point).collect();
    if !joined.is_empty() {
        let first = (0..shape.len()).find(|axis| !is_slice(axis)).unwrap();
        let last = (0..shape.len()).rfind(|axis| !is_slice(axis)).unwrap();
        let at = if (first..=last).any(|axis| is_slice(&axis)) { 0 } else { first };
        loops.insert(at, joined);
    }
    loops.iter().fold(vec![vec![0; shape.len()]], |before, together| {
        let each = |head: Vec<u64>| {
            let of = |number: usize| {
                let mut position = head.clone();
                together.iter().for_each(|axis| position[*axis] = axes[*axis][number]);
                position
            };
            (0..axes[together[0]].len()).map(of).collect::<Vec<_>>()
        };
        before.into_iter().flat_map(each).collect()
    })
}

fn numbers(decoded: &DecodedArray) -> Vec<u32> {
    let DecodedArray::Tensor(tensor) = decoded else { panic!("{decoded:?}") };
    tensor.bytes().as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect()
}

const SHAPE: [u64; 3] = [14, 9, 11];

/// An array's chunk shape and its elements.
type Written = (Vec<u64>, Vec<u32>);

/// Arrays of one shape with their contents: chunks plain, compressed, transposed and in shards.
fn arrays() -> (TempDir, Vec<Written>) {
    let folder = TempDir::new().unwrap();
    let bytes = |endian: &str| json!({"name": "bytes", "configuration": {"endian": endian}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": true}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [2, 0, 1]}});
    let shard = |chunk: [u64; 3], codecs: &Json| {
        json!({"name": "sharding_indexed", "configuration": {"chunk_shape": chunk, "codecs": codecs,
            "index_codecs": [bytes("little"), {"name": "crc32c"}]}})
    };
    let chains = [
        ([4, 5, 3], json!([bytes("little")])),
        ([7, 3, 11], json!([bytes("big"), zstd])),
        ([5, 9, 4], json!([bytes("little"), blosc])),
        ([3, 4, 5], json!([transpose, bytes("big")])),
        ([6, 4, 6], json!([shard([3, 2, 2], &json!([bytes("little"), zstd]))])),
        ([8, 6, 4], json!([shard([4, 2, 4], &json!([transpose, bytes("little")]))])),
    ];
    let arrays = chains.iter().enumerate().map(|(number, (chunks, codecs))| {
        let elements = write(&folder.path().join(number.to_string()), &SHAPE, chunks, codecs);
        (chunks.to_vec(), elements)
    });
    let arrays = arrays.collect();
    (folder, arrays)
}

/// An index in plain numbers.
#[derive(Debug, Clone)]
enum Drawn {
    Basic(Index),
    List(Vec<i64>),
    Mask(Vec<bool>),
}

fn drawn(extent: u64, points: Option<usize>) -> BoxedStrategy<Drawn> {
    let length = extent as i64;
    let slice = (
        prop::option::of(-length..length),
        prop::option::of(-length..length),
        prop::sample::select(vec![-2i64, 1, 3]),
    );
    let slice =
        slice.prop_map(|(start, stop, step)| Drawn::Basic(Index::Slice { start, stop, step: Some(step) }));
    let at = (-length..length).prop_map(|at| Drawn::Basic(Index::At(at)));
    let list = prop::collection::vec(-length..length, points.map_or(0..9, |count| count..count + 1));
    let list = list.prop_map(Drawn::List);
    let mask = prop::collection::vec(any::<bool>(), extent as usize).prop_map(Drawn::Mask);
    match points {
        Some(_) => prop_oneof![1 => slice, 1 => at, 4 => list].boxed(),
        None => prop_oneof![2 => slice, 1 => at, 4 => list, 2 => mask].boxed(),
    }
}

/// Input of a test case: the indices, and the number of points.
fn cases() -> impl Strategy<Value = (Vec<Drawn>, Option<usize>)> {
    prop::option::of(0usize..9).prop_flat_map(|points| {
        let axes = SHAPE.map(|extent| drawn(extent, points));
        (axes.to_vec(), Just(points))
    })
}

fn indices(drawn: &[Drawn]) -> Vec<AxisIndex<'_>> {
    let of = |drawn| match drawn {
        &Drawn::Basic(index) => AxisIndex::Basic(index),
        Drawn::List(list) => AxisIndex::List(list),
        Drawn::Mask(mask) => AxisIndex::Mask(mask),
    };
    drawn.iter().map(of).collect()
}

/// Returns the selection, and the expected element numbers.
fn select(drawn: &[Drawn], points: Option<usize>, elements: &[u32]) -> (Selection, Vec<u32>, Vec<Vec<u64>>) {
    let indices = indices(drawn);
    let has_list = indices.iter().any(|index| !matches!(index, AxisIndex::Basic(_)));
    let points = points.filter(|_| has_list).map(|count| count as u64);
    let selection = match points {
        Some(count) => Selection::points(&SHAPE, &indices, &[count]),
        None => Selection::orthogonal(&SHAPE, &indices),
    };
    let selection = selection.unwrap();
    let positions = selected(&SHAPE, &indices, points);
    let number =
        |position: &Vec<u64>| position.iter().zip(SHAPE).fold(0, |at, (own, extent)| at * extent + own);
    let expected = positions.iter().map(|position| elements[number(position) as usize]).collect();
    (selection, expected, positions)
}

#[test]
fn any_selection_of_any_chain_opens_each_chunk_once() {
    let (folder, arrays) = arrays();
    let open: Vec<_> =
        (0..arrays.len()).map(|number| open(&folder.path().join(number.to_string()))).collect();
    proptest!(ProptestConfig::with_cases(600), |((drawn, points) in cases(), number in 0..arrays.len())| {
        let (chunks, elements) = &arrays[number];
        let (store, array) = &open[number];
        let (selection, expected, positions) = select(&drawn, points, elements);
        store.opened.lock().unwrap().clear();
        let decoded = array.read(&selection).unwrap();
        prop_assert_eq!(decoded.shape(), selection.shape());
        prop_assert_eq!(numbers(&decoded), expected.clone());
        let chunks_touched: BTreeSet<Vec<u64>> = positions.iter().map(|position| chunk_of(position, chunks)).collect();
        let opened = store.opened.lock().unwrap().clone();
        prop_assert!(opened.values().all(|times| *times == 1), "{:?}", opened);
        prop_assert_eq!(opened.len(), chunks_touched.len());

        // With a mask of two values; one is the fill value of missing chunks.
        let values = [7, expected.first().copied().unwrap_or(1)];
        let bytes = values.iter().map(|value| value.to_ne_bytes().to_vec()).collect();
        let missing = MissingValues::new(array.data_type(), bytes).unwrap();
        let DecodedArray::MaskedTensor(masked) = array.request(&selection).unwrap().missing(&missing).read().unwrap() else {
            panic!()
        };
        let DecodedArray::Tensor(tensor) = &decoded else { panic!() };
        prop_assert_eq!(masked.data().bytes(), tensor.bytes());
        let marks: Vec<u8> = expected.iter().map(|number| u8::from(values.contains(number))).collect();
        prop_assert_eq!(masked.mask().missing(), &marks);
        let bitmap = masked.mask().validity_bitmap().unwrap();
        prop_assert!(marks.iter().enumerate().all(|(at, mark)| (bitmap[at / 8] >> (at % 8)) & 1 != *mark));
        prop_assert_eq!(masked.mask().missing_count(), marks.iter().filter(|mark| **mark == 1).count());

        // Into memory with strided, reversed elements.
        let mut out = vec![[u32::MAX; 2]; expected.len()];
        let pointer = out.as_mut_ptr().cast::<u8>();
        let mut strides = vec![0isize; decoded.shape().len()];
        let mut stride = -8isize;
        for (place, extent) in strides.iter_mut().zip(decoded.shape()).rev() {
            *place = stride;
            stride *= *extent as isize;
        }
        let last = (out.len() * 8).saturating_sub(8);
        // SAFETY: the memory is this function's, and the strides visit each of its elements once.
        unsafe { array.request(&selection).unwrap().out(Strided::new(pointer, out.len() * 8, last, strides)) }.read().unwrap();
        prop_assert!(out.iter().rev().zip(&expected).all(|(pair, number)| *pair == [*number, u32::MAX]));
    });
}

#[test]
fn a_batch_opens_each_chunk_once() {
    let (folder, arrays) = arrays();
    let open: Vec<_> =
        (0..arrays.len()).map(|number| open(&folder.path().join(number.to_string()))).collect();
    let items = prop::collection::vec(cases(), 1..4);
    proptest!(ProptestConfig::with_cases(200), |(drawn in items, number in 0..arrays.len())| {
        let (_, elements) = &arrays[number];
        let (store, array) = &open[number];
        let items: Vec<_> = drawn.iter().map(|(drawn, points)| select(drawn, *points, elements)).collect();
        store.opened.lock().unwrap().clear();
        let requests: Vec<_> = items.iter().map(|item| array.request(&item.0).unwrap()).collect();
        let expected: Vec<Vec<u32>> = items.iter().map(|item| item.1.clone()).collect();
        match zarrow::read_many(&requests).unwrap() {
            Batch::Stacked(stack) => prop_assert_eq!(numbers(&stack), expected.concat()),
            Batch::Ragged(parts) => {
                prop_assert_eq!(parts.iter().map(numbers).collect::<Vec<_>>(), expected);
            }
        }
        prop_assert!(store.opened.lock().unwrap().values().all(|times| *times == 1));
    });
}

/// Points with two axes go to memory with strides that cannot merge these axes.
#[test]
fn points_of_several_axes_go_where_the_strides_say() {
    let (folder, arrays) = arrays();
    let (_, array) = open(&folder.path().join("0"));
    let elements = &arrays[0].1;
    let (rows, columns) = ([0i64, 3, 13, 5, 5, -1], [8i64, 0, 1, 1, 2, 3]);
    let lists = [AxisIndex::List(&rows), AxisIndex::List(&columns), AxisIndex::Basic(Index::At(4))];
    let selection = Selection::points(&SHAPE, &lists, &[2, 3]).unwrap();
    assert_eq!(selection.shape(), [2, 3]);
    let mut out = [[u32::MAX; 2]; 3];
    // In Fortran order: the first axis is the one that runs fastest.
    let memory = Strided::new(out.as_mut_ptr().cast(), 24, 0, vec![4, 8]);
    // SAFETY: the memory is this function's, and the strides visit each of its elements once.
    unsafe { array.request(&selection).unwrap().out(memory) }.read().unwrap();
    for (number, (row, column)) in rows.iter().zip(columns).enumerate() {
        let row = row.rem_euclid(14);
        let flat = (row * 9 + column) * 11 + 4;
        assert_eq!(out[number % 3][number / 3], elements[flat as usize]);
    }
}

/// A read of a large uncompressed chunk fetches only the selected rows, neighbours in one request.
#[test]
fn rows_of_large_chunks_are_read_by_range() {
    const ROW: usize = 16 << 10;
    let folder = TempDir::new().unwrap();
    let codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let shape = [800, ROW as u64 / 4];
    let elements = write(folder.path(), &shape, &[200, shape[1]], &codecs);
    let rows = [3i64, 180, 181, 3, 182, 100, 500, 501];
    let columns: Vec<i64> = vec![5; rows.len()];
    let lists = [AxisIndex::List(&rows), AxisIndex::List(&columns)];
    let whole_rows = Selection::orthogonal(&shape, &lists[..1]).unwrap();
    let points = Selection::points(&shape, &lists, &[rows.len() as u64]).unwrap();
    for (selection, width, nbytes) in [(whole_rows, ROW / 4, 7 * ROW), (points, 1, 4 * ROW + 28)] {
        let (store, array) = open(folder.path());
        let decoded = numbers(&array.read(&selection).unwrap());
        for (number, row) in rows.iter().enumerate() {
            let first = *row as usize * ROW / 4 + if width == 1 { 5 } else { 0 };
            assert_eq!(decoded[number * width..][..width], elements[first..first + width], "row {row}");
        }
        let requests = store.requests.lock().unwrap();
        // Rows 3, 100, and 180 to 182 of the first chunk, and two of another.
        assert_eq!(requests.len(), 4, "{requests:?}");
        assert!(requests.iter().sum::<usize>() <= nbytes, "{requests:?}");
    }
}

/// Elements 10,000 bytes apart are read one by one from memory. If a read would wait, the chunk is read again with the
/// bytes between them.
#[test]
fn short_gaps_are_read_unless_the_elements_are_in_memory() {
    let folder = TempDir::new().unwrap();
    let (shape, chunks) = ([250, 2500], [50, 2500]);
    let elements = write(
        folder.path(),
        &shape,
        &chunks,
        &json!([{"name": "bytes", "configuration": {"endian": "little"}}]),
    );
    let expected: Vec<u32> = (0..250).map(|row| elements[row * 2500 + 7]).collect();
    for (at_once, requests) in [(usize::MAX, 200), (0, 8), (60, 66)] {
        let (store, array) = open(folder.path());
        store.at_once.store(at_once, Ordering::Relaxed);
        let column = array.read((.., 7)).unwrap();
        assert_eq!(numbers(&column), expected);
        assert_eq!(store.requests.lock().unwrap().len(), requests, "{at_once}");
    }
}
