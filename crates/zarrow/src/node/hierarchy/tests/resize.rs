//! Resizing and appending, compared with a map of elements.

use super::*;
use crate::metadata::ChunkKeyEncoding;
use crate::{AppendParts, Array, Selection, Values, WriteOptions};
use proptest::prelude::*;
use std::collections::BTreeMap;

const FILL: i16 = -7;

/// Elements by position, and the shape of the array.
#[derive(Debug, Default)]
struct Model {
    shape: Vec<u64>,
    elements: BTreeMap<Vec<u64>, i16>,
}

impl Model {
    fn resize(&mut self, shape: &[u64]) {
        self.elements.retain(|place, _| place.iter().zip(shape).all(|(at, extent)| at < extent));
        self.shape = shape.to_vec();
    }

    /// All elements in C order.
    fn values(&self) -> Vec<i16> {
        places(&self.shape).map(|place| self.elements.get(&place).copied().unwrap_or(FILL)).collect()
    }
}

fn places(shape: &[u64]) -> impl Iterator<Item = Vec<u64>> + '_ {
    let count: u64 = shape.iter().product();
    (0..count).map(move |mut number| {
        let mut place = vec![0; shape.len()];
        for (at, extent) in place.iter_mut().zip(shape).rev() {
            *at = number % extent;
            number /= extent;
        }
        place
    })
}

fn bytes(values: &[i16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn read(array: &Array) -> Vec<i16> {
    let decoded = array.read(Selection::all(array.shape())).unwrap();
    let zarrow_array::DecodedArray::Tensor(tensor) = decoded else { panic!() };
    tensor.bytes().chunks(2).map(|bytes| i16::from_ne_bytes([bytes[0], bytes[1]])).collect()
}

fn write_all(array: &Array, values: &[i16]) {
    let bytes = bytes(values);
    let values = Values::contiguous(&bytes, array.data_type().clone(), array.shape()).unwrap();
    array.write(&Selection::all(array.shape()), &values).unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Resize(Vec<u64>),
    /// An axis, the number of rows, and the size of a part in bytes.
    Append(usize, u64, Option<u64>),
    Write,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        prop::collection::vec(0..9u64, 2).prop_map(Step::Resize),
        (0..2usize, 0..5u64, prop::option::of(0..40u64))
            .prop_map(|(axis, count, nbytes)| Step::Append(axis, count, nbytes)),
        Just(Step::Write),
    ]
}

proptest! {
    #[test]
    fn it_does_what_a_map_does(
        steps in prop::collection::vec(step(), 1..12),
        chunk in prop::collection::vec(1..4u64, 2),
        sharded: bool,
        version_2: bool,
        slash: bool,
        on_disk in prop::bool::weighted(0.2),
    ) {
        let mut builder = ArrayBuilder::new([3, 2], Number::Int16)
            .fill_value(FillValue::Fixed(FILL.to_ne_bytes().to_vec()))
            .chunk_shape(chunk.clone());
        let separator = if slash { '/' } else { '.' };
        builder = if version_2 {
            builder.zarr_format(ZarrFormat::V2).chunk_key_encoding(ChunkKeyEncoding::V2 { separator })
        } else {
            builder.chunk_key_encoding(ChunkKeyEncoding::Default { separator })
        };
        if sharded && !version_2 {
            builder = builder.shard_shape([chunk[0] * 2, chunk[1]]);
        }
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> =
            if on_disk { Arc::new(FilesystemStore::create(folder.path()).unwrap()) } else { memory() };
        let options = OpenOptions::default();
        let metadata = builder.build().unwrap();
        let mut array = create_array(Arc::clone(&store), "a", metadata, Existing::Refuse, &options).unwrap();
        // A handle that is always out of date.
        let mut other = array.clone();
        let mut model = Model { shape: vec![3, 2], ..Model::default() };
        let mut next = 0i16;
        for step in steps {
            std::mem::swap(&mut array, &mut other);
            match step {
                Step::Resize(shape) => {
                    array.resize(&shape).unwrap();
                    model.resize(&shape);
                }
                Step::Append(axis, count, nbytes) => {
                    let mut added = model.shape.clone();
                    added[axis] = count;
                    let values: Vec<i16> = places(&added).map(|_| { next += 1; next }).collect();
                    let start = model.shape[axis];
                    for (mut place, value) in places(&added).zip(&values) {
                        place[axis] += start;
                        model.elements.insert(place, *value);
                    }
                    let bytes = bytes(&values);
                    let values = Values::contiguous(&bytes, array.data_type().clone(), &added).unwrap();
                    let at = match nbytes {
                        None => array.append(&values, axis),
                        Some(nbytes) => {
                            let parts = AppendParts { nbytes, report: &|done, all| done == 0 || done >= all || all != count };
                            array.append_in_parts(&values, axis, &WriteOptions::default(), &parts)
                        }
                    }
                    .unwrap();
                    prop_assert_eq!(at, start);
                    model.shape[axis] += count;
                }
                Step::Write => {
                    array.refresh().unwrap();
                    let values: Vec<i16> = places(&model.shape).map(|_| { next += 1; next }).collect();
                    model.elements = places(&model.shape).zip(values.iter().copied()).collect();
                    write_all(&array, &values);
                }
            }
            prop_assert_eq!(array.shape(), model.shape.as_slice());
            prop_assert_eq!(read(&array), model.values());
        }
        let grid = array.metadata().chunk_grid.grid_shape(array.shape());
        let chunks = keys(&*store, "a").into_iter().filter(|key| !key.contains(".z") && !key.ends_with(".json"));
        prop_assert!(chunks.count() as u64 <= grid.iter().product::<u64>());
        other.refresh().unwrap();
        prop_assert_eq!(read(&other), model.values());
    }
}

#[test]
fn shapes_that_are_refused_change_nothing() {
    let store = memory();
    let mut array = array(&store, "", ZarrFormat::V3).unwrap();
    write_all(&array, &[5; 24]);
    let before = keys(&*store, "");
    for shape in [&[3][..], &[3, 4, 5], &[u64::MAX, 4], &[1 << 62, 4], &[]] {
        let expected = if shape.len() == 2 { "metadata" } else { "shape" };
        assert_eq!(code(array.resize(shape)), expected, "{shape:?}");
    }
    let values = |shape: &[u64]| -> Values<'static> {
        let count: u64 = shape.iter().product();
        Values::contiguous(&[0; 100][..count as usize * 2], Number::Int16.into(), shape).unwrap()
    };
    for (shape, axis) in [(&[2, 5][..], 0), (&[2, 4], 2), (&[4], 0), (&[5, 1], 1), (&[], 0)] {
        let refused = array.append(&values(shape), axis);
        assert_eq!(code(refused), "index", "{shape:?}");
    }
    assert_eq!((array.shape(), keys(&*store, "")), (&[6, 4][..], before));
    assert_eq!(read(&array), [5; 24]);
}

