//! The chains with a filter, and the codecs missing from this build of zarrs: zarrow encodes the valid chunk.

use crate::case::{Case, Element};
use serde_json::{Value, json};

/// Returns the cases of fixed and of variable size.
pub fn cases() -> Vec<Case> {
    let named = |name: &str, configuration: Value| json!({ "name": name, "configuration": configuration });
    let numcodecs = |id: &str, configuration: Value| named(&format!("numcodecs.{id}"), configuration);
    let little = named("bytes", json!({ "endian": "little" }));
    let (byte, turned) = (json!({ "name": "bytes" }), named("transpose", json!({ "order": [1, 0] })));
    let (zstd, crc32c) =
        (named("zstd", json!({ "level": 3, "checksum": false })), json!({ "name": "crc32c" }));
    let delta = numcodecs("delta", json!({ "dtype": "<i4", "astype": "<i8" }));
    let scaled =
        numcodecs("fixedscaleoffset", json!({ "offset": 3, "scale": 2, "dtype": "<i4", "astype": "<i2" }));
    let astype = numcodecs("astype", json!({ "encode_dtype": "<f8", "decode_dtype": "<i4" }));
    let cast = named("cast_value", json!({ "data_type": "int16" }));
    let scale_offset = named("scale_offset", json!({ "offset": 1, "scale": 3 }));
    let bits = numcodecs("packbits", json!({}));
    let pcodec = numcodecs("pcodec", json!({ "equal_pages_up_to": 200 }));
    let lookback = numcodecs("pcodec", json!({ "delta_spec": "try_lookback" }));
    let reshape = named("reshape", json!({ "shape": [8, 60] }));
    let vlen = |index: &str, location: &str, rest: &[Value]| {
        let codecs = |first: &Value| [std::slice::from_ref(first), rest].concat();
        named(
            "zarrs.vlen",
            json!({ "data_codecs": codecs(&byte), "index_codecs": codecs(&little),
                "index_data_type": index, "index_location": location }),
        )
    };
    let labels = json!({ "labels": ["a", "né", "日本語", "a longer string than the others"], "dtype": "|O" });
    let sharded = json!({ "chunk_shape": [5, 6], "codecs": [delta, little, zstd],
        "index_codecs": [little, crc32c], "index_location": "end" });
    let masked = json!({ "mask_codecs": [byte], "data_codecs": [delta, pcodec] });
    [
        (Element::Number, json!([delta, little]), vec![]),
        (Element::Number, json!([delta, little]), vec![zstd.clone(), crc32c.clone()]),
        (Element::Number, json!([turned, scaled, turned, little]), vec![zstd.clone()]),
        (Element::Number, json!([astype, pcodec]), vec![]),
        (Element::Number, json!([scale_offset, cast, little]), vec![]),
        (Element::Number, json!([reshape, turned, little]), vec![zstd.clone()]),
        (Element::Number, json!([pcodec]), vec![]),
        (Element::Number, json!([lookback]), vec![]),
        (Element::Number, json!([delta, pcodec]), vec![crc32c.clone()]),
        (Element::Number, json!([named("sharding_indexed", sharded)]), vec![]),
        (Element::Bool, json!([bits, byte]), vec![]),
        (Element::Bool, json!([bits, byte]), vec![zstd.clone()]),
        (Element::Optional(false, 1), json!([named("zarrs.optional", masked)]), vec![]),
        (Element::Text, json!([vlen("uint32", "end", &[])]), vec![]),
        (Element::Text, json!([vlen("uint64", "start", &[zstd])]), vec![]),
        (Element::Text, json!([{ "name": "zarrs.vlen_v2" }]), vec![crc32c]),
        (Element::Text, json!([numcodecs("categorize", labels), byte]), vec![]),
    ]
    .into_iter()
    .map(|(element, array_codecs, byte_codecs)| Case {
        layout: "filtered",
        element,
        array_codecs,
        byte_codecs,
    })
    .collect()
}
