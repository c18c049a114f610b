//! The arrays that the tests read: their kinds, their stored values, and their decoded elements.

use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use zarrow::store::{MemoryStore, Store};
use zarrow_array::{DecodedArray, Mask, Tensor};

/// The shape of all arrays here.
pub const SHAPE: [u64; 2] = [60, 44];

/// A kind of array: its chunks, and its codecs.
pub struct Kind {
    pub name: &'static str,
    pub data_type: &'static str,
    pub chunks: [u64; 2],
    pub codecs: Json,
}

pub fn bytes() -> Json {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

pub fn zstd() -> Json {
    json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}})
}

pub fn sharded(chunks: [u64; 2], codecs: &Json, location: &str) -> Json {
    sharded_by(chunks, codecs, location, &json!([bytes(), {"name": "crc32c"}]))
}

pub fn sharded_by(chunks: [u64; 2], codecs: &Json, location: &str, index_codecs: &Json) -> Json {
    let configuration = json!({
        "chunk_shape": chunks, "codecs": codecs, "index_codecs": index_codecs, "index_location": location,
    });
    json!([{"name": "sharding_indexed", "configuration": configuration}])
}

pub fn kinds() -> Vec<Kind> {
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let optional = |data: &Json| {
        let mask = json!([{"name": "packbits"}]);
        json!([{"name": "zarrs.optional", "configuration": {"mask_codecs": mask, "data_codecs": data}}])
    };
    let kind = |name, data_type, chunks, codecs| Kind { name, data_type, chunks, codecs };
    let raw = json!([bytes()]);
    let compressed = json!([bytes(), zstd()]);
    vec![
        kind("raw", "uint32", [16, 12], raw.clone()),
        kind("zstd", "uint32", [16, 12], compressed.clone()),
        kind("one chunk", "uint32", [60, 44], raw.clone()),
        // Whole rows of the array, which go straight to the result.
        kind("rows", "uint32", [16, 44], raw.clone()),
        kind("sharded rows", "uint32", [32, 44], sharded([8, 44], &raw, "end")),
        kind("transposed", "uint32", [16, 12], json!([transpose, bytes()])),
        kind("transposed, compressed", "uint32", [16, 12], json!([transpose, bytes(), zstd()])),
        kind("sharded raw", "uint32", [32, 24], sharded([8, 6], &raw, "end")),
        kind("sharded", "uint32", [32, 24], sharded([8, 6], &compressed, "end")),
        kind("index first", "uint32", [32, 24], sharded([8, 6], &compressed, "start")),
        kind("sharded, transposed", "uint32", [32, 24], sharded([8, 6], &json!([transpose, bytes()]), "end")),
        kind(
            "shards in shards",
            "uint32",
            [32, 24],
            sharded([16, 12], &sharded([8, 6], &compressed, "end"), "end"),
        ),
        kind("shards, compressed", "uint32", [32, 24], {
            let mut codecs = sharded([8, 6], &raw, "end");
            codecs.as_array_mut().unwrap().push(zstd());
            codecs
        }),
        kind("optional", "optional", [16, 12], optional(&compressed)),
        kind("optional raw", "optional", [16, 12], optional(&raw)),
        kind("strings", "string", [16, 12], json!([{"name": "vlen-utf8"}, zstd()])),
        kind("sharded strings", "string", [32, 24], sharded([8, 6], &json!([{"name": "vlen-utf8"}]), "end")),
    ]
}

/// Returns documents and chunks of an array of this kind with elements derived from `salt`; some chunks are missing.
pub fn written(kind: &Kind, salt: u64) -> BTreeMap<String, Vec<u8>> {
    let (data_type, fill_value) = match kind.data_type {
        "optional" => (
            json!({"name": "zarrs.optional", "configuration": {"name": "uint32", "configuration": {}}}),
            json!(null),
        ),
        "string" => (json!("string"), json!("none")),
        other => (json!(other), json!(7)),
    };
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": data_type, "fill_value": fill_value,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": kind.chunks}},
        "chunk_key_encoding": {"name": "default"}, "codecs": kind.codecs,
    });
    let store = Arc::new(MemoryStore::new([("zarr.json", document.to_string().into_bytes())]).unwrap());
    let array = zarrow::open(Arc::clone(&store) as Arc<dyn Store>, "").unwrap().into_array().unwrap();
    let count = SHAPE.iter().product::<u64>();
    // Elements identify their version, and the first rows and columns of chunks stay equal.
    let element = |at: u64| (at * 2_654_435_761 % 100_003) as u32 * 2 + salt as u32;
    let is_left_out = |at: u64| (at / SHAPE[1]) / 16 == 1 && (at % SHAPE[1]) / 12 == 2;
    let selection = (.., ..);
    match kind.data_type {
        "string" => {
            let texts: Vec<String> = (0..count)
                .map(|at| {
                    if is_left_out(at) {
                        "none".into()
                    } else {
                        format!("{}é{}", element(at), "x".repeat((at % 9) as usize))
                    }
                })
                .collect();
            array.write(selection, &strings(&texts)).unwrap();
        }
        kind_name => {
            let elements: Vec<u32> =
                (0..count).map(|at| if is_left_out(at) { 7 } else { element(at) }).collect();
            if kind_name == "optional" {
                let mask = (0..count).map(|at| u8::from(at % 5 == 0 || is_left_out(at))).collect::<Vec<u8>>();
                let tensor = Tensor::from_vec(elements, SHAPE.to_vec()).unwrap();
                let masked =
                    zarrow_array::MaskedTensor::new(tensor, Mask::new(vec![buffer(&mask)]).unwrap()).unwrap();
                array.write(selection, &DecodedArray::MaskedTensor(masked)).unwrap();
            } else {
                let values = zarrow::Values::slice(&elements, &SHAPE).unwrap();
                array.write(selection, &values).unwrap();
            }
        }
    }
    let mut keys = vec![String::new()];
    let mut values = BTreeMap::new();
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

pub fn buffer(bytes: &[u8]) -> zarrow_array::Buffer {
    zarrow_array::Buffer::copy_of(bytes).unwrap()
}

pub fn strings(texts: &[String]) -> DecodedArray {
    let mut offsets = vec![0i64];
    let mut data = Vec::new();
    for text in texts {
        data.extend_from_slice(text.as_bytes());
        offsets.push(data.len() as i64);
    }
    let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect();
    let variable = zarrow_array::Variable::new(
        buffer(&offsets),
        buffer(&data),
        SHAPE.to_vec(),
        zarrow_array::DataType::String,
    );
    DecodedArray::Variable(variable.unwrap())
}

/// Returns the elements of a decoded array in a comparable form.
pub fn dump(decoded: &DecodedArray) -> String {
    let text = |variable: &zarrow_array::Variable| {
        (0..variable.shape().iter().product::<u64>() as usize)
            .map(|at| String::from_utf8_lossy(variable.element(at).unwrap()).into_owned())
            .collect::<Vec<_>>()
    };
    match decoded {
        DecodedArray::Tensor(tensor) => format!("{:?} {:?}", tensor.shape(), tensor.bytes()),
        DecodedArray::MaskedTensor(masked) => {
            let missing = masked.mask().missing();
            let elements = masked.data().as_slice::<u32>().unwrap().iter().zip(missing);
            let shown: Vec<Option<u32>> =
                elements.map(|(element, missing)| (*missing == 0).then_some(*element)).collect();
            format!("{:?} {shown:?}", masked.data().shape())
        }
        DecodedArray::Variable(variable) => format!("{:?} {:?}", variable.shape(), text(variable)),
        DecodedArray::MaskedVariable(_) => panic!("no array here has one"),
    }
}
