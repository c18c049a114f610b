//! Reads with decompression on the device, compared to reads to the host.

use crate::arrays::{array, bytes, expected, same, slice, zstd};
use crate::decompressor::install;
use crate::software::device;
use proptest::prelude::*;
use serde_json::json;
use zarrow::metadata::CodecMetadata;
use zarrow::{Array, ArrayBuilder, Existing, Index, Number, Selection};
use zarrow_cuda::decompress::Done;
use zarrow_cuda::decompress::Format;
use zarrow_cuda::{DecompressedBy, DeviceTensor, Error, Mean, Rates, Route, explain, read, read_many};

pub fn codec(name: &str, settings: serde_json::Value) -> CodecMetadata {
    CodecMetadata::new(name, settings.as_object().unwrap().clone())
}

fn blosc(compressor: &str, shuffle: &str, block_nbytes: u32) -> CodecMetadata {
    let settings = json!({ "cname": compressor, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": block_nbytes });
    codec("blosc", settings)
}

/// Compressors supported by the device, and some left to the host.
fn compressors() -> Vec<Vec<CodecMetadata>> {
    vec![
        vec![zstd()],
        vec![zstd(), codec("crc32c", json!({}))],
        vec![codec("numcodecs.lz4", json!({ "acceleration": 1 }))],
        vec![blosc("lz4", "shuffle", 0)],
        vec![blosc("lz4", "bitshuffle", 512)],
        vec![blosc("zstd", "shuffle", 256)],
        vec![blosc("zstd", "bitshuffle", 0)],
        vec![blosc("lz4", "noshuffle", 0)],
        vec![blosc("zlib", "shuffle", 0)],
        vec![blosc("zlib", "bitshuffle", 512)],
        vec![blosc("blosclz", "shuffle", 0)],
        vec![codec("gzip", json!({ "level": 1 }))],
        vec![codec("gzip", json!({ "level": 5 })), codec("crc32c", json!({}))],
        vec![codec("numcodecs.zlib", json!({ "level": 1 }))],
        vec![codec("zstd", json!({ "level": 1, "checksum": true }))],
        vec![codec("zstd", json!({ "level": 9, "checksum": true })), codec("crc32c", json!({}))],
        vec![],
    ]
}

/// Reads with decompression on the device, and compares with a read on the host; `None` if the device refuses
/// the array.
fn check(array: &Array, selection: &Selection) -> Option<Done> {
    install();
    let read = |route| read(&array.request(selection).unwrap(), device(0), None, route);
    let (tensor, done) = match read(Route::Device) {
        Ok((tensor, done)) => (tensor, Some(done)),
        Err(Error::Unsupported(_)) => (read(Route::Auto).unwrap().0, None),
        Err(error) => panic!("{error}"),
    };
    assert!(same(&tensor.to_host().unwrap(), &expected(array, selection)), "{selection:?}");
    done
}

#[test]
fn every_compressor_gives_the_hosts_result() {
    for compressors in compressors() {
        let array =
            array(&[70, 50], |builder| builder.chunk_shape([16, 24]).compressors(compressors.clone()));
        let first = compressors.first();
        let setting = |name: &str| first.and_then(|codec| codec.configuration.get(name)).cloned();
        let is_left_to_the_host = setting("cname") == Some(json!("blosclz"));
        let part = [slice(3, Some(60), 2), slice(45, None, -3)];
        for (selection, chunks) in
            [(Selection::all(&[70, 50]), 15), (Selection::new(&[70, 50], &part).unwrap(), 8)]
        {
            let done = check(&array, &selection);
            assert_eq!(done.is_none(), first.is_none(), "{first:?}");
            if let Some(done) = done {
                assert_eq!((done.on_device + done.on_host, done.failed_frames), (chunks, 0), "{first:?}");
                assert_eq!(done.on_host == 0, !is_left_to_the_host, "{first:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any selection with constant steps, of chunks in shards, transposed, with either byte order, some of them
    /// missing.
    #[test]
    fn selections_equal_those_of_the_host(
        starts in prop::array::uniform3(0i64..20),
        steps in prop::array::uniform3(prop::sample::select(vec![-3i64, -1, 1, 2, 5])),
        is_dropped in prop::array::uniform3(prop::bool::weighted(0.15)),
        compressor in prop::sample::select(compressors()),
        is_sharded: bool,
        is_reversed: bool,
        is_big: bool,
    ) {
        install();
        let shape = [20u64, 22, 24];
        let metadata = {
            let builder = ArrayBuilder::new(shape, Number::UInt32).compressors(compressor).big_endian(is_big);
            let builder = if is_sharded { builder.chunk_shape([5, 11, 6]).shard_shape([10, 11, 12]) } else { builder.chunk_shape([7, 9, 10]) };
            builder.column_major(is_reversed).build().unwrap()
        };
        let store = std::sync::Arc::new(zarrow::store::MemoryStore::default());
        let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &Default::default()).unwrap();
        // Half of the array is stored.
        let written = Selection::new(&shape, &[slice(0, Some(9), 1), Index::Ellipsis]).unwrap();
        let values: Vec<u32> = (0..9 * 22 * 24u32).map(|number| number / 3 * 77_777).collect();
        let values = zarrow::Values::contiguous(bytes(&values), Number::UInt32.into(), &[9, 22, 24]).unwrap();
        array.write(&written, &values).unwrap();
        let indices: Vec<Index> = (0..3)
            .map(|axis| match is_dropped[axis] {
                true => Index::At(starts[axis]),
                false => slice(starts[axis], None, steps[axis]),
            })
            .collect();
        check(&array, &Selection::new(&shape, &indices).unwrap());
    }
}

#[test]
fn elements_of_any_size_are_placed() {
    install();
    for dtype in [
        zarrow::DataType::FixedLengthUtf32 { length: 3 },
        zarrow::DataType::RawBytes { length: 5 },
        Number::Complex128.into(),
        Number::UInt8.into(),
    ] {
        let metadata = ArrayBuilder::new([40, 6], dtype.clone())
            .chunk_shape([8, 6])
            .compressors([blosc("lz4", "shuffle", 0)])
            .build()
            .unwrap();
        let store = std::sync::Arc::new(zarrow::store::MemoryStore::default());
        let array = zarrow::create_array(store, "", metadata, Existing::Refuse, &Default::default()).unwrap();
        let nbytes = 40 * 6 * dtype.item_size().unwrap();
        // Letters that are valid text of every type, twice each.
        let values: Vec<u8> =
            (0..nbytes).map(|byte| if byte % 4 == 0 { b'a' + (byte / 8 % 20) as u8 } else { 0 }).collect();
        let values = zarrow::Values::contiguous(&values, dtype.clone(), &[40, 6]).unwrap();
        let some = Selection::new(&[40, 6], &[slice(0, Some(40), 1), slice(0, Some(6), 1)]).unwrap();
        array.write(&some, &values).unwrap();
        check(&array, &some);
        check(&array, &Selection::new(&[40, 6], &[slice(39, None, -2), slice(1, Some(5), 3)]).unwrap());
    }
}

#[test]
fn several_batches_and_strided_memory() {
    install();
    // 48 MiB of random, incompressible words: several slots.
    let array = array(&[3 << 10, 4 << 10], |builder| {
        builder.chunk_shape([256, 256]).compressors([blosc("lz4", "shuffle", 0)])
    });
    let done = check(&array, &Selection::all(array.shape())).unwrap();
    assert_eq!((done.on_device, done.on_host), (12 * 16, 0));
    let whole = DeviceTensor::empty(device(0), &[4 << 10, 3 << 10], Number::UInt32.into()).unwrap();
    let out = whole.transpose(&[1, 0]).unwrap();
    let all = Selection::all(array.shape());
    read(&array.request(&all).unwrap(), device(0), Some(&out), Route::Device).unwrap();
    assert!(same(&out.to_host().unwrap(), &expected(&array, &all)));
}

/// A chunk of many small frames: its bytes fill a slot, so that its lists need another one.
#[test]
fn lists_without_room_in_their_slot() {
    install();
    let array = array(&[10 << 9, 1 << 10], |builder| {
        builder.chunk_shape([10 << 9, 1 << 10]).compressors([blosc("lz4", "shuffle", 4096)])
    });
    let done = check(&array, &Selection::all(array.shape())).unwrap();
    assert_eq!((done.on_device, done.on_host), (1, 0));
}

#[test]
fn corrupt_frames_give_the_hosts_error() {
    install();
    let folder = tempfile::tempdir().unwrap();
    let mut group = zarrow::Group::create(folder.path()).unwrap();
    let metadata = ArrayBuilder::new([64, 64], Number::UInt32)
        .chunk_shape([16, 16])
        .compressors([zstd()])
        .build()
        .unwrap();
    let array = group.create_array("x", metadata, Existing::Refuse).unwrap();
    let ones: Vec<u32> = (0..64 * 64).map(|number| number * 7 % 1000).collect();
    let values = zarrow::Values::contiguous(bytes(&ones), Number::UInt32.into(), &[64, 64]).unwrap();
    array.write(Selection::all(&[64, 64]), &values).unwrap();
    let path = folder.path().join("x/c/1/2");
    let mut stored = std::fs::read(&path).unwrap();
    // The headers stay valid, so that the device gets the frame.
    let middle = stored.len() / 2;
    stored[middle..middle + 16].fill(0xee);
    std::fs::write(&path, &stored).unwrap();
    let all = Selection::all(array.shape());
    let outcome = read(&array.request(&all).unwrap(), device(0), None, Route::Device);
    let host = array.read(&all);
    match (outcome, host) {
        (Err(Error::Zarr(device)), Err(host)) => assert_eq!(device.to_string(), host.to_string()),
        (Ok((tensor, done)), Ok(host)) => {
            // The corrupt bytes are still decodable: both give the same result.
            assert!(done.failed_frames == 0);
            assert!(same(&tensor.to_host().unwrap(), &host.into_tensor().unwrap().into_shared().unwrap()));
        }
        other => panic!("{other:?}"),
    }
    check(&array, &Selection::new(&[64, 64], &[slice(0, Some(16), 1)]).unwrap());
}

/// Rates with 1 MB/s per host thread, and `times` as much for the device, also for a single frame.
fn rates(times: f64) -> Rates {
    let mean = Mean::estimate;
    let threads = zarrow::num_threads() as f64;
    Rates {
        device: mean(1e6 * threads * times),
        device_frame: mean(1e12),
        link: mean(1e12),
        host_thread: mean(1e6),
        ratio: mean(2.0),
    }
}

/// A single test, because it sets the rates of the second device.
#[test]
fn rates_decide_and_reads_measure_them() {
    install();
    the_route_is_explained();
    reads_measure_what_they_do();
}

fn the_route_is_explained() {
    let device = device(1);
    let explain = |array: &Array, selection: &Selection, times: f64| {
        device.set_rates(Format::Zstd, rates(times));
        explain(array, selection, Some(device))
    };
    let many = array(&[640, 640], |builder| builder.chunk_shape([32, 32]).compressors([zstd()]));
    let all = Selection::all(&[640, 640]);
    for (times, by, on_device) in [
        (100.0, DecompressedBy::Device, 400),
        (0.001, DecompressedBy::Host, 0),
        (3.0, DecompressedBy::Both, 300),
    ] {
        let explanation = explain(&many, &all, times);
        assert_eq!((explanation.decompressed_by, explanation.chunks, explanation.frames), (by, 400, 400));
        let split = explanation.split.unwrap();
        assert_eq!((split.on_device, split.on_host), (on_device, 400 - on_device), "{explanation:?}");
        assert_eq!(explanation.rates, Some(rates(times)));
        assert!(!explanation.rates.unwrap().is_measured());
        // The read follows the explanation, and measures.
        let read = |route| read(&many.request(&all).unwrap(), device, None, route).unwrap();
        let (tensor, done) = read(Route::Auto);
        assert_eq!(done.on_device, on_device);
        assert!(on_device == 0 || done.on_host == 400 - on_device);
        assert!(same(&tensor.to_host().unwrap(), &expected(&many, &all)));
    }
    let row = Selection::new(&[640, 640], &[Index::At(3)]).unwrap();
    assert_eq!(explain(&many, &row, 1.0).chunks, 20);
    let name = explain(&many, &row, 1.0).compressor;
    assert_eq!(name.as_deref(), Some("zstd"));
    let why = |compressors: Vec<CodecMetadata>| {
        let array = array(&[640, 640], |builder| builder.chunk_shape([32, 32]).compressors(compressors));
        let explanation = explain(&array, &all, 100.0);
        assert_eq!((explanation.decompressed_by, explanation.split), (DecompressedBy::Host, None));
        explanation.why
    };
    assert!(why(vec![codec("bz2", json!({ "level": 1 }))]).contains("not bz2"));
    assert!(why(vec![blosc("blosclz", "shuffle", 0)]).contains("inside"));
    assert!(why(vec![]).contains("not compressed"));
    assert!(why(vec![zstd(), zstd()]).contains("several codecs"));
}

fn reads_measure_what_they_do() {
    // 16 MiB in chunks of 16 KiB, half of them left to the host.
    let array = array(&[2048, 2048], |builder| {
        builder.chunk_shape([64, 64]).compressors([codec("numcodecs.lz4", json!({ "acceleration": 1 }))])
    });
    let all = Selection::all(array.shape());
    let device = device(1);
    let before = rates(1.0);
    device.set_rates(Format::Lz4, before);
    read(&array.request(&all).unwrap(), device, None, Route::Auto).unwrap();
    let after = device.rates(Format::Lz4);
    for (name, mean) in [("link", after.link), ("host", after.host_thread), ("ratio", after.ratio)] {
        assert!(mean.is_measured && mean.value > 0.0, "{name}: {after:?}");
    }
    // Full batches measure the device, others single frames: that depends on the number of threads that filled
    // them.
    assert!(after.device.is_measured || after.device_frame.is_measured, "{after:?}");
    assert!(after.host_thread.value != before.host_thread.value);
}

#[test]
fn items_of_a_batch_are_read_in_turn() {
    install();
    let array = array(&[70, 50], |builder| builder.chunk_shape([16, 24]).compressors([zstd()]));
    let selections: Vec<_> = (0..5)
        .map(|row| {
            Selection::new(&[70, 50], &[slice(9 * row, Some(9 * row + 20), 1), slice(45, None, -3)]).unwrap()
        })
        .collect();
    let items: Vec<_> = selections.iter().map(|selection| array.request(selection).unwrap()).collect();
    let shape = [&[5], &selections[0].shape()[..]].concat();
    let read = |route| {
        let out = DeviceTensor::empty(device(0), &shape, Number::UInt32.into()).unwrap();
        let done = read_many(&items, &out, route).unwrap();
        (out.to_host().unwrap(), done)
    };
    let (host, done) = read(Route::Host);
    assert_eq!(done, Done::default());
    let (device, done) = read(Route::Device);
    assert!(done.on_device > 10 && done.on_host == 0, "{done:?}");
    assert!(same(&host, &device) && same(&host, &read(Route::Auto).0));
    let out = DeviceTensor::empty(self::device(0), &[4, 20, 16], Number::UInt32.into()).unwrap();
    let refused = read_many(&items, &out, Route::Device);
    assert!(matches!(refused, Err(Error::Array(_))));
}
