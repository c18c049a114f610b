//! Remote reads with decompression on the device: bodies arrive in pinned memory and are copied once, whatever the
//! store does.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "../../zarrow/tests/staged/arrays.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod arrays;
#[path = "device/decompressor.rs"]
mod decompressor;
#[path = "../../zarrow/tests/staged/simulated.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod simulated;
#[path = "device/software.rs"]
mod software;

use crate::decompressor::install;
use arrays::{Kind, SHAPE, bytes, kinds, sharded, written, zstd};
use serde_json::json;
use simulated::{Manner, SimulatedStore};
use software::{counters, device, fail};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use zarrow::metadata::CodecMetadata;
use zarrow::store::remote::{FetchPolicy, RemoteAdapter};
use zarrow::store::{MemoryStore, Store};
use zarrow::{
    Array, ArrayBuilder, Error as ZarrError, Existing, Index, Number, OpenOptions, Selection, Values,
    create_array,
};
use zarrow_cuda::decompress::Done;
use zarrow_cuda::{DeviceTensor, Error, Result, Route, read};

/// One test at a time, since they count copied bytes, and inject failures.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    install();
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn manner(seed: u64) -> Manner {
    Manner {
        seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        changes: 0,
        restarts: 0,
        has_versions: true,
        has_sizes: true,
        lies: false,
        policy: FetchPolicy::default(),
    }
}

fn open(store: Arc<dyn zarrow::store::Store>) -> Array {
    zarrow::open_with(store, "", &OpenOptions::default()).unwrap().into_array().unwrap()
}

fn remote(versions: &[&BTreeMap<String, Vec<u8>>], manner: Manner) -> (Arc<SimulatedStore>, Array) {
    let values = versions[0].keys().map(|key| {
        (key.clone(), versions.iter().filter_map(|values| values.get(key).cloned()).collect::<Vec<_>>())
    });
    let store = SimulatedStore::new(values.collect(), manner);
    let array = open(Arc::new(RemoteAdapter::new(store.clone())));
    (store, array)
}

fn read_words(array: &Array, selection: &Selection, route: Route) -> Result<(Vec<u32>, Done)> {
    let (tensor, done) = read(&array.request(selection).unwrap(), device(0), None, route)?;
    Ok((words(&tensor.to_host()?), done))
}

