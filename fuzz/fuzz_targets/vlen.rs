//! The bytes of one chunk of strings or bytes, plain and compressed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use zarrow_fuzz::{array, metadata, read};

fuzz_target!(|data: &[u8]| {
    let Some((number, chunk)) = data.split_first() else { return };
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let lz4 = json!({"name": "numcodecs.lz4", "configuration": {}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
    let utf8 = json!({"name": "vlen-utf8"});
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    // In the order of `seeds.py`.
    let (data_type, codecs) = match number % 8 {
        0 => ("string", json!([utf8])),
        1 => ("bytes", json!([{"name": "vlen-bytes"}])),
        2 => ("string", json!([utf8, zstd])),
        3 => ("string", json!([utf8, gzip])),
        4 => ("string", json!([utf8, lz4])),
        5 => ("string", json!([utf8, blosc])),
        6 => ("string", json!([transpose, utf8])),
        _ => ("string", json!([utf8, {"name": "crc32c"}])),
    };
    let fill = if data_type == "string" { json!("é") } else { json!("") };
    let metadata = metadata(&json!(data_type), &[5, 4], &[3, 4], &fill, &codecs);
    read(&array(&metadata, chunk, usize::from(number / 128) << 16));
});