#[test]
fn a_grid_of_unequal_chunks_keeps_its_edges() {
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [7], "data_type": "int16",
        "chunk_grid": {"name": "rectilinear",
                       "configuration": {"kind": "inline", "chunk_shapes": [[2, [3, 2]]]}},
        "chunk_key_encoding": "default", "fill_value": FILL,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]});
    let store = MemoryStore::new([("zarr.json", document.to_string().into_bytes())]).unwrap();
    let Node::Array(mut array) = open(Arc::new(store), "").unwrap() else { panic!() };
    write_all(&array, &[1; 7]);
    array.resize(&[3]).unwrap();
    array.resize(&[8]).unwrap();
    assert_eq!(read(&array), [1, 1, 1, FILL, FILL, FILL, FILL, FILL]);
    assert_eq!(code(array.resize(&[9])), "metadata");
}

#[test]
fn what_the_fill_value_is_does_not_matter() {
    let optional = DataType::Optional(Box::new(Number::Int16.into()));
    for data_type in [DataType::String, DataType::Bytes, optional, Number::Complex64.into()] {
        let metadata = ArrayBuilder::new([5], data_type).chunk_shape([3]).build().unwrap();
        let (store, options) = (memory(), OpenOptions::default());
        let mut array = create_array(Arc::clone(&store), "", metadata, Existing::Refuse, &options).unwrap();
        array.resize(&[4]).unwrap();
        array.resize(&[1]).unwrap();
        array.resize(&[5]).unwrap();
        assert_eq!((array.shape(), keys(&*store, "")), (&[5][..], vec!["zarr.json".to_owned()]));
    }
}

#[test]
fn appends_of_threads_follow_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(FilesystemStore::create(folder.path()).unwrap());
    let metadata = ArrayBuilder::new([0], Number::Int16).chunk_shape([7]).build().unwrap();
    create_array(Arc::clone(&store), "a", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4i16 {
            let store = &store;
            scope.spawn(move || {
                let Node::Array(mut array) = open(Arc::clone(store), "a").unwrap() else { panic!() };
                for _ in 0..8 {
                    let bytes = bytes(&[thread; 3]);
                    let values = Values::contiguous(&bytes, array.data_type().clone(), &[3]).unwrap();
                    array.append(&values, 0).unwrap();
                }
            });
        }
    });
    let Node::Array(array) = open(store, "a").unwrap() else { panic!() };
    let found = read(&array);
    assert_eq!(found.len(), 4 * 8 * 3);
    for three in found.chunks(3) {
        assert_eq!(three, [three[0]; 3]);
    }
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [[0i16; 24], [1; 24], [2; 24], [3; 24]].concat());
}

