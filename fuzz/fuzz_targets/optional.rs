//! The bytes of one chunk of optional elements: numbers and strings, at depths one and two.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use zarrow_fuzz::{array, metadata, read};

/// Returns the codec of optional elements, nested `depth` times.
fn optional(depth: usize, mask: &Value, data: &Value) -> Value {
    (0..depth).fold(data.clone(), |codecs, _| {
        json!([{"name": "zarrs.optional", "configuration": {"mask_codecs": mask, "data_codecs": codecs}}])
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((number, chunk)) = data.split_first() else { return };
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let packbits = json!([{"name": "packbits", "configuration": {"padding_encoding": "first_byte"}}]);
    let (plain, utf8) = (json!([{"name": "bytes"}]), json!([{"name": "vlen-utf8"}]));
    // In the order of `seeds.py`.
    let (name, depth, codecs) = match number % 7 {
        0 => ("int32", 1, optional(1, &plain, &json!([bytes]))),
        1 => ("int32", 1, optional(1, &packbits, &json!([bytes, zstd]))),
        2 => ("string", 1, optional(1, &plain, &utf8)),
        3 => ("string", 1, optional(1, &packbits, &json!([{"name": "vlen-utf8"}, zstd]))),
        4 => ("int32", 2, optional(2, &plain, &json!([bytes]))),
        5 => ("string", 2, optional(2, &packbits, &utf8)),
        _ => ("int32", 1, {
            let mut codecs = optional(1, &plain, &json!([bytes]));
            codecs.as_array_mut().into_iter().for_each(|codecs| codecs.push(zstd.clone()));
            codecs
        }),
    };
    let element = (0..depth).fold(
        json!({"name": name, "configuration": {}}),
        |element, _| json!({"name": "zarrs.optional", "configuration": element}),
    );
    let metadata = metadata(&element, &[5, 4], &[3, 4], &Value::Null, &codecs);
    read(&array(&metadata, chunk, usize::from(number / 128) << 16));
});
