//! Compares arrays written by zarr-python with NumPy's values.

use super::*;

/// Returns the lines of `zarr_python.py`, as JSON by their names.
pub(super) fn written() -> Vec<(String, Value)> {
    let lines = include_str!("zarr_python.jsonl").lines();
    lines
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["name"].as_str().unwrap().to_owned(), line)
        })
        .collect()
}

pub(super) fn read(line: &Value) -> ArrayMetadata {
    let documents = &line["documents"];
    let Some(zarray) = documents.get(".zarray") else { return v3_array(&documents["zarr.json"]).unwrap() };
    let zattrs = documents[".zattrs"].to_string();
    parse_v2_array(zarray.to_string().as_bytes(), Some(zattrs.as_bytes()), &limits()).unwrap()
}

fn named(name: &str) -> ArrayMetadata {
    let (_, line) = written().into_iter().find(|(found, _)| found == name).unwrap();
    read(&line)
}

/// Converts little-endian bytes to native order.
fn native(mut bytes: Vec<u8>, word_size: usize) -> Vec<u8> {
    if cfg!(target_endian = "big") {
        bytes.chunks_mut(word_size).for_each(<[u8]>::reverse);
    }
    bytes
}

#[test]
fn types_and_fill_values_are_those_of_numpy() {
    let written = written();
    assert_eq!(written.len(), 100);
    for (name, line) in written {
        let array = read(&line);
        let code = array.data_type.numpy_code().unwrap_or_else(|| array.data_type.to_string());
        assert_eq!(code, line["code"].as_str().unwrap(), "{name}");
        let digits = line["fill"].as_str().unwrap().as_bytes().chunks(2);
        let fill =
            digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
        let fill = native(fill, array.data_type.word_size());
        let expected =
            if array.data_type.is_variable() { FillValue::Variable(fill) } else { FillValue::Fixed(fill) };
        assert_eq!(array.fill_value, expected, "{name}");
    }
}

#[test]
fn byte_order_becomes_the_bytes_codec() {
    for (name, expected) in [
        ("v2 <i4", json!([["bytes", {"endian": "little"}]])),
        ("v2 >i4", json!([["bytes", {"endian": "big"}]])),
        ("v2 >M8[ns]", json!([["bytes", {"endian": "big"}]])),
        ("v2 >U2", json!([["bytes", {"endian": "big"}]])),
        ("v2 u1", json!([["bytes", {}]])),
        ("v2 S3", json!([["bytes", {}]])),
        ("v2 str", json!([["vlen-utf8", {}]])),
        ("v3 str", json!([["vlen-utf8", {}]])),
        ("v3 bytes", json!([["vlen-bytes", {}]])),
        ("v3 f8", json!([["bytes", {"endian": "little"}]])),
    ] {
        assert_eq!(codecs(&named(name)), expected, "{name}");
    }
}

#[test]
fn order_and_compressor_become_codecs() {
    for (name, codec, configuration) in [
        ("v2 Zlib(level=1)", "numcodecs.zlib", json!({"level": 1})),
        ("v2 GZip(level=1)", "gzip", json!({"level": 1})),
        ("v2 Zstd(level=0)", "zstd", json!({"level": 0, "checksum": true})),
        (
            "v2 Blosc(cname='zstd', clevel=3, shuffle=AUTOSHUFFLE, blocksize=0)",
            "blosc",
            json!({"cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}),
        ),
        (
            "v2 Blosc(cname='lz4', clevel=3, shuffle=BITSHUFFLE, blocksize=0)",
            "blosc",
            json!({"cname": "lz4", "clevel": 3, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}),
        ),
        ("v2 LZ4(acceleration=1)", "numcodecs.lz4", json!({"acceleration": 1})),
        ("v2 BZ2(level=1)", "numcodecs.bz2", json!({"level": 1})),
        (
            "v2 LZMA(format=1, check=-1, preset=None, filters=None)",
            "numcodecs.lzma",
            json!({"format": 1, "check": -1, "preset": null, "filters": null}),
        ),
    ] {
        let array = named(name);
        let expected =
            json!([["transpose", {"order": [1, 0]}], ["bytes", {"endian": "big"}], [codec, configuration]]);
        assert_eq!(codecs(&array), expected, "{name}");
        assert_eq!(array.chunk_key_encoding, ChunkKeyEncoding::V2 { separator: '/' });
        assert_eq!(Value::Object(array.attributes.values().clone()), json!({"a": [1, {"b": null}]}));
    }
}

#[test]
fn filters_become_codecs_around_bytes() {
    let expected = json!([
        ["numcodecs.delta", {"dtype": ">i4", "astype": ">i4"}],
        ["numcodecs.fixedscaleoffset", {"scale": 10, "offset": 1, "dtype": ">i4", "astype": "<i2"}],
        ["bytes", {"endian": "little"}],
        ["numcodecs.shuffle", {"elementsize": 2}],
        ["numcodecs.lz4", {"acceleration": 1}],
    ]);
    assert_eq!(codecs(&named("v2 filters")), expected);
    assert_eq!(codecs(&named("v2 packbits")), json!([["numcodecs.packbits", {}], ["bytes", {}]]));
}

#[test]
fn codecs_of_version_3_have_one_name() {
    let expected = json!([
        ["numcodecs.delta", {"dtype": "<f4"}],
        ["numcodecs.bitround", {"keepbits": 3}],
        ["bytes", {"endian": "little"}],
        ["numcodecs.shuffle", {"elementsize": 4}],
        ["numcodecs.lz4", {"acceleration": 1}],
        ["numcodecs.zlib", {"level": 1}],
        ["gzip", {"level": 1}],
        ["zstd", {"level": 2, "checksum": true}],
        ["blosc", {"cname": "lz4", "clevel": 3, "shuffle": "bitshuffle", "blocksize": 0, "typesize": 4}],
        ["crc32c", {}],
    ]);
    assert_eq!(codecs(&named("v3 numcodecs")), expected);
    let expected = json!([["bytes", {"endian": "little"}], ["gzip", {"level": 3}], ["crc32c", {}]]);
    assert_eq!(codecs(&named("v3 gzip")), expected);
}

#[test]
fn sharding_keeps_its_inner_chains() {
    let array = named("v3 sharded");
    assert_eq!(array.chunk_grid, ChunkGrid::Regular { chunk_shape: vec![4, 4] });
    let [sharding] = array.codecs.as_slice() else { panic!("{:?}", array.codecs) };
    assert_eq!(sharding.name, "sharding_indexed");
    let inner = CodecMetadata::parse_chain(&sharding.configuration["codecs"], 2).unwrap();
    let names: Vec<&str> = inner.iter().map(|codec| codec.name.as_str()).collect();
    assert_eq!(names, ["transpose", "bytes", "blosc"]);
}

#[test]
fn axes_attributes_and_zero_axes() {
    let array = named("v3 axes");
    assert_eq!(array.dimension_names, Some(vec![Some("x".to_owned()), None]));
    assert_eq!(Value::Object(array.attributes.values().clone()), json!({"q": 1}));
    for (name, key) in [("v2 0-d", "0"), ("v3 0-d", "c")] {
        let array = named(name);
        assert_eq!((array.shape.as_slice(), array.chunk_grid.ndim()), ([].as_slice(), 0));
        let mut encoded = String::new();
        array.chunk_key_encoding.encode(&[], &mut encoded);
        assert_eq!(encoded, key);
    }
}
