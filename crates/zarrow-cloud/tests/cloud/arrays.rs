//! Arrays of every layout and chain, and their copies on the server.

use crate::server::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use zarrow::store::remote::RemoteAdapter;
use zarrow::store::{MemoryStore, Store, join};
use zarrow::{Array, Index, Node, Selection, Values};
use zarrow_array::{Buffer, DataType, DecodedArray, Variable};
use zarrow_cloud::{CloudStore, StorageOptions, TransportPolicy};

pub const SHAPE: [u64; 2] = [60, 48];

/// Returns a policy with short times, since the server is near.
pub fn policy() -> TransportPolicy {
    let mut policy = TransportPolicy::default();
    policy.silence = std::time::Duration::from_millis(250);
    policy.first_pause = std::time::Duration::from_millis(1);
    policy.longest_pause = std::time::Duration::from_millis(20);
    policy
}

/// Returns the options of S3 on the server.
pub fn s3_options(server: &Server) -> StorageOptions {
    let options = json!({
        "key": "AKIDEXAMPLE", "secret": "very-secret-indeed", "endpoint_url": format!("http://{}", server.address),
        "region": "us-east-1",
    });
    StorageOptions::from_json(&options.to_string()).unwrap()
}

/// Opens the store at `path` of the server, by S3 or by plain HTTP.
pub fn store(server: &Server, path: &str, by_s3: bool) -> CloudStore {
    let store = if by_s3 {
        CloudStore::new(&format!("s3://{path}"), s3_options(server))
    } else {
        CloudStore::new(&server.url(path), StorageOptions::default())
    };
    store.unwrap().with_policy(policy())
}

/// As [`policy`], for a test that counts requests: no request is late on a busy machine.
pub fn patient() -> TransportPolicy {
    let mut policy = policy();
    policy.hedging = false;
    policy.silence = std::time::Duration::from_secs(60);
    policy
}

/// Opens the store like [`store`], without hedged requests, for tests that count requests.
pub fn patient_store(server: &Server, path: &str) -> CloudStore {
    store(server, path, true).with_policy(patient())
}

/// As [`adapter`] by S3, for a test that counts requests.
pub fn counted(server: &Server, path: &str) -> Arc<RemoteAdapter> {
    Arc::new(RemoteAdapter::new(Arc::new(patient_store(server, path))))
}

pub fn adapter(server: &Server, path: &str, by_s3: bool) -> Arc<RemoteAdapter> {
    Arc::new(RemoteAdapter::new(Arc::new(store(server, path, by_s3))))
}

pub fn open_array(store: Arc<dyn Store>) -> zarrow::Result<Array> {
    match zarrow::open(store, "")? {
        Node::Array(array) => Ok(array),
        Node::Group(_) => panic!("an array was written"),
    }
}

fn metadata(data_type: &str, chunks: [u64; 2], codecs: &Value) -> Vec<u8> {
    let fill = if data_type == "string" { json!("") } else { json!(7) };
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": data_type, "fill_value": fill,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunks } },
        "chunk_key_encoding": { "name": "default" }, "codecs": codecs,
    });
    serde_json::to_vec(&document).unwrap()
}

