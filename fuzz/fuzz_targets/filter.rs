//! The bytes of one chunk with a filter, pco or zarrs' `vlen`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use zarrow_fuzz::{array, metadata, read};

/// The chains, in the order of `seeds.py`: element type and codecs.
fn chain(number: u8) -> (&'static str, Value) {
    let named = |name: &str, configuration: Value| json!({"name": name, "configuration": configuration});
    let numcodecs = |id: &str, configuration: Value| named(&format!("numcodecs.{id}"), configuration);
    let bytes = named("bytes", json!({"endian": "little"}));
    let byte = json!({"name": "bytes"});
    let vlen = |index: &str, location: &str| {
        let configuration = json!({"data_codecs": [byte], "index_codecs": [bytes], "index_data_type": index,
            "index_location": location});
        json!([named("zarrs.vlen", configuration)])
    };
    match number % 8 {
        0 => ("int32", json!([numcodecs("delta", json!({"dtype": "<i4", "astype": "<i2"})), bytes])),
        1 => ("bool", json!([numcodecs("packbits", json!({})), byte])),
        2 => ("int32", json!([named("scale_offset", json!({"scale": 3})), bytes])),
        3 => ("float64", json!([named("cast_value", json!({"data_type": "int16"})), bytes])),
        4 => ("string", json!([numcodecs("categorize", json!({"labels": ["a", "longer"]})), byte])),
        5 => ("int32", json!([numcodecs("pcodec", json!({}))])),
        6 => ("string", vlen("uint32", "end")),
        _ => ("string", vlen("uint64", "start")),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((number, chunk)) = data.split_first() else { return };
    let (data_type, codecs) = chain(*number);
    let fill = match data_type {
        "bool" => json!(false),
        "string" => json!(""),
        _ => json!(0),
    };
    let metadata = metadata(&json!(data_type), &[40, 24], &[20, 24], &fill, &codecs);
    read(&array(&metadata, chunk, usize::from(number / 128) << 16));
});
