//! The bytes of one chunk of fixed-size elements, through every decoder and some chains of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use zarrow_fuzz::{array, metadata, read};

/// The chains, in the order of `seeds.py`: element type and codecs.
fn chain(number: u8) -> (&'static str, Value) {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let zlib = json!({"name": "zlib", "configuration": {"level": 1}});
    let lz4 = json!({"name": "numcodecs.lz4", "configuration": {}});
    let bz2 = json!({"name": "numcodecs.bz2", "configuration": {"level": 1}});
    let crc32c = json!({"name": "crc32c"});
    let shuffle = json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}});
    let packbits =
        |padding: &str| json!({"name": "packbits", "configuration": {"padding_encoding": padding}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
    let numcodecs = |id: &str, configuration: Value| json!({"name": format!("numcodecs.{id}"), "configuration": configuration});
    match number % 26 {
        0 => ("int32", json!([bytes])),
        1 => ("int32", json!([bytes, zstd])),
        2 => ("int32", json!([bytes, gzip])),
        3 => ("int32", json!([bytes, zlib])),
        4 => ("int32", json!([bytes, blosc])),
        5 => ("int32", json!([bytes, lz4])),
        6 => ("int32", json!([bytes, bz2])),
        7 => ("int32", json!([bytes, crc32c])),
        8 => ("bool", json!([packbits("none")])),
        9 => ("bool", json!([packbits("first_byte"), zstd])),
        10 => ("int32", json!([transpose, big, lz4])),
        11 => ("int32", json!([bytes, shuffle, zlib])),
        12 => ("int32", json!([bytes, lz4, zstd])),
        13 => ("int32", json!([transpose, bytes, gzip, blosc])),
        14 => ("int32", json!([bytes, bz2, bz2])),
        15 => ("int32", json!([bytes, {"name": "numcodecs.fletcher32"}])),
        16 => ("int32", json!([bytes, {"name": "numcodecs.adler32"}])),
        17 => ("int32", json!([bytes, numcodecs("lzma", json!({}))])),
        18 => ("int32", json!([bytes, numcodecs("lzma", json!({"format": 2}))])),
        19 => {
            let filters = json!([{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]);
            ("int32", json!([bytes, numcodecs("lzma", json!({"format": 3, "filters": filters}))]))
        }
        20 => ("int32", json!([bytes, numcodecs("base64", json!({}))])),
        21 => ("int32", json!([bytes, numcodecs("crc32", json!({}))])),
        22 => ("int32", json!([bytes, numcodecs("jenkins_lookup3", json!({"initval": 7}))])),
        23 => ("int32", json!([bytes, numcodecs("crc32c", json!({"location": "start"}))])),
        24 => ("int32", json!([bytes, shuffle, numcodecs("lzma", json!({"format": 0})), crc32c])),
        _ => ("float32", json!([{"name": "bitround", "configuration": {"keepbits": 3}}, bytes, zstd])),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((number, chunk)) = data.split_first() else { return };
    let (data_type, codecs) = chain(*number);
    let fill = if data_type == "bool" { json!(false) } else { json!(0) };
    let metadata = metadata(&json!(data_type), &[40, 24], &[20, 24], &fill, &codecs);
    read(&array(&metadata, chunk, usize::from(number / 128) << 16));
});
