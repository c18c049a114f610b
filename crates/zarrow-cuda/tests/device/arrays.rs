//! Reads of arrays to a device and writes from it, compared to the host.

use crate::software::{counters, device};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zarrow::metadata::CodecMetadata;
use zarrow::store::MemoryStore;
use zarrow::{
    Array, ArrayBuilder, AxisIndex, ErrorKind, Existing, Index, Number, OpenOptions, ReadRequest, Selection,
    WriteOptions, create_array,
};
use zarrow_array::fork::Mutex;
use zarrow_array::{DataType, SharedTensor};
use zarrow_cuda::{DeviceTensor, Error, Result, Route, in_stream, read, read_many, write};

/// An array in memory with distinct numbers.
pub fn array(shape: &[u64], build: impl FnOnce(ArrayBuilder) -> ArrayBuilder) -> Array {
    let metadata = build(ArrayBuilder::new(shape.to_vec(), Number::UInt32)).build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    let count: u64 = shape.iter().product();
    let values: Vec<u32> = (0..count as u32).map(|number| number.wrapping_mul(2_654_435_761) >> 7).collect();
    let values = zarrow::Values::contiguous(bytes(&values), Number::UInt32.into(), shape).unwrap();
    array.write(Selection::all(shape), &values).unwrap();
    array
}

pub fn bytes(values: &[u32]) -> &[u8] {
    // SAFETY: numbers have no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

pub fn same(left: &SharedTensor, right: &SharedTensor) -> bool {
    // SAFETY: the tensors are not written to.
    left.shape() == right.shape() && unsafe { left.bytes() == right.bytes() }
}

pub fn expected(array: &Array, selection: &Selection) -> SharedTensor {
    array.read(selection).unwrap().into_tensor().unwrap().into_shared().unwrap()
}

fn read_on_host(request: &ReadRequest<'_>, out: Option<&DeviceTensor>) -> Result<DeviceTensor> {
    read(request, device(0), out, Route::Host).map(|(tensor, _)| tensor)
}

fn check(array: &Array, selection: &Selection) {
    let tensor = read_on_host(&array.request(selection).unwrap(), None).unwrap();
    assert!(same(&tensor.to_host().unwrap(), &expected(array, selection)), "{selection:?}");
}

pub fn zstd() -> CodecMetadata {
    let settings = serde_json::json!({ "level": 1, "checksum": false });
    CodecMetadata::new("zstd", settings.as_object().unwrap().clone())
}

pub fn slice(start: i64, stop: Option<i64>, step: i64) -> Index {
    Index::Slice { start: Some(start), stop, step: Some(step) }
}

#[test]
fn reads_equal_those_to_the_host() {
    let arrays = [
        array(&[50, 40, 3], |builder| builder.chunk_shape([16, 16, 3])),
        array(&[50, 40, 3], |builder| builder.chunk_shape([16, 16, 3]).compressors([zstd()])),
        array(&[50, 40, 3], |builder| {
            builder.chunk_shape([8, 8, 3]).shard_shape([32, 16, 3]).compressors([zstd()])
        }),
    ];
    for array in &arrays {
        let shape = array.shape().to_vec();
        check(array, &Selection::all(&shape));
        let basic = [
            vec![slice(3, Some(41), 1), slice(35, None, -3), slice(1, None, 1)],
            vec![Index::At(-1), Index::Ellipsis, slice(0, None, 2)],
            vec![slice(5, Some(5), 1)],
            vec![Index::At(7), Index::At(8), Index::At(2)],
        ];
        for indices in basic {
            check(array, &Selection::new(&shape, &indices).unwrap());
        }
        let listed =
            [AxisIndex::List(&[9, 3, 49, 3]), AxisIndex::Basic(slice(0, None, 1)), AxisIndex::List(&[2, 0])];
        check(array, &Selection::orthogonal(&shape, &listed).unwrap());
        let points = [
            AxisIndex::List(&[9, 3, 49, 3]),
            AxisIndex::List(&[0, 39, 5, 5]),
            AxisIndex::Basic(slice(0, None, 1)),
        ];
        check(array, &Selection::points(&shape, &points, &[2, 2]).unwrap());
    }
}

/// Tests that transfer many bytes take turns, because others count bytes.
static LARGE: Mutex<()> = Mutex::new(());

#[test]
fn reads_of_several_parts_copy_each_byte_once() {
    let _alone = LARGE.lock();
    // 40 MiB: three contiguous parts of the result, or three strided ones.
    for chunk_shape in [[512, 512], [4096, 64]] {
        let array = array(&[4096, 2560], |builder| builder.chunk_shape(chunk_shape));
        let all = Selection::all(array.shape());
        let crossed = || {
            device(0).synchronize().unwrap();
            let before = counters();
            let tensor = read_on_host(&array.request(&all).unwrap(), None).unwrap();
            device(0).synchronize().unwrap();
            let after = counters();
            assert_eq!(after.to_device_pageable, before.to_device_pageable);
            (tensor, after.to_device_pinned - before.to_device_pinned)
        };
        // Other tests of this process may use the device concurrently, and add to the counters.
        let (tensor, _) = (0..50).map(|_| crossed()).find(|(_, moved)| *moved == 40 << 20).unwrap();
        assert!(same(&tensor.to_host().unwrap(), &expected(&array, &all)));
    }
}

#[test]
fn a_read_of_many_parts_stops_at_the_first_error_or_on_cancellation() {
    let _alone = LARGE.lock();
    // Five parts of 16 MiB, with one chunk each.
    let metadata = serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": [20 << 20], "data_type": "uint32", "fill_value": 7,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4 << 20]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    let open = |chunks: &[(&str, &[u8])]| {
        let metadata = ("zarr.json", metadata.to_string().into_bytes());
        let chunks = chunks.iter().map(|(key, bytes)| (*key, bytes.to_vec()));
        let store = MemoryStore::new(chunks.chain([metadata])).unwrap();
        zarrow::open(Arc::new(store), "").unwrap().into_array().unwrap()
    };
    for (number, key) in [(0, "c/0"), (2, "c/2"), (4, "c/4")] {
        let array = open(&[(key, b"too short")]);
        let all = Selection::all(array.shape());
        let error = read_on_host(&array.request(&all).unwrap(), None).unwrap_err();
        let Error::Zarr(error) = error else { panic!("{error}") };
        assert_eq!(error.context().chunk, Some(vec![number]));
    }
    let array = open(&[]);
    let all = Selection::all(array.shape());
    // No chunk is stored: all elements are the fill value.
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) == 1;
    let stopped = read_on_host(&array.request(&all).unwrap().cancel(&stop), None);
    assert!(matches!(stopped, Err(Error::Zarr(error)) if matches!(error.kind(), ErrorKind::Interrupted)));
    check(&array, &all);
}

