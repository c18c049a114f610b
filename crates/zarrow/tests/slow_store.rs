//! Fetching overlaps decoding: reads from a server on the loopback interface that counts concurrent requests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]
#![allow(dead_code, reason = "the example uses the rest of the modules that both share")]

#[path = "../examples/slow_store/message.rs"]
mod message;
#[path = "../examples/slow_store/server.rs"]
mod server;
#[path = "../examples/slow_store/store.rs"]
mod store;

use serde_json::{Value, json};
use server::{Manner, Server};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::HttpStore;
use zarrow::store::FilesystemStore as Files;
use zarrow::{Array, ErrorKind, Index, Node, Selection};
use zarrow_array::DecodedArray;
use zarrs::array::ArrayMetadata;
use zarrs_filesystem::FilesystemStore;

const SHAPE: [u64; 2] = [96, 64];

/// The codecs of chunks, or of the inner chunks of shards.
fn codecs(inner: Option<[u64; 2]>, compressed: bool) -> Value {
    let mut codecs = vec![json!({ "name": "bytes", "configuration": { "endian": "little" } })];
    if compressed {
        codecs.push(json!({ "name": "zstd", "configuration": { "level": 1, "checksum": false } }));
    }
    let Some(chunk_shape) = inner else { return json!(codecs) };
    let index_codecs =
        json!([{ "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" }]);
    let sharding = json!({ "chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": index_codecs });
    json!([{ "name": "sharding_indexed", "configuration": sharding }])
}

/// Writes an array of u32 by zarrs, but for its last rows of chunks.
fn write(folder: &Path, chunks: [u64; 2], codecs: &Value) {
    let metadata: ArrayMetadata = serde_json::from_value(json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": SHAPE,
        "data_type": "uint32",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunks } },
        "chunk_key_encoding": { "name": "default" },
        "fill_value": 7,
        "codecs": codecs,
    }))
    .unwrap();
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let array = zarrs::array::Array::new_with_metadata(store, "/", metadata).unwrap();
    array.store_metadata().unwrap();
    let rows = SHAPE[0] - chunks[0];
    let subset = zarrs::array::ArraySubset::new_with_ranges(&[0..rows, 0..SHAPE[1]]);
    let elements: Vec<u32> = (0..rows * SHAPE[1]).map(|at| ((at * 2_654_435_761) >> 7) as u32).collect();
    array.store_array_subset(&subset, elements).unwrap();
}

fn open(store: Arc<dyn zarrow::store::Store>) -> Array {
    let Node::Array(array) = zarrow::open(store, "").unwrap() else { panic!("an array was written") };
    array
}

fn read(array: &Array, indices: &[Index]) -> Vec<u8> {
    let selection = Selection::new(&SHAPE, indices).unwrap();
    match array.read(&selection).unwrap() {
        DecodedArray::Tensor(tensor) => tensor.bytes().to_vec(),
        _ => panic!("u32 decode to a tensor"),
    }
}

/// A store written to `parent/data`, its server, and the array opened through it.
struct Served {
    server: Server,
    remote: Array,
    local: Array,
    _folder: tempfile::TempDir,
}

fn served(chunks: [u64; 2], codecs: &Value, requests: usize, manner: Manner) -> Served {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("data"), chunks, codecs);
    let local = open(Arc::new(Files::open(folder.path().join("data")).unwrap()));
    let server = Server::start(folder.path().to_path_buf(), manner).unwrap();
    let remote = open(Arc::new(HttpStore::open(server.address, "data", requests)));
    Served { server, remote, local, _folder: folder }
}

fn slice(start: i64, stop: i64, step: i64) -> Index {
    Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) }
}

/// Every kind of chunk, by every kind of selection, has the same result as from files.
#[test]
fn results_are_those_of_the_files() {
    let kinds = [
        ([8, 8], codecs(None, false)),
        ([8, 64], codecs(None, true)),
        ([32, 32], codecs(Some([8, 4]), false)),
        ([32, 64], codecs(Some([4, 16]), true)),
        ([96, 64], codecs(Some([4, 16]), true)),
    ];
    let selections = [
        vec![],
        vec![slice(3, 77, 1), slice(5, 60, 1)],
        vec![slice(0, 96, 13), slice(0, 64, 7)],
        vec![Index::At(17)],
        vec![Index::Ellipsis, Index::At(-3)],
        vec![slice(90, 4, -9)],
    ];
    for (chunks, codecs) in kinds {
        let served = served(chunks, &codecs, 5, Manner::default());
        for indices in &selections {
            let expected = read(&served.local, indices);
            assert_eq!(read(&served.remote, indices), expected, "chunks {chunks:?}, {indices:?}");
            assert!(served.server.seen().most <= 5);
        }
    }
}

