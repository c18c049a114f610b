//! Writes compared with a model: a plain array in memory that gets the same values one by one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use zarrow::store::{Detached, Draft, Durability, Lock, MemoryStore, Store, StoreWriter};
use zarrow::{Array, Error, ErrorKind, Index, Node, Selection, Values, WriteOptions};
use zarrow_array::{DecodedArray, Number};

/// Data types with an element's bytes and a fill value.
const TYPES: &[(&str, Number, usize, u8)] = &[
    ("uint8", Number::UInt8, 1, 7),
    ("int16", Number::Int16, 2, 0),
    ("float32", Number::Float32, 4, 0),
    ("uint64", Number::UInt64, 8, 0),
    ("complex128", Number::Complex128, 16, 0),
];

/// One array: the length of each axis, the extents of its chunks and of their inner chunks, and other options.
#[derive(Debug, Clone)]
struct Case {
    axes: Vec<(u64, u64, u64)>,
    dtype: usize,
    big: bool,
    reversed_axes: bool,
    compressors: Vec<Value>,
    sharding: usize,
    writes: Vec<Write>,
}

/// One write: a slice of each axis, the memory layout of the values, and the first value.
#[derive(Debug, Clone)]
struct Write {
    slices: Vec<(Option<i64>, Option<i64>, i64)>,
    layout: Layout,
    seed: u64,
    keep_filled: bool,
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    C,
    Fortran,
    Backwards,
    Swapped,
    Scalar,
    Filled,
}

fn cases() -> impl Strategy<Value = Case> {
    let axis = (1u64..12, 1u64..4, 1u64..4).prop_map(|(extent, inner, times)| (extent, inner * times, inner));
    let compressors = prop::sample::select(vec![
        vec![],
        vec![json!({"name": "crc32c"})],
        vec![
            json!({"name": "zstd", "configuration": {"level": 1, "checksum": true}}),
            json!({"name": "crc32c"}),
        ],
        vec![json!({"name": "gzip", "configuration": {"level": 1}})],
        vec![json!({"name": "blosc", "configuration": {
            "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0,
        }})],
    ]);
    let layout = prop::sample::select(vec![
        Layout::C,
        Layout::Fortran,
        Layout::Backwards,
        Layout::Swapped,
        Layout::Scalar,
        Layout::Filled,
    ]);
    prop::collection::vec(axis, 0..4).prop_flat_map(move |axes| {
        let bound = || proptest::option::of(-13i64..13);
        let step = prop_oneof![3 => Just(1i64), 1 => Just(-1), 1 => Just(2), 1 => Just(-3)];
        let all = prop::collection::vec(Just((None, None, 1)), axes.len());
        let some = prop::collection::vec((bound(), bound(), step), axes.len());
        let write = (prop_oneof![all, some], layout.clone(), any::<u64>(), any::<bool>())
            .prop_map(|(slices, layout, seed, keep_filled)| Write { slices, layout, seed, keep_filled });
        let writes = prop::collection::vec(write, 1..5);
        (Just(axes), 0..TYPES.len(), any::<bool>(), any::<bool>(), compressors.clone(), 0usize..5, writes)
            .prop_map(|(axes, dtype, big, reversed_axes, compressors, sharding, writes)| Case {
                axes,
                dtype,
                big,
                reversed_axes,
                compressors,
                sharding,
                writes,
            })
    })
}