#[test]
fn reads_go_into_memory_with_any_strides() {
    let array = array(&[30, 20], |builder| builder.chunk_shape([7, 6]).compressors([zstd()]));
    let whole = DeviceTensor::empty(device(0), &[40, 60], Number::UInt32.into()).unwrap();
    whole.fill(&[0; 4]).unwrap();
    let range = |start, step, count| zarrow_array::IndexStep::Range { start, step, count };
    let out = whole.view(&[range(39, -2, 20), range(1, 2, 30)]).unwrap().transpose(&[1, 0]).unwrap();
    let all = Selection::all(array.shape());
    read_on_host(&array.request(&all).unwrap(), Some(&out)).unwrap();
    assert!(same(&out.to_host().unwrap(), &expected(&array, &all)));
    let beside = whole.view(&[range(0, 2, 20), range(0, 1, 60)]).unwrap();
    assert!(!beside.any().unwrap(), "no write is out of bounds");
    let refused = |out: &DeviceTensor| read_on_host(&array.request(&all).unwrap(), Some(out)).unwrap_err();
    assert!(matches!(refused(&whole), Error::Array(_)));
    assert!(matches!(refused(&out.reinterpret(Number::Int32.into()).unwrap()), Error::OtherType { .. }));
    assert!(matches!(refused(&out.broadcast_to(&[30, 20]).unwrap()), Error::ReadOnly));
    let other = DeviceTensor::empty(device(1), &[30, 20], Number::UInt32.into()).unwrap();
    assert!(matches!(refused(&other), Error::OtherDevice { .. }));
}

#[test]
fn batches_equal_those_of_the_host() {
    let large = array(&[3000, 2000], |builder| builder.chunk_shape([512, 512]).compressors([zstd()]));
    // Small items share a slot; each large item is read in parts.
    for (count, extent) in [(7, 40), (1, 3), (3, 2600)] {
        let crops: Vec<Selection> = (0..count)
            .map(|number| {
                let start = number * 13;
                let indices = [
                    slice(start, Some(start + extent), 1),
                    slice(start, Some((start + extent).min(2000)), 1),
                ];
                Selection::new(large.shape(), &indices).unwrap()
            })
            .filter(|crop| crop.shape() == [extent as u64, (extent as u64).min(2000)] || extent == 2600)
            .collect();
        let shape = crops[0].shape();
        let items: Vec<_> = crops
            .iter()
            .filter(|crop| crop.shape() == shape)
            .map(|crop| large.request(crop).unwrap())
            .collect();
        let extents = [&[items.len() as u64][..], &shape].concat();
        let whole = DeviceTensor::empty(device(0), &extents, Number::UInt32.into()).unwrap();
        let turned = DeviceTensor::empty_column_major(device(0), &extents, Number::UInt32.into()).unwrap();
        for out in [whole, turned] {
            read_many(&items, &out, Route::Host).unwrap();
            for (number, item) in items.iter().enumerate() {
                let rest = shape.iter().map(|extent| zarrow_array::IndexStep::Range {
                    start: 0,
                    step: 1,
                    count: *extent as i64,
                });
                let steps: Vec<_> =
                    std::iter::once(zarrow_array::IndexStep::At(number as i64)).chain(rest).collect();
                assert!(same(
                    &out.view(&steps).unwrap().to_host().unwrap(),
                    &expected(item.array(), item.selection())
                ));
            }
        }
        let small = DeviceTensor::empty(device(0), &shape, Number::UInt32.into()).unwrap();
        assert!(matches!(read_many(&items, &small, Route::Host), Err(Error::Array(_))));
    }
}

