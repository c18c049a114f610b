//! Normal form of codecs, accepted by every reader of version 3: an object of `name` and `configuration`, even an
//! empty one, at every depth.
//!
//! The specification also allows a bare name, and to omit an empty configuration. zarr-python refuses the latter for
//! the codecs of numcodecs, and some readers refuse the former.

use serde_json::{Map, Value};
use std::borrow::Cow;

use super::repair;

/// Keys of a configuration with lists of codecs.
const LISTS: [&str; 4] = ["codecs", "index_codecs", "mask_codecs", "data_codecs"];

/// The numcodecs codecs without a version 3 name, known there by `numcodecs.` and their id.
const NUMCODECS: [&str; 18] = [
    "adler32", "astype", "bitround", "bz2", "categorize", "crc32", "delta", "fixedscaleoffset", "fletcher32",
    "jenkins_lookup3", "lz4", "lzma", "pcodec", "quantize", "shuffle", "zfpy", "zlib", "base64",
];

/// Returns a codec's name as known to every reader. Some writers use other names: the numcodecs id alone, or a zarrs
/// name from before the version 3 names were agreed.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let id = name.strip_prefix("https://codec.zarrs.dev/bytes_to_bytes/").unwrap_or(name);
    if NUMCODECS.contains(&id) { format!("numcodecs.{id}").into() } else { name.into() }
}

/// Converts every codec of a list to the normal form; returns whether any changed.
pub(super) fn normalise(codecs: &mut Value) -> bool {
    let mut changed = false;
    for codec in codecs.as_array_mut().into_iter().flatten() {
        changed |= normalise_codec(codec);
    }
    changed
}

fn normalise_codec(codec: &mut Value) -> bool {
    let mut changed = false;
    if let Value::String(name) = codec {
        *codec = Value::Object(Map::from_iter([("name".to_owned(), Value::from(std::mem::take(name)))]));
        changed = true;
    }
    // Anything but a codec is refused by the reader.
    let Value::Object(codec) = codec else { return changed };
    if let Some(Value::String(text)) = codec.get_mut("name")
        && let Cow::Owned(known) = name(text)
    {
        (*text, changed) = (known, true);
    }
    if codec.get("configuration").is_none_or(Value::is_null) {
        codec.insert("configuration".to_owned(), Value::Object(Map::new()));
        changed = true;
    }
    let configuration = codec.get_mut("configuration").and_then(Value::as_object_mut);
    configuration.is_some_and(normalise_inner) || changed
}

/// Converts the codecs inside a codec to the normal form; returns whether any changed.
pub(super) fn normalise_inner(configuration: &mut Map<String, Value>) -> bool {
    let mut changed = repair::inner_chunk_shape_of(configuration);
    for (_, list) in configuration.iter_mut().filter(|(key, _)| LISTS.contains(&key.as_str())) {
        changed |= normalise(list);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_depth_has_the_normal_form() {
        let mut codecs = json!([
            {"name": "sharding_indexed", "configuration": {
                "chunk_shape": [2],
                "codecs": [{"name": "optional", "configuration": {
                    "mask_codecs": ["packbits"],
                    "data_codecs": [{"name": "bytes", "configuration": null}, "fletcher32"],
                }}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"],
            }},
            {"name": "https://codec.zarrs.dev/bytes_to_bytes/adler32", "must_understand": false},
        ]);
        assert!(normalise(&mut codecs));
        let expected = json!([
            {"name": "sharding_indexed", "configuration": {
                "chunk_shape": [2],
                "codecs": [{"name": "optional", "configuration": {
                    "mask_codecs": [{"name": "packbits", "configuration": {}}],
                    "data_codecs": [
                        {"name": "bytes", "configuration": {}},
                        {"name": "numcodecs.fletcher32", "configuration": {}},
                    ],
                }}],
                "index_codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "crc32c", "configuration": {}},
                ],
            }},
            {"name": "numcodecs.adler32", "must_understand": false, "configuration": {}},
        ]);
        assert_eq!(codecs, expected);
        assert!(!normalise(&mut codecs));
    }
}