#[test]
fn an_append_that_a_report_ends_leaves_the_old_array() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), Arc::new(FilesystemStore::create(folder.path()).unwrap()) as Arc<dyn Store>] {
        let metadata = ArrayBuilder::new([3], Number::Int16).chunk_shape([2]).build().unwrap();
        let mut array =
            create_array(Arc::clone(&store), "", metadata, Existing::Refuse, &OpenOptions::default())
                .unwrap();
        write_all(&array, &[1, 2, 3]);
        let before = keys(&*store, "");
        let bytes = bytes(&[7; 9]);
        let values = Values::contiguous(&bytes, array.data_type().clone(), &[9]).unwrap();
        for ends in [1, 5] {
            let reports = std::cell::RefCell::new(Vec::new());
            let report = |done, count| {
                reports.borrow_mut().push((done, count));
                done == ends
            };
            let parts = AppendParts { nbytes: 4, report: &report };
            let error = array.append_in_parts(&values, 0, &WriteOptions::default(), &parts).unwrap_err();
            assert_eq!(error.kind().code(), "interrupted");
            assert_eq!(reports.into_inner(), (1..=ends).step_by(2).map(|done| (done, 9)).collect::<Vec<_>>());
            assert_eq!((read(&array), keys(&*store, "")), (vec![1, 2, 3], before.clone()));
        }
        assert_eq!(array.append(&values, 0).unwrap(), 3);
        assert_eq!(read(&array), [&[1, 2, 3][..], &[7; 9]].concat());
    }
}

/// Files and folders below an array that are not its chunks survive every change of the shape.
#[test]
fn resizing_erases_only_chunks() {
    for (zarr_format, separator) in
        [(ZarrFormat::V2, '/'), (ZarrFormat::V2, '.'), (ZarrFormat::V3, '/'), (ZarrFormat::V3, '.')]
    {
        let folder = tempfile::tempdir().unwrap();
        let stores: [Arc<dyn Store>; 2] =
            [memory(), Arc::new(FilesystemStore::create(folder.path()).unwrap())];
        for store in stores {
            let encoding = match zarr_format {
                ZarrFormat::V2 => ChunkKeyEncoding::V2 { separator },
                ZarrFormat::V3 => ChunkKeyEncoding::Default { separator },
            };
            let metadata = builder(zarr_format).chunk_shape([2, 2]).chunk_key_encoding(encoding);
            let metadata = metadata.build().unwrap();
            let options = OpenOptions::default();
            let mut array =
                create_array(Arc::clone(&store), "a", metadata, Existing::Refuse, &options).unwrap();
            write_all(&array, &[5; 24]);
            // Notes, a folder named like a chunk, an array inside, and an index with a leading zero.
            let others = [
                "a/2024/notes.txt", "a/2025/7/notes.txt", "a/2026/.zarray", "a/2026/1", "a/c/2024/7/x",
                "a/01/1",
            ];
            for key in others {
                put(&*store, key, b"mine");
            }
            put(&*store, "a/2027/3", b"a chunk of version 2");
            let has_others = || others.iter().all(|key| store.get(key, 9).unwrap().unwrap() == b"mine");
            array.resize(&[9, 4]).unwrap();
            assert!(has_others(), "{separator}");
            let is_chunk = zarr_format == ZarrFormat::V2 && separator == '/';
            assert_eq!(store.get("a/2027/3", 99).unwrap().is_none(), is_chunk);
            array.resize(&[1, 1]).unwrap();
            assert!(has_others());
            let unfit = Values::slice(&[1i16; 3], &[3, 1]).unwrap();
            assert_eq!(array.append(&unfit, 0).unwrap(), 1);
            assert!(has_others());
            array.resize(&[0, 0]).unwrap();
            assert!(has_others());
            let chunks = |key: &String| {
                !others.contains(&key.as_str()) && !key.contains("/.z") && !key.contains(".json")
            };
            let left: Vec<String> = keys(&*store, "a").into_iter().filter(chunks).collect();
            assert!(left.iter().all(|key| key == "a/2027/3" && !is_chunk), "{left:?}");
        }
    }
}