impl Case {
    fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|(extent, ..)| *extent).collect()
    }

    /// Returns the metadata: plain chunks, shards with the index at either end, nested shards, or compressed shards.
    fn metadata(&self) -> Value {
        let (name, _, _, fill) = TYPES[self.dtype];
        let order: Vec<usize> = (0..self.axes.len()).rev().collect();
        let chunk: Vec<u64> = self.axes.iter().map(|(_, chunk, _)| *chunk).collect();
        let mut inner: Vec<u64> = self.axes.iter().map(|(_, _, inner)| *inner).collect();
        let bytes =
            json!({"name": "bytes", "configuration": {"endian": if self.big { "big" } else { "little" }}});
        let mut codecs = [vec![bytes], self.compressors.clone()].concat();
        let transpose = json!({"name": "transpose", "configuration": {"order": order}});
        let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]);
        let shard = |inner: &[u64], codecs: &[Value], location: &str| {
            json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": inner, "codecs": codecs, "index_codecs": index, "index_location": location,
            }})
        };
        match self.sharding {
            0 => {}
            1 => codecs = vec![shard(&inner, &codecs, "end")],
            2 => codecs = vec![shard(&inner, &codecs, "start")],
            3 => {
                let ones = vec![1u64; inner.len()];
                codecs = vec![shard(&inner, &[shard(&ones, &codecs, "start")], "end")];
            }
            _ => {
                codecs = vec![
                    shard(&inner, &codecs, "end"),
                    json!({"name": "zstd", "configuration": {"level": 0, "checksum": false}}),
                ]
            }
        }
        if self.reversed_axes && !order.is_empty() {
            inner.reverse();
            if self.sharding > 0 {
                codecs[0]["configuration"]["chunk_shape"] = json!(inner);
            }
            codecs.insert(0, transpose);
        }
        let fill: Value = if name == "complex128" { json!([0.0, 0.0]) } else { json!(fill) };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape(), "data_type": name, "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
        })
    }

    fn open(&self) -> (Arc<MemoryStore>, Array) {
        let document = serde_json::to_vec(&self.metadata()).unwrap();
        let store = Arc::new(MemoryStore::new([("zarr.json", document)]).unwrap());
        let Node::Array(array) = zarrow::open(store.clone(), "").unwrap() else { panic!("not an array") };
        (store, array)
    }
}

