//! The bytes of one shard: its index at either end, with and without a checksum, nested, compressed as a whole, and
//! with strings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use zarrow_fuzz::{array, metadata, read};

fn sharding(chunks: &[u64], codecs: &Value, location: &str, index_codecs: &Value) -> Value {
    json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunks, "codecs": codecs, "index_location": location, "index_codecs": index_codecs}})
}

/// The chains, in the order of `seeds.py`: element type and codecs.
fn chain(number: u8) -> (&'static str, Value) {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let utf8 = json!({"name": "vlen-utf8"});
    let crc32c = json!({"name": "crc32c"});
    let inner = json!([bytes, zstd]);
    match number % 8 {
        0 => ("int32", json!([sharding(&[4, 6], &inner, "end", &json!([bytes, crc32c]))])),
        1 => ("int32", json!([sharding(&[4, 6], &inner, "end", &json!([bytes]))])),
        2 => ("int32", json!([sharding(&[4, 6], &json!([bytes]), "start", &json!([big]))])),
        3 => ("int32", json!([sharding(&[4, 6], &json!([bytes]), "start", &json!([bytes])), zstd])),
        4 => {
            let nested = sharding(&[2, 6], &inner, "start", &json!([bytes]));
            ("int32", json!([sharding(&[4, 12], &json!([nested]), "end", &json!([bytes]))]))
        }
        5 => ("string", json!([sharding(&[4, 6], &json!([utf8, zstd]), "end", &json!([bytes]))])),
        6 => {
            let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
            ("int32", json!([transpose, sharding(&[6, 4], &inner, "end", &json!([bytes]))]))
        }
        _ => ("string", json!([sharding(&[4, 6], &json!([utf8]), "start", &json!([bytes])), crc32c])),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((number, shard)) = data.split_first() else { return };
    let (data_type, codecs) = chain(*number);
    let fill = if data_type == "string" { json!("é") } else { json!(7) };
    let metadata = metadata(&json!(data_type), &[16, 12], &[8, 12], &fill, &codecs);
    read(&array(&metadata, shard, usize::from(number / 128) << 16));
});