fn words(tensor: &zarrow_array::SharedTensor) -> Vec<u32> {
    // SAFETY: the tensor is not written to.
    let bytes = unsafe { tensor.bytes() }.unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

fn expected(values: &BTreeMap<String, Vec<u8>>, selection: &Selection) -> Vec<u32> {
    let array = open(Arc::new(MemoryStore::new(values.clone()).unwrap()));
    words(&array.read(selection).unwrap().into_tensor().unwrap().into_shared().unwrap())
}

/// The kinds that the device decompresses, and variants of them.
fn compressed() -> Vec<Kind> {
    let blosc = json!({"name": "blosc", "configuration": {
        "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 256}});
    let lz4 = json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}});
    let kind = |name, chunks, codecs| Kind { name, data_type: "uint32", chunks, codecs };
    let checked = json!([bytes(), zstd(), {"name": "crc32c"}]);
    let mut all: Vec<Kind> = kinds()
        .into_iter()
        .filter(|kind| ["zstd", "transposed, compressed", "sharded", "index first"].contains(&kind.name))
        .collect();
    all.extend([
        kind("zstd, crc32c", [16, 12], checked.clone()),
        kind("sharded zstd, crc32c", [32, 24], sharded([8, 6], &checked, "end")),
        kind("blosc", [16, 12], json!([bytes(), blosc])),
        kind("sharded blosc", [32, 24], sharded([8, 6], &json!([bytes(), blosc]), "end")),
        kind("lz4", [16, 12], json!([bytes(), lz4])),
    ]);
    all
}

#[test]
fn each_stored_byte_is_copied_once_and_none_back() {
    let _alone = alone();
    let all = Selection::all(&SHAPE);
    for kind in compressed() {
        let values = written(&kind, 0);
        let (store, array) = remote(&[&values], manner(3));
        let stored: usize =
            values.iter().filter(|(key, _)| *key != "zarr.json").map(|(_, value)| value.len()).sum();
        let before = counters();
        let request = array.request(&all).unwrap();
        let (tensor, done) = read(&request, device(0), None, Route::Device).unwrap();
        let after = counters();
        assert_eq!((done.on_host, done.failed_frames, done.is_replaced), (0, 0, false), "{}", kind.name);
        assert!(done.landed == done.on_device && done.landed >= 15, "{}: {done:?}", kind.name);
        let crossed = after.to_device_pinned - before.to_device_pinned;
        // The lists of a frame and of its boxes.
        let lists = 400 * (done.on_device * 8 + done.filled);
        assert!(crossed <= stored as u64 + lists, "{}: {crossed} of {stored}", kind.name);
        assert_eq!(after.to_device_pageable, before.to_device_pageable, "{}", kind.name);
        // Twelve result bytes per frame.
        assert!(after.to_host - before.to_host <= 12 * 8 * done.on_device, "{}", kind.name);
        assert_eq!(words(&tensor.to_host().unwrap()), expected(&values, &all), "{}", kind.name);
        store.settle();
    }
}

/// Returns the values of an array in memory.
fn dumped(store: &MemoryStore) -> BTreeMap<String, Vec<u8>> {
    let (mut values, mut keys) = (BTreeMap::new(), vec![String::new()]);
    while let Some(prefix) = keys.pop() {
        for name in store.list(&prefix).unwrap() {
            let key = zarrow::store::join(&prefix, &name);
            match store.get(&key, u64::MAX).unwrap() {
                Some(value) => drop(values.insert(key, value)),
                None => keys.push(key),
            }
        }
    }
    values
}

/// Bodies of shards with inner chunks in batches of several threads.
#[test]
fn a_body_with_many_inner_chunks_is_copied_once() {
    let _alone = alone();
    let shape = [6 << 10, 1 << 10];
    let codec =
        |settings: serde_json::Value| CodecMetadata::new("zstd", settings.as_object().unwrap().clone());
    let metadata = ArrayBuilder::new(shape, Number::UInt32)
        .chunk_shape([128, 128])
        .shard_shape([1 << 10, 1 << 10])
        .compressors([codec(json!({"level": 1, "checksum": false}))])
        .build()
        .unwrap();
    let store = Arc::new(MemoryStore::default());
    let array =
        create_array(Arc::clone(&store) as _, "", metadata, Existing::Refuse, &OpenOptions::default());
    // 24 MiB of incompressible words.
    let elements: Vec<u32> = (0..shape[0] * shape[1])
        .map(|at| (at as u32).wrapping_mul(2_654_435_761).rotate_left(at as u32 % 31) ^ at as u32)
        .collect();
    array.unwrap().write(.., &Values::slice(&elements, &shape).unwrap()).unwrap();
    let values = dumped(&store);
    let stored: usize = values.values().map(Vec::len).sum();
    zarrow::set_num_threads(4);
    let (store, array) = remote(&[&values], manner(8));
    let before = counters();
    let all = Selection::all(&shape);
    let (tensor, done) = read(&array.request(&all).unwrap(), device(0), None, Route::Device).unwrap();
    let after = counters();
    zarrow::set_num_threads(0);
    assert_eq!((done.on_device, done.landed, done.failed_frames), (384, 384, 0));
    let crossed = after.to_device_pinned - before.to_device_pinned;
    assert!(crossed < stored as u64 + (1 << 20), "{crossed} of {stored}");
    assert_eq!(words(&tensor.to_host().unwrap()), elements);
    store.settle();
}

/// If chunks read to a slot turn out to need the host's decoder, only their elements are copied.
#[test]
fn chunks_decoded_by_the_host_are_copied_as_elements() {
    let _alone = alone();
    let blosc = json!({"cname": "blosclz", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0});
    let shape = [1 << 10, 1 << 10];
    let metadata = ArrayBuilder::new(shape, Number::UInt32)
        .chunk_shape([128, 128])
        .compressors([CodecMetadata::new("blosc", blosc.as_object().unwrap().clone())])
        .build()
        .unwrap();
    let store = Arc::new(MemoryStore::default());
    let array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    // One byte of four is constant, so that they are compressible.
    let elements: Vec<u32> = (0..1 << 20).map(|at: u32| at.wrapping_mul(2_654_435_761) >> 8).collect();
    array.write(.., &Values::slice(&elements, &shape).unwrap()).unwrap();
    let before = counters();
    let (found, done) = read_words(&array, &Selection::all(&shape), Route::Device).unwrap();
    let crossed = counters().to_device_pinned - before.to_device_pinned;
    assert_eq!((done.on_device, done.on_host), (0, 64));
    assert!(crossed < (4 << 20) + (256 << 10), "{crossed}");
    assert_eq!(found, elements);
}

/// Chunks that the host decoded and cached before are copied as elements, and not decompressed again.
#[test]
fn cached_chunks_are_copied_as_elements() {
    let _alone = alone();
    let slice = |start, stop, step| Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) };
    let some = Selection::new(&SHAPE, &[slice(3, 41, 2), slice(40, 2, -3)]).unwrap();
    for kind in compressed() {
        let values = written(&kind, 0);
        let (store, _) = remote(&[&values], manner(5));
        let options = OpenOptions::default().cache_nbytes(1 << 20);
        let cached = zarrow::open_with(Arc::new(RemoteAdapter::new(store.clone())), "", &options);
        let cached = cached.unwrap().into_array().unwrap();
        cached.read(..).unwrap();
        for selection in [&Selection::all(&SHAPE), &some] {
            let (found, done) = read_words(&cached, selection, Route::Device).unwrap();
            assert_eq!(found, expected(&values, selection), "{}", kind.name);
            assert_eq!((done.on_device, done.landed), (0, 0), "{}", kind.name);
            assert!(done.on_host > 0, "{}", kind.name);
        }
        store.settle();
    }
}