/// Writes the items, one for each position of the selection in C order, from memory of the given layout.
fn write(array: &Array, selection: &Selection, items: &[Vec<u8>], size: usize, write: &Write) {
    let (shape, options) = (selection.shape(), WriteOptions::default().write_empty_chunks(write.keep_filled));
    let mut strides = vec![0isize; shape.len()];
    let mut stride = size as isize;
    let fortran = matches!(write.layout, Layout::Fortran);
    let axes: Vec<usize> =
        if fortran { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
    for axis in axes {
        strides[axis] = stride;
        stride *= shape[axis] as isize;
    }
    let mut origin = 0isize;
    if matches!(write.layout, Layout::Backwards) {
        for (stride, extent) in strides.iter_mut().zip(&shape) {
            origin += *stride * (*extent as isize - 1).max(0);
            *stride = -*stride;
        }
    }
    let mut memory = vec![0u8; (items.len() * size).max(size)];
    if matches!(write.layout, Layout::Scalar | Layout::Filled) {
        strides.fill(0);
    }
    for (number, item) in items.iter().enumerate() {
        let (mut rest, mut at) = (number, origin);
        for (stride, extent) in strides.iter().zip(&shape).rev() {
            at += stride * (rest % *extent as usize) as isize;
            rest /= *extent as usize;
        }
        memory[at as usize..][..size].copy_from_slice(item);
    }
    let swapped = matches!(write.layout, Layout::Swapped);
    if swapped {
        let word = array.data_type().word_size();
        memory.chunks_exact_mut(word).for_each(<[u8]>::reverse);
    }
    let place = (memory.as_ptr(), memory.len(), origin as usize);
    // SAFETY: the memory outlives the write.
    let values =
        unsafe { Values::strided(place, array.data_type().clone(), &shape, &strides, swapped) }.unwrap();
    array.write_request(selection).unwrap().options(&options).write(&values).unwrap();
}

/// Returns the positions that slices of a shape select, in C order, by Python's rule.
fn positions(shape: &[u64], slices: &[(Option<i64>, Option<i64>, i64)]) -> Vec<usize> {
    let mut all = vec![0usize];
    for (extent, (start, stop, step)) in shape.iter().zip(slices) {
        let index = Index::Slice { start: *start, stop: *stop, step: Some(*step) };
        let axis = Selection::new(&[*extent], &[index]).unwrap();
        let count = axis.shape()[0] as i64;
        let length = *extent as i64;
        let wrap = |at: i64| if at < 0 { at + length } else { at };
        let first = match (start, *step > 0) {
            (None, true) => 0,
            (None, false) => length - 1,
            (Some(start), true) => wrap(*start).clamp(0, length),
            (Some(start), false) => wrap(*start).clamp(-1, length - 1),
        };
        let along: Vec<usize> = (0..count).map(|number| (first + number * step) as usize).collect();
        all = all
            .iter()
            .flat_map(|at| along.iter().map(move |position| at * *extent as usize + position))
            .collect();
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    /// After every write the array equals the model, and no chunk of only fill values is stored.
    #[test]
    fn arrays_hold_what_was_written(case in cases()) {
        let (_, _, size, fill) = TYPES[case.dtype];
        let (store, array) = case.open();
        let shape = case.shape();
        let fill: Vec<u8> = if size == 1 { vec![fill] } else { vec![0; size] };
        let mut model: Vec<Vec<u8>> = vec![fill.clone(); shape.iter().product::<u64>() as usize];
        for one in &case.writes {
            let indices: Vec<Index> = one.slices.iter()
                .map(|(start, stop, step)| Index::Slice { start: *start, stop: *stop, step: Some(*step) }).collect();
            let selection = Selection::new(&shape, &indices).unwrap();
            let places = positions(&shape, &one.slices);
            let item = |number: usize| -> Vec<u8> {
                let number = match one.layout { Layout::Scalar => 0, _ => number as u64 };
                let mixed = one.seed.wrapping_add(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                mixed.to_ne_bytes().iter().cycle().take(size).copied().collect()
            };
            let item = |number| if matches!(one.layout, Layout::Filled) { fill.clone() } else { item(number) };
            let items: Vec<Vec<u8>> = (0..places.len()).map(item).collect();
            write(&array, &selection, &items, size, one);
            for (place, item) in places.iter().zip(&items) {
                model[*place].clone_from(item);
            }
            let read = array.read(Selection::all(&shape)).unwrap();
            let DecodedArray::Tensor(tensor) = read else { panic!("not a tensor") };
            prop_assert_eq!(tensor.bytes(), model.concat());
        }
        if model.iter().all(|item| *item == fill) && !case.writes.iter().any(|one| one.keep_filled) {
            prop_assert_eq!(store.list("").unwrap(), ["zarr.json"]);
        }
    }
}

fn array(metadata: &Value) -> (Arc<MemoryStore>, Array) {
    let store = Arc::new(MemoryStore::new([("zarr.json", serde_json::to_vec(metadata).unwrap())]).unwrap());
    let Node::Array(array) = zarrow::open(store.clone(), "").unwrap() else { panic!("not an array") };
    (store, array)
}

/// Threads that each write a row of the same chunks and shards lose nothing.
#[test]
fn threads_that_share_chunks_lose_no_writes() {
    for sharding in [0, 1] {
        let case = Case {
            axes: vec![(24, 24, 3), (64, 16, 4)],
            dtype: 1,
            big: false,
            reversed_axes: false,
            compressors: vec![json!({"name": "zstd", "configuration": {"level": 0, "checksum": false}})],
            sharding,
            writes: Vec::new(),
        };
        let (_, array) = case.open();
        std::thread::scope(|scope| {
            for row in 0..24i64 {
                let array = &array;
                scope.spawn(move || {
                    let selection = Selection::new(array.shape(), &[Index::At(row)]).unwrap();
                    let bytes = (row as i16 + 1).to_ne_bytes();
                    let values = Values::contiguous(&bytes, Number::Int16.into(), &[]).unwrap();
                    array.write(&selection, &values).unwrap();
                });
            }
        });
        let DecodedArray::Tensor(tensor) = array.read(Selection::all(array.shape())).unwrap() else {
            panic!("not a tensor")
        };
        let expected: Vec<u8> =
            (0..24i16).flat_map(|row| std::iter::repeat_n((row + 1).to_ne_bytes(), 64).flatten()).collect();
        assert_eq!(tensor.bytes(), expected);
    }
}

/// A small number of large shards is written by several threads, in shares, to the same bytes as by one. Inner chunks
/// of 1 MiB and more are not gathered in pieces.
#[test]
fn shares_of_a_shard_make_the_shard_that_one_thread_makes() {
    let small = [(500, 600, 60), (600, 600, 50)];
    let large = [(900, 1200, 300), (900, 1350, 450)];
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    for (axes, sharding, compressors) in [
        (small, 1, vec![]),
        (small, 2, vec![zstd]),
        (small, 2, vec![json!({"name": "crc32c"})]),
        (large, 1, vec![]),
        (large, 2, vec![json!({"name": "crc32c"})]),
    ] {
        let ((height, _, rows), (width, ..)) = (axes[0], axes[1]);
        let axes = axes.to_vec();
        let case =
            Case { axes, dtype: 3, big: false, reversed_axes: false, compressors, sharding, writes: vec![] };
        let shape = case.shape();
        let mut written = Vec::new();
        for threads in [4, 1] {
            zarrow::set_num_threads(threads);
            let (store, array) = case.open();
            let mut model: Vec<u64> =
                (0..height * width).map(|number| if number % 7 == 0 { number } else { 0 }).collect();
            // A row of missing inner chunks.
            model[(rows * width) as usize..(2 * rows * width) as usize].fill(0);
            let bytes: Vec<u8> = model.iter().flat_map(|item| item.to_ne_bytes()).collect();
            let values = Values::contiguous(&bytes, Number::UInt64.into(), &shape).unwrap();
            array.write(&Selection::all(&shape), &values).unwrap();
            let index =
                |start, stop, step| Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) };
            let some = Selection::new(&shape, &[index(33, 480, 1), index(70, 590, 2)]).unwrap();
            let part: Vec<u8> = (0..447 * 260u64).flat_map(|number| (number + 1).to_ne_bytes()).collect();
            let values = Values::contiguous(&part, Number::UInt64.into(), &some.shape()).unwrap();
            array.write(&some, &values).unwrap();
            for number in 0..447 * 260 {
                let place = (33 + number / 260) * width as usize + 70 + 2 * (number % 260);
                model[place] = number as u64 + 1;
            }
            let DecodedArray::Tensor(tensor) = array.read(Selection::all(&shape)).unwrap() else {
                panic!("not a tensor")
            };
            let expected: Vec<u8> = model.iter().flat_map(|item| item.to_ne_bytes()).collect();
            assert!(tensor.bytes() == expected);
            written.push(store.get("c/0/0", u64::MAX).unwrap().unwrap());
        }
        assert!(written[0] == written[1]);
    }
}

/// Unwritten inner chunks are copied without decoding, and survive even if the codec could not decode them.
#[test]
fn untouched_inner_chunks_are_not_decoded() {
    let case = Case {
        axes: vec![(8, 8, 2)],
        dtype: 0,
        big: false,
        reversed_axes: false,
        compressors: vec![json!({"name": "crc32c"})],
        sharding: 1,
        writes: Vec::new(),
    };
    let (store, array) = case.open();
    let all = Selection::all(&[8]);
    let bytes = [1u8, 2, 3, 4, 5, 6, 7, 8];
    let values = Values::contiguous(&bytes, Number::UInt8.into(), &[8]).unwrap();
    array.write(&all, &values).unwrap();
    let mut shard = store.get("c/0", 1000).unwrap().unwrap();
    // The second inner chunk starts at byte 6: now its checksum is wrong.
    shard[6] ^= 1;
    store.writer().unwrap().set("c/0", &[&shard], Durability::None).unwrap();
    let slice = |start, stop| Index::Slice { start: Some(start), stop: Some(stop), step: None };
    let first = Selection::new(&[8], &[slice(0, 1)]).unwrap();
    let one = Values::contiguous(&[9], Number::UInt8.into(), &[]).unwrap();
    array.write(&first, &one).unwrap();
    let again = store.get("c/0", 1000).unwrap().unwrap();
    assert_eq!((&again[..2], &again[6..12]), (&[9, 2][..], &shard[6..12]));
    let second = Selection::new(&[8], &[slice(2, 3)]).unwrap();
    let error = array.write(&second, &one).unwrap_err();
    assert_eq!(
        (error.kind().code(), error.context().codec.as_deref(), error.context().chunk.as_deref()),
        ("checksum", Some("crc32c"), Some(&[0u64][..]))
    );
    assert_eq!(store.get("c/0", 1000).unwrap().unwrap(), again);
}

#[test]
fn invalid_writes_are_refused() {
    let mut metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 99}}],
    });
    let (store, broken) = array(&metadata);
    let (all, options) = (Selection::all(&[4]), WriteOptions::default());
    let values =
        |bytes, number: Number, shape: &[u64]| Values::contiguous(bytes, number.into(), shape).unwrap();
    let error = broken
        .write_request(&all)
        .unwrap()
        .options(&options)
        .write(&values(&[1; 8], Number::Int16, &[4]))
        .unwrap_err();
    assert_eq!((error.kind().code(), error.context().codec.as_deref()), ("bad_codec", Some("zstd")));
    assert_eq!(store.list("").unwrap(), ["zarr.json"]);
    metadata["codecs"][1] = json!({"name": "crc32c"});
    let (store, array) = array(&metadata);
    let write = |values: &Values<'_>, interrupted: bool| {
        array
            .write_request(&all)
            .unwrap()
            .options(&options.cancel(&|| interrupted))
            .write(values)
            .map_err(|error| error.kind().code())
    };
    assert_eq!(write(&values(&[1; 8], Number::Float16, &[4]), false), Err("unsupported"));
    assert_eq!(write(&values(&[1; 6], Number::Int16, &[3]), false), Err("shape"));
    let masked =
        values(&[1; 8], Number::Int16, &[4]).with_mask(&values(&[0; 4], Number::UInt8, &[4])).unwrap();
    assert_eq!(write(&masked, false), Err("unsupported"));
    let memory = [0u8; 6];
    // SAFETY: the memory outlives the values.
    let outside =
        unsafe { Values::strided((memory.as_ptr(), 6, 0), Number::Int16.into(), &[4], &[2], false) }.unwrap();
    assert_eq!(write(&outside, false), Err("shape"));
    assert_eq!(store.list("").unwrap().len() - 1, usize::from(store.get("c/0", 99).unwrap().is_some()));
    assert_eq!(write(&values(&[1; 8], Number::Int16, &[1, 1, 4]), false), Ok(()));
    assert_eq!(array.write_unit(), Some(vec![2]));
}

