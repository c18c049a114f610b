//! The chains of codecs, by layout.

use crate::case::{Case, Element};
use serde_json::{Value, json};

/// Returns all cases, grouped by layout.
pub fn cases() -> Vec<Case> {
    let little = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let big = json!({ "name": "bytes", "configuration": { "endian": "big" } });
    let transpose = json!({ "name": "transpose", "configuration": { "order": [1, 0] } });
    let zstd = json!({ "name": "zstd", "configuration": { "level": 3, "checksum": false } });
    let zstd_checked = json!({ "name": "zstd", "configuration": { "level": 3, "checksum": true } });
    let gzip = json!({ "name": "gzip", "configuration": { "level": 5 } });
    let zlib = json!({ "name": "numcodecs.zlib", "configuration": { "level": 5 } });
    let lz4 = json!({ "name": "numcodecs.lz4", "configuration": {} });
    let bz2 = json!({ "name": "numcodecs.bz2", "configuration": { "level": 1 } });
    let crc32c = json!({ "name": "crc32c" });
    let shuffle = json!({ "name": "numcodecs.shuffle", "configuration": { "elementsize": 4 } });
    let numcodecs = |id: &str, configuration: Value| json!({ "name": format!("numcodecs.{id}"), "configuration": configuration });
    let lzma = numcodecs("lzma", json!({ "preset": 1 }));
    let alone = numcodecs("lzma", json!({ "format": 2, "preset": 1 }));
    let delta = json!([{ "id": 3, "dist": 4 }, { "id": 33, "preset": 1 }]);
    let raw = numcodecs("lzma", json!({ "format": 3, "filters": delta }));
    let base64 = numcodecs("base64", json!({}));
    let crc32 = numcodecs("crc32", json!({}));
    let adler32 = numcodecs("adler32", json!({ "location": "end" }));
    let lookup3 = numcodecs("jenkins_lookup3", json!({ "initval": 7 }));
    let packbits = json!({ "name": "packbits", "configuration": { "padding_encoding": "first_byte" } });
    let (utf8, vlen_bytes) = (json!({ "name": "vlen-utf8" }), json!({ "name": "vlen-bytes" }));
    let blosc = |cname: &str, shuffle: &str| {
        let typesize = if shuffle == "noshuffle" { 1 } else { 4 };
        json!({ "name": "blosc", "configuration":
            { "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": 0 } })
    };
    let blosclz = blosc("blosclz", "shuffle");
    let optional = |depth: usize, masks: &Value, data: Value| {
        (0..depth).fold(data, |data, _| {
            let configuration = json!({ "mask_codecs": masks, "data_codecs": data });
            json!([{ "name": "zarrs.optional", "configuration": configuration }])
        })
    };
    let sharding = |chunks: [u64; 2], codecs: Value, location: &str, index: Value| {
        json!({ "name": "sharding_indexed", "configuration": {
            "chunk_shape": chunks, "codecs": codecs, "index_location": location, "index_codecs": index } })
    };
    let byte = json!({ "name": "bytes" });
    let mut cases = Vec::new();
    let mut add = |layout, element, array_codecs: &Value, byte_codecs: &[&Value]| {
        let byte_codecs = byte_codecs.iter().map(|codec| (*codec).clone()).collect();
        cases.push(Case { layout, element, array_codecs: array_codecs.clone(), byte_codecs });
    };

    let plain = json!([little]);
    let turned = json!([transpose, big]);
    for codecs in [
        &[][..],
        &[&crc32c],
        &[&zstd],
        &[&zstd_checked],
        &[&zstd, &crc32c],
        &[&gzip],
        &[&zlib],
        &[&blosc("lz4", "shuffle")],
        &[&blosc("lz4", "bitshuffle"), &crc32c],
        &[&blosc("zstd", "noshuffle")],
        &[&blosc("zlib", "shuffle")],
        &[&blosclz],
        &[&lz4],
        &[&lz4, &zstd],
        &[&bz2],
        &[&shuffle, &zlib],
        &[&shuffle, &lz4],
        &[&json!({ "name": "numcodecs.fletcher32" })],
        &[&json!({ "name": "numcodecs.adler32" })],
        &[&lzma],
        &[&alone],
        &[&raw],
        &[&shuffle, &alone],
        &[&base64],
        &[&alone, &base64],
        &[&crc32],
        &[&lookup3],
        &[&shuffle, &raw, &adler32],
    ] {
        add("fixed", Element::Number, &plain, codecs);
    }
    add("fixed", Element::Number, &turned, &[]);
    add("fixed", Element::Number, &turned, &[&lz4]);
    add("fixed", Element::Number, &turned, &[&zstd, &crc32c]);
    add("fixed", Element::Bool, &json!([packbits]), &[]);
    add("fixed", Element::Bool, &json!([packbits]), &[&zstd, &crc32c]);

    for codecs in [
        &[][..],
        &[&crc32c],
        &[&zstd],
        &[&zstd_checked],
        &[&gzip],
        &[&lz4],
        &[&blosc("lz4", "shuffle")],
        &[&bz2],
        &[&lzma],
        &[&alone],
        &[&base64],
        &[&crc32],
    ] {
        add("variable", Element::Text, &json!([utf8]), codecs);
    }
    add("variable", Element::Bytes, &json!([vlen_bytes]), &[]);
    add("variable", Element::Bytes, &json!([vlen_bytes]), &[&zlib]);

    let byte_masks = json!([byte]);
    let bit_masks = json!([packbits, zstd]);
    for (layout, text, data) in [("masked tensor", false, &little), ("masked variable", true, &utf8)] {
        for (depth, masks) in [(1, &byte_masks), (1, &bit_masks), (2, &byte_masks)] {
            add(layout, Element::Optional(text, depth), &optional(depth, masks, json!([data])), &[]);
            add(
                layout,
                Element::Optional(text, depth),
                &optional(depth, masks, json!([data, zstd])),
                &[&crc32c],
            );
        }
        add(layout, Element::Optional(text, 1), &optional(1, &byte_masks, json!([data])), &[&zstd]);
        add(layout, Element::Optional(text, 1), &optional(1, &byte_masks, json!([data, gzip])), &[]);
    }

    let (bare, checked) = (json!([little]), json!([little, crc32c]));
    let compressed = json!([little, zstd]);
    let compressed_checked = json!([little, zstd, crc32c]);
    let turned_index = json!([
        { "name": "transpose", "configuration": { "order": [2, 0, 1] } },
        big,
        { "name": "numcodecs.shuffle", "configuration": { "elementsize": 8 } },
        { "name": "numcodecs.adler32", "configuration": {} },
        crc32c,
    ]);
    let inner = sharding([2, 6], json!([little, zstd]), "start", bare.clone());
    for (element, codec, rest) in [
        (Element::Number, sharding([5, 6], bare.clone(), "end", bare.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed.clone(), "end", checked.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed_checked.clone(), "end", checked.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed_checked, "start", checked.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed.clone(), "start", bare.clone()), vec![]),
        (Element::Number, sharding([5, 6], compressed, "start", turned_index.clone()), vec![]),
        (Element::Text, sharding([5, 6], json!([utf8, gzip]), "end", turned_index), vec![]),
        (Element::Number, sharding([10, 12], json!([inner]), "end", bare.clone()), vec![]),
        (Element::Number, sharding([5, 6], bare.clone(), "end", bare.clone()), vec![&zstd, &crc32c]),
        (Element::Text, sharding([5, 6], json!([utf8, zstd]), "end", bare.clone()), vec![]),
        (Element::Text, sharding([5, 6], json!([utf8, gzip]), "end", checked), vec![]),
        (Element::Text, sharding([5, 6], json!([utf8]), "start", bare), vec![&crc32c]),
    ] {
        add("sharded", element, &json!([codec]), &rest);
    }
    cases
}