#[test]
fn raw_chunks_are_copied_as_elements() {
    let _alone = alone();
    let all = Selection::all(&SHAPE);
    for kind in kinds().into_iter().filter(|kind| ["raw", "rows", "sharded raw"].contains(&kind.name)) {
        let values = written(&kind, 0);
        let (store, array) = remote(&[&values], manner(4));
        let before = counters();
        let (tensor, _) = read(&array.request(&all).unwrap(), device(0), None, Route::Host).unwrap();
        let after = counters();
        assert_eq!(after.to_device_pinned - before.to_device_pinned, SHAPE[0] * SHAPE[1] * 4);
        assert_eq!((after.to_device_pageable, after.to_host), (before.to_device_pageable, before.to_host));
        assert_eq!(words(&tensor.to_host().unwrap()), expected(&values, &all), "{}", kind.name);
        store.settle();
    }
}

#[test]
fn selections_equal_those_of_the_host_for_any_order_of_answers() {
    let _alone = alone();
    let slice = |start, stop, step| Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) };
    let selections = [
        Selection::all(&SHAPE),
        Selection::new(&SHAPE, &[slice(3, 41, 2), slice(40, 2, -3)]).unwrap(),
        Selection::new(&SHAPE, &[Index::At(17)]).unwrap(),
        Selection::new(&SHAPE, &[slice(9, 14, 1), slice(0, 6, 1)]).unwrap(),
    ];
    let mut seed = 0;
    for kind in compressed() {
        let values = written(&kind, 0);
        for selection in &selections {
            let expected = expected(&values, selection);
            for cut in [100, 1 << 20] {
                seed += 1;
                let policy = FetchPolicy {
                    requests: 1 + seed as usize % 7,
                    split_nbytes: cut,
                    has_suffix: seed % 4 > 0,
                    ..FetchPolicy::default()
                };
                let manner = Manner {
                    restarts: 7 * (seed % 2),
                    has_sizes: seed % 5 > 0 || !["zstd", "blosc", "lz4"].contains(&kind.name),
                    has_versions: seed % 3 > 0,
                    policy,
                    ..manner(seed)
                };
                let (store, array) = remote(&[&values], manner);
                let (found, done) = read_words(&array, selection, Route::Device).unwrap();
                assert_eq!(found, expected, "{}, seed {seed}", kind.name);
                assert_eq!((done.on_host, done.failed_frames), (0, 0), "{}, seed {seed}", kind.name);
                store.settle();
            }
        }
    }
}

/// Each object has a single version in the end, because a read that was already partly placed restarts on the host.
#[test]
fn replaced_values_have_a_single_version() {
    let _alone = alone();
    let (all, mut again) = (Selection::all(&SHAPE), 0);
    for kind in
        compressed().into_iter().filter(|kind| kind.name.starts_with("sharded") || kind.name == "zstd")
    {
        let (old, new) = (written(&kind, 0), written(&kind, 1));
        for seed in 0..40 {
            let policy = FetchPolicy { split_nbytes: 300, merged_nbytes: 300, ..FetchPolicy::default() };
            let (store, array) = remote(&[&old, &new], Manner { changes: 40, policy, ..manner(seed) });
            // Unwritten elements would be visible.
            let out = DeviceTensor::empty(device(0), &SHAPE, Number::UInt32.into()).unwrap();
            out.fill(&u32::MAX.to_ne_bytes()).unwrap();
            let read = read(&array.request(&all).unwrap(), device(0), Some(&out), Route::Device);
            let (found, done) = (words(&out.to_host().unwrap()), read.unwrap().1);
            store.settle();
            assert!(!found.contains(&u32::MAX), "{}, seed {seed}", kind.name);
            // A restarted read has not decompressed anything on the device.
            again += u64::from(done.on_device == 0);
            let mut versions = BTreeMap::new();
            for (at, element) in found.into_iter().enumerate().filter(|(_, element)| *element != 7) {
                let (row, column) = (at as u64 / SHAPE[1], at as u64 % SHAPE[1]);
                let chunk = (row / kind.chunks[0], column / kind.chunks[1]);
                let version = *versions.entry(chunk).or_insert(element % 2);
                assert_eq!(version, element % 2, "{}, seed {seed}, chunk {chunk:?}", kind.name);
            }
        }
    }
    assert!(again > 5, "{again} reads restarted");
}