/// A store without locks, like some file systems.
#[derive(Debug, Default)]
struct Lockless(MemoryStore);

impl Store for Lockless {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn zarrow::store::Value + '_>>, Error> {
        self.0.open(key)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        self.0.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64, Error> {
        self.0.nbytes(prefix)
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }
}

impl StoreWriter for Lockless {
    fn draft(&self, key: &str, durability: Durability) -> Result<Box<dyn Draft + '_>, Error> {
        self.0.draft(key, durability)
    }

    fn overwrite(
        &self,
        key: &str,
        parts: Option<&[&[u8]]>,
        durability: Durability,
        pass: &dyn Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.0.overwrite(key, parts, durability, pass)
    }

    fn erase(&self, key: &str, durability: Durability) -> Result<bool, Error> {
        self.0.erase(key, durability)
    }

    fn detach<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>, Error> {
        self.0.detach(prefix, durability, marks)
    }

    fn try_lock(&self, _: &str) -> Result<Option<Box<dyn Lock + '_>>, Error> {
        Err(ErrorKind::Unsupported("locks".into()).into())
    }

    fn sweep(&self, prefix: &str) -> Result<usize, Error> {
        self.0.sweep(prefix)
    }
}

/// Chunks that the selection covers up to the array's edge need no lock; a part of one does.
#[test]
fn whole_arrays_are_written_without_locks() {
    let metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": [5], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    });
    let store = Arc::new(Lockless::default());
    store.set("zarr.json", &[metadata.to_string().as_bytes()], Durability::None).unwrap();
    let Node::Array(array) = zarrow::open(store.clone(), "").unwrap() else { panic!("an array was written") };
    let values = Values::contiguous(&[1, 2, 3, 4, 5], Number::UInt8.into(), &[5]).unwrap();
    let options = WriteOptions::default();
    array.write_request(Selection::all(&[5])).unwrap().options(&options).write(&values).unwrap();
    assert_eq!(store.get("c/1", 9).unwrap().unwrap(), [4, 5, 0]);
    let one = Selection::new(&[5], &[Index::Slice { start: Some(4), stop: None, step: None }]).unwrap();
    let values = Values::contiguous(&[9], Number::UInt8.into(), &[1]).unwrap();
    let error = array.write_request(&one).unwrap().options(&options).write(&values).unwrap_err();
    assert_eq!((error.kind().code(), store.get("c/1", 9).unwrap().unwrap()), ("unsupported", vec![4, 5, 0]));
}