#[test]
fn writes_are_read_back() {
    let array =
        array(&[50, 40], |builder| builder.chunk_shape([8, 8]).shard_shape([16, 16]).compressors([zstd()]));
    let selection = Selection::new(array.shape(), &[slice(3, Some(45), 2), slice(39, None, -1)]).unwrap();
    let before = expected(&array, &Selection::all(array.shape()));
    let values = DeviceTensor::from_host(device(0), &expected(&array, &selection)).unwrap();
    let reversed = values.view(&[
        zarrow_array::IndexStep::Range { start: 20, step: -1, count: 21 },
        zarrow_array::IndexStep::Range { start: 0, step: 1, count: 40 },
    ]);
    let reversed = reversed.unwrap();
    write(&array, &selection, &reversed, &WriteOptions::default()).unwrap();
    assert!(same(&expected(&array, &selection), &reversed.to_host().unwrap()));
    write(&array, &selection, &values, &WriteOptions::default()).unwrap();
    assert!(same(&expected(&array, &Selection::all(array.shape())), &before));
    let one = DeviceTensor::empty(device(0), &[], Number::UInt32.into()).unwrap();
    one.fill(&7u32.to_ne_bytes()).unwrap();
    write(&array, &Selection::all(array.shape()), &one, &WriteOptions::default()).unwrap();
    let sevens = read_on_host(&array.request(..).unwrap(), None).unwrap();
    assert!(sevens.all_equal(&one, false).unwrap());
    let wrong = DeviceTensor::empty(device(0), &[3], Number::UInt32.into()).unwrap();
    assert!(write(&array, &selection, &wrong, &WriteOptions::default()).is_err());
}

#[test]
fn failed_reads_leave_the_device_usable() {
    let metadata = ArrayBuilder::new([64, 64], Number::UInt32)
        .chunk_shape([16, 16])
        .compressors([zstd()])
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut group = zarrow::Group::create(folder.path()).unwrap();
    let array = group.create_array("x", metadata, Existing::Refuse).unwrap();
    let ones = vec![1u32; 64 * 64];
    let values = zarrow::Values::contiguous(bytes(&ones), Number::UInt32.into(), &[64, 64]).unwrap();
    array.write(Selection::all(&[64, 64]), &values).unwrap();
    std::fs::write(folder.path().join("x/c/2/1"), b"no frame").unwrap();
    let all = Selection::all(array.shape());
    match read_on_host(&array.request(&all).unwrap(), None) {
        Err(Error::Zarr(error)) => assert_eq!(error.context().chunk.as_deref(), Some(&[2, 1][..])),
        other => panic!("{other:?}"),
    }
    check(&array, &Selection::new(&[64, 64], &[slice(0, Some(32), 1)]).unwrap());
    let cancelled = || true;
    assert!(read_on_host(&array.request(&all).unwrap().cancel(&cancelled), None).is_err());
    let strings = ArrayBuilder::new([4], DataType::String).build().unwrap();
    let strings = group.create_array("text", strings, Existing::Refuse).unwrap();
    let error = read_on_host(&strings.request(..).unwrap(), None).unwrap_err();
    assert!(error.to_string().contains("without device="), "{error}");
}

#[test]
fn reads_can_be_ordered_in_another_librarys_stream() {
    let array = array(&[64, 64], |builder| builder.chunk_shape([16, 64]));
    let all = Selection::all(array.shape());
    let stream = zarrow_cuda::Stream::PER_THREAD;
    let tensor = in_stream(device(0), stream, || read_on_host(&array.request(&all).unwrap(), None)).unwrap();
    zarrow_cuda::Event::record(device(0), stream).unwrap().wait().unwrap();
    assert!(same(&tensor.to_host().unwrap(), &expected(&array, &all)));
}