#[test]
fn truncated_and_missing_objects_give_the_hosts_result() {
    let _alone = alone();
    let all = Selection::all(&SHAPE);
    for kind in compressed() {
        let values = written(&kind, 0);
        let key = values.keys().find(|key| key.starts_with("c/")).unwrap().clone();
        for change in [0, 3, 40] {
            let mut changed = values.clone();
            match change {
                0 => drop(changed.remove(&key)),
                nbytes => changed.get_mut(&key).unwrap().truncate(nbytes),
            }
            let (store, array) = remote(&[&changed], manner(change as u64 + 1));
            let local = open(Arc::new(MemoryStore::new(changed.clone()).unwrap()));
            match (read_words(&array, &all, Route::Device), local.read(&all)) {
                (Ok((found, _)), Ok(_)) => assert_eq!(found, expected(&changed, &all), "{}", kind.name),
                (Err(Error::Zarr(found)), Err(host)) => assert_eq!(
                    std::mem::discriminant(found.kind()),
                    std::mem::discriminant(host.kind()),
                    "{}: {found}, {host}",
                    kind.name
                ),
                (found, host) => panic!("{}: {found:?}, {host:?}", kind.name),
            }
            store.settle();
        }
    }
}

#[test]
fn driver_failures_end_the_read_or_cost_a_copy() {
    let _alone = alone();
    let all = Selection::all(&SHAPE);
    let kind = compressed().into_iter().find(|kind| kind.name == "sharded").unwrap();
    let values = written(&kind, 0);
    let expected = expected(&values, &all);
    let (mut failed, mut whole) = (0, 0);
    for function in [
        "cuMemHostAlloc", "cuMemAllocFromPoolAsync", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventQuery",
        "cuStreamWaitEvent", "cuCtxPushCurrent_v2",
    ] {
        for call in 1..12 {
            // Frees all cached memory, so that pinning is needed.
            device(0).release_memory().unwrap();
            let (store, array) = remote(&[&values], manner(call));
            fail(&format!("{function}:{call}:801"));
            let outcome = read_words(&array, &all, Route::Device);
            fail("");
            store.settle();
            match outcome {
                Ok((found, _)) => {
                    whole += 1;
                    assert_eq!(found, expected, "{function}:{call}");
                }
                Err(Error::Driver { .. } | Error::OutOfMemory { .. }) => failed += 1,
                Err(error) => panic!("{function}:{call}: {error}"),
            }
            let (found, _) = read_words(&array, &all, Route::Device).unwrap();
            assert_eq!(found, expected, "after {function}:{call}");
        }
    }
    assert!(failed > 10 && whole > 10, "{failed} failed, {whole} whole");
}

#[test]
fn cancelled_reads_leave_nothing_behind() {
    let _alone = alone();
    let all = Selection::all(&SHAPE);
    let kind = compressed().into_iter().find(|kind| kind.name == "sharded").unwrap();
    let values = written(&kind, 0);
    for stop in 0..40u64 {
        let (store, array) = remote(&[&values], manner(stop));
        let cancel = || store.events() >= stop * 3;
        let request = array.request(&all).unwrap().cancel(&cancel);
        match read(&request, device(0), None, Route::Device) {
            Ok((tensor, _)) => assert_eq!(words(&tensor.to_host().unwrap()), expected(&values, &all)),
            Err(Error::Zarr(error)) => assert!(is_interrupted(&error), "{error}"),
            Err(error) => panic!("{error}"),
        }
        store.settle();
    }
    device(0).synchronize().unwrap();
    device(0).release_memory().unwrap();
    assert_eq!(device(0).reserved_nbytes().unwrap(), 0);
    let (_, array) = remote(&[&values], manner(1));
    assert_eq!(read_words(&array, &all, Route::Device).unwrap().0, expected(&values, &all));
}

fn is_interrupted(error: &ZarrError) -> bool {
    matches!(error.kind(), zarrow::ErrorKind::Interrupted)
}