/// Returns every layout and chain with a distinct way of fetching: a name, and the array in memory.
pub fn layouts() -> Vec<(&'static str, Arc<MemoryStore>)> {
    let bytes = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let zstd = json!({ "name": "zstd", "configuration": { "level": 1, "checksum": true } });
    let gzip = json!({ "name": "gzip", "configuration": { "level": 1 } });
    let crc = json!({ "name": "crc32c" });
    let transpose = json!({ "name": "transpose", "configuration": { "order": [1, 0] } });
    let shard = |inner: [u64; 2], codecs: Value, place: &str| {
        json!({ "name": "sharding_indexed", "configuration": {
            "chunk_shape": inner, "codecs": codecs, "index_location": place,
            "index_codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" }],
        } })
    };
    let numbers = [
        ("raw", [10, 48], json!([bytes])),
        ("raw, small chunks", [7, 11], json!([bytes])),
        ("zstd", [20, 16], json!([bytes, zstd])),
        ("gzip and checksum", [15, 12], json!([bytes, gzip, crc])),
        ("transposed", [20, 16], json!([transpose, bytes, zstd])),
        ("shards", [30, 24], json!([shard([5, 8], json!([bytes]), "end")])),
        ("zstd in shards", [60, 48], json!([shard([6, 6], json!([bytes, zstd]), "end")])),
        ("index at the start", [30, 48], json!([shard([6, 12], json!([bytes, crc]), "start")])),
        (
            "shards in shards",
            [30, 24],
            json!([shard([15, 12], json!([shard([5, 4], json!([bytes]), "end")]), "end")]),
        ),
        ("shards as a whole", [30, 24], json!([shard([5, 8], json!([bytes]), "end"), gzip])),
    ];
    let mut all = Vec::new();
    let elements: Vec<u32> = (0..SHAPE[0] * SHAPE[1]).map(|at| ((at * 2_654_435_761) >> 7) as u32).collect();
    for (name, chunks, codecs) in numbers {
        let store = Arc::new(MemoryStore::new([("zarr.json", metadata("uint32", chunks, &codecs))]).unwrap());
        let array = open_array(Arc::clone(&store) as _).unwrap();
        // Some chunks are missing.
        let rows = SHAPE[0] - 13;
        array
            .write(
                (0..rows as i64, ..),
                Values::slice(&elements[..(rows * SHAPE[1]) as usize], &[rows, SHAPE[1]]).unwrap(),
            )
            .unwrap();
        all.push((name, store));
    }
    let texts: Vec<String> =
        (0..SHAPE[0] * SHAPE[1]).map(|at| "x".repeat((at % 17) as usize) + &at.to_string()).collect();
    let store = json!([{ "name": "vlen-utf8" }, zstd]);
    let store = Arc::new(MemoryStore::new([("zarr.json", metadata("string", [20, 16], &store))]).unwrap());
    let array = open_array(Arc::clone(&store) as _).unwrap();
    let mut offsets = vec![0_i64];
    offsets.extend(texts.iter().scan(0, |end, text| {
        *end += text.len() as i64;
        Some(*end)
    }));
    let (offsets, data) = (Buffer::from(offsets), Buffer::from(texts.concat().into_bytes()));
    let variable = Variable::new(offsets, data, SHAPE.to_vec(), DataType::String).unwrap();
    array.write((.., ..), Values::variable(&variable)).unwrap();
    all.push(("strings", store));
    all
}

/// Returns every key of a store in memory.
pub fn keys(store: &dyn Store, prefix: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for name in store.list(prefix).unwrap() {
        let key = join(prefix, &name);
        match store.get(&key, u64::MAX).unwrap() {
            Some(_) => keys.push(key),
            None => keys.extend(self::keys(store, &key)),
        }
    }
    keys
}

/// Copies a store to `path` of the server.
pub fn upload(server: &Server, path: &str, store: &dyn Store) {
    for key in keys(store, "") {
        let bytes = store.get(&key, u64::MAX).unwrap().unwrap();
        server.objects(|objects| objects.put(&format!("{path}/{key}"), bytes));
    }
}

fn slice(start: i64, stop: i64, step: i64) -> Index {
    Index::Slice { start: Some(start), stop: Some(stop), step: Some(step) }
}

pub fn selections() -> Vec<Selection> {
    [
        vec![],
        vec![slice(3, 57, 1), slice(5, 40, 1)],
        vec![slice(0, 60, 13), slice(0, 48, 7)],
        vec![Index::At(17)],
        vec![Index::Ellipsis, Index::At(-3)],
        vec![slice(58, 4, -9)],
    ]
    .map(|indices| Selection::new(&SHAPE, &indices).unwrap())
    .into()
}

/// Returns the result of a read in a comparable form.
pub fn read(array: &Array, selection: &Selection) -> zarrow::Result<Vec<u8>> {
    Ok(match array.read(selection)? {
        DecodedArray::Tensor(tensor) => tensor.bytes().to_vec(),
        DecodedArray::Variable(texts) => {
            let mut all = Vec::new();
            for at in 0..texts.size() {
                all.extend_from_slice(texts.element(at).unwrap());
                all.push(0);
            }
            all
        }
        _ => panic!("neither numbers nor strings"),
    })
}