/// As many requests are in flight as the store allows, and never more, although one thread decodes.
#[test]
fn concurrent_requests_respect_the_stores_limit() {
    for (chunks, codecs) in
        [([8, 8], codecs(None, true)), ([8, 8], codecs(None, false)), ([16, 16], codecs(Some([4, 4]), true))]
    {
        let manner = Manner { gate: 11, ..Default::default() };
        let served = served(chunks, &codecs, 11, manner);
        let expected = read(&served.local, &[]);
        served.server.seen();
        assert_eq!(read(&served.remote, &[]), expected);
        assert_eq!(served.server.seen().most, 11);
    }
}

/// A chunk is one request, and so is a shard if most of it is selected; otherwise a shard takes one request for the index
/// and one for all adjacent inner chunks.
#[test]
fn neighbours_come_with_one_request() {
    let requests = |served: &Served, indices: &[Index]| {
        served.server.seen();
        assert_eq!(read(&served.remote, indices), read(&served.local, indices));
        served.server.seen().requests
    };
    let plain = served([8, 64], &codecs(None, true), 4, Manner::default());
    assert_eq!(requests(&plain, &[slice(0, 16, 1)]).len(), 2);
    let sharded = served([96, 64], &codecs(Some([4, 16]), true), 4, Manner::default());
    assert_eq!(requests(&sharded, &[]).len(), 1, "the shard is not stored");
    let sharded = served([48, 64], &codecs(Some([4, 16]), true), 4, Manner::default());
    let seen = requests(&sharded, &[slice(0, 20, 1)]);
    assert_eq!(seen.len(), 2, "{seen:?}");
    let sharded = served([48, 64], &codecs(Some([4, 16]), true), 4, Manner::default());
    let seen = requests(&sharded, &[slice(0, 48, 1)]);
    assert_eq!(seen.len(), 1, "{seen:?}");
    // The selected part of an uncompressed chunk comes with its first request.
    let raw = served([48, 64], &codecs(None, false), 4, Manner::default());
    let seen = requests(&raw, &[slice(3, 5, 1), slice(10, 20, 1)]);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].ends_with(&format!("bytes={}-{}", (3 * 64 + 10) * 4, (4 * 64 + 20) * 4 - 1)), "{seen:?}");
}

/// After an error no more requests are sent.
#[test]
fn an_error_stops_outstanding_requests() {
    let manner = Manner { broken: Some("c/0/0".into()), ..Default::default() };
    let served = served([2, 2], &codecs(None, true), 3, manner);
    let selection = Selection::all(&SHAPE);
    let error = served.remote.read(&selection).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
    assert_eq!(error.context().chunk.as_deref(), Some(&[0, 0][..]));
    // Of 1536 chunks.
    let requests = served.server.seen().requests.len();
    assert!(requests < 500, "{requests} requests were made");
}

/// An interrupted caller returns when the pending answers have arrived, while all threads wait for the store.
#[test]
fn an_interrupt_stops_outstanding_requests() {
    let manner = Manner { delay: Duration::from_millis(60), ..Default::default() };
    let served = served([2, 2], &codecs(None, true), 2, manner);
    let asked = AtomicBool::new(false);
    let interrupted = || asked.swap(true, Ordering::Relaxed);
    let error = served.remote.request(..).unwrap().cancel(&interrupted).read().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Interrupted), "{error}");
    assert!(served.server.seen().requests.len() < 100);
}

/// Several readers of one slow store have separate requests.
#[test]
fn many_readers_at_once() {
    let served = served([8, 8], &codecs(None, true), 4, Manner::default());
    let expected = read(&served.local, &[]);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(read(&served.remote, &[]), expected);
                }
            });
        }
    });
}

/// The requests of a batch overlap too, and items share their chunks' requests.
#[test]
fn a_batch_overlaps_too() {
    let manner = Manner { gate: 6, ..Default::default() };
    let served = served([8, 64], &codecs(None, true), 6, manner);
    let crop = |start| Selection::new(&SHAPE, &[slice(start, start + 20, 1)]).unwrap();
    let crops = [crop(0), crop(4), crop(30), crop(41)];
    let batch = |array: &Array| {
        let items: Vec<_> = crops.iter().map(|crop| array.request(crop).unwrap()).collect();
        match zarrow::read_many(&items).unwrap() {
            zarrow::Batch::Stacked(DecodedArray::Tensor(tensor)) => tensor.bytes().to_vec(),
            _ => panic!("equal shapes are stacked"),
        }
    };
    let expected = batch(&served.local);
    served.server.seen();
    assert_eq!(batch(&served.remote), expected);
    let seen = served.server.seen();
    assert_eq!(seen.most, 6);
    assert_eq!(seen.requests.len(), 8, "{:?}", seen.requests);
}
