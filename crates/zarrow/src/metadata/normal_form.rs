//! The form of a codec that every reader of version 3 takes: an object of `name` and `configuration`, the latter also where
//! it is empty, at every depth.
//!
//! The specification allows a bare name, and to leave an empty configuration out. zarr-python refuses the second for the
//! codecs of numcodecs, and some readers the first.

use serde_json::{Map, Value};
use std::borrow::Cow;

use super::repair;

/// Where a configuration has lists of codecs.
const LISTS: [&str; 4] = ["codecs", "index_codecs", "mask_codecs", "data_codecs"];

/// The codecs of numcodecs that version 3 knows by `numcodecs.` and their id, and that have no name of their own there.
const NUMCODECS: [&str; 18] = [
    "adler32",
    "astype",
    "bitround",
    "bz2",
    "categorize",
    "crc32",
    "delta",
    "fixedscaleoffset",
    "fletcher32",
    "jenkins_lookup3",
    "lz4",
    "lzma",
    "pcodec",
    "quantize",
    "shuffle",
    "zfpy",
    "zlib",
    "base64",
];

/// The name that every reader knows a codec by, from one that some writers gave it: the id of numcodecs alone, and what
/// zarrs wrote before the names of version 3 were agreed.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let id = name.strip_prefix("https://codec.zarrs.dev/bytes_to_bytes/").unwrap_or(name);
    if NUMCODECS.contains(&id) { format!("numcodecs.{id}").into() } else { name.into() }
}

/// Gives every codec of a list the normal form; says whether one had another.
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
    // What is no codec is refused where it is read.
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

/// Gives the codecs inside of a codec the normal form; says whether one had another.
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
