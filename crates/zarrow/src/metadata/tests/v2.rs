//! Version 2 from writers other than zarr-python 3.

use zarrow_array::{DataType, Number, TimeUnit};

use super::*;

#[test]
fn type_strings() {
    for (dtype, expected) in [
        ("|b1", Number::Bool.into()),
        ("|i2", Number::Int16.into()),
        ("<f2", Number::Float16.into()),
        ("bfloat16", Number::BFloat16.into()),
        ("float8_e5m2", Number::Float8E5M2.into()),
        ("<M8", DataType::DateTime64 { unit: TimeUnit::Generic, scale: 1 }),
        ("<M8[25D]", DataType::DateTime64 { unit: TimeUnit::Day, scale: 25 }),
        (">m8[ms]", DataType::TimeDelta64 { unit: TimeUnit::Millisecond, scale: 1 }),
        ("|V16", DataType::RawBytes { length: 16 }),
    ] {
        let mut document = v2_document(json!({"dtype": dtype}));
        document["fill_value"] = Value::Null;
        let array = v2_array(&document).unwrap();
        assert_eq!(array.data_type, expected);
        let open = match expected {
            DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => i64::MIN.to_ne_bytes().to_vec(),
            other => vec![0; other.item_size().unwrap()],
        };
        assert_eq!(array.fill_value, FillValue::Fixed(open), "null is NaT of times, and zero of all else");
        assert!(!array.has_fill_value);
    }
}

#[test]
fn fill_value_0_of_bytes_is_the_empty_value() {
    for (dtype, filters, expected) in [
        ("|S3", json!([]), FillValue::Fixed(vec![0; 3])),
        ("|V3", json!([]), FillValue::Fixed(vec![0; 3])),
        ("|O", json!([{"id": "vlen-bytes"}]), FillValue::Variable(Vec::new())),
    ] {
        let document =
            |fill: Value| v2_document(json!({"dtype": dtype, "filters": filters, "fill_value": fill}));
        assert_eq!(v2_array(&document(json!(0))).unwrap().fill_value, expected, "{dtype}");
        assert!(v2_array(&document(json!(1))).is_err(), "{dtype}");
        assert!(v2_array(&document(json!(false))).is_err(), "{dtype}");
    }
}

#[test]
fn types_that_are_not_supported() {
    for dtype in [
        json!([["a", "|O"]]),
        json!([["a", "<f16"]]),
        json!("<f16"),
        json!("<c32"),
        json!("<i3"),
        json!("i4"),
        json!("float32"),
        json!("=i4"),
        json!("|S0"),
        json!("<U"),
        json!("<M8[fortnight]"),
        json!("<M8[0s]"),
        json!("<M4[s]"),
        json!(""),
        json!("|"),
        json!("|é"),
        json!("|O"),
    ] {
        let error =
            v2_array(&v2_document(json!({"dtype": dtype, "filters": [{"id": "pickle"}]}))).unwrap_err();
        assert!(matches!(error, MetadataError::Unsupported { .. }), "{dtype}: {error}");
    }
}

#[test]
fn objects_are_what_their_filter_says() {
    for (filter, expected) in [("vlen-utf8", DataType::String), ("vlen-bytes", DataType::Bytes)] {
        let document = v2_document(
            json!({"dtype": "|O", "fill_value": "YWI=", "filters": [{"id": filter}], "order": "F"}),
        );
        let array = v2_array(&document).unwrap();
        assert_eq!(array.data_type, expected);
        let expected =
            json!([["transpose", {"order": [1, 0]}], [filter, {}], ["numcodecs.zlib", {"level": 1}]]);
        assert_eq!(codecs(&array), expected);
        let fill = if filter == "vlen-utf8" { "YWI=" } else { "ab" };
        assert_eq!(array.fill_value, FillValue::Variable(fill.as_bytes().to_vec()));
    }
}

#[test]
fn fill_values_of_older_writers() {
    for (dtype, filters, value, expected) in [
        ("|b1", json!([]), json!(1), FillValue::Fixed(vec![1])),
        ("<c8", json!([]), json!(0), FillValue::Fixed(vec![0; 8])),
        ("|i1", json!([]), json!(7.0), FillValue::Fixed(vec![7])),
        ("|O", json!([{"id": "vlen-utf8"}]), json!(0), FillValue::Variable(b"0".to_vec())),
    ] {
        let document = v2_document(json!({"dtype": dtype, "filters": filters, "fill_value": value}));
        assert_eq!(v2_array(&document).unwrap().fill_value, expected, "{dtype} {value}");
    }
}

#[test]
fn filters_that_do_not_fit_the_chain_are_refused() {
    for filters in [
        json!([{"id": "shuffle", "elementsize": 2}, {"id": "delta", "dtype": "<i2"}]),
        json!([{"id": "pcodec"}, {"id": "delta", "dtype": "<i2"}]),
        json!([{"id": "pcodec"}, {"id": "zfpy"}]),
    ] {
        let error = v2_array(&v2_document(json!({"filters": filters}))).unwrap_err();
        assert!(matches!(error, MetadataError::Unsupported { .. }), "{filters}: {error}");
    }
}

#[test]
fn a_checksum_at_the_start_keeps_its_own_name() {
    let filters = json!([{"id": "crc32c", "location": "start"}, {"id": "crc32c", "location": "end"}]);
    let array = v2_array(&v2_document(json!({"filters": filters}))).unwrap();
    let expected = json!([
        ["bytes", {"endian": "little"}],
        ["numcodecs.crc32c", {"location": "start"}],
        ["crc32c", {}],
        ["numcodecs.zlib", {"level": 1}],
    ]);
    assert_eq!(codecs(&array), expected);
}

#[test]
fn automatic_shuffle_depends_on_the_item_size() {
    for (dtype, expected) in [("|i1", "bitshuffle"), ("<i2", "shuffle")] {
        let compressor = json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1});
        let array = v2_array(&v2_document(json!({"dtype": dtype, "compressor": compressor}))).unwrap();
        assert_eq!(array.codecs[1].configuration["shuffle"], expected);
    }
}

#[test]
fn unknown_keys_and_a_missing_compressor_do_not_matter() {
    let document = v2_document(json!({"compressor": null, "filters": null, "object_codec": {"id": "x"}}));
    assert_eq!(codecs(&v2_array(&document).unwrap()), json!([["bytes", {"endian": "little"}]]));
}

#[test]
fn chunks_of_an_empty_array_may_be_empty() {
    let array = v2_array(&v2_document(json!({"shape": [0, 6], "chunks": [0, 3]}))).unwrap();
    assert_eq!(array.chunk_grid, ChunkGrid::Regular { chunk_shape: vec![1, 3] });
    assert_eq!(array.chunk_grid.grid_shape(&array.shape), [0, 2]);
}

#[test]
fn attributes_may_hold_bare_floats() {
    let zarray = v2_document(json!({})).to_string();
    let zattrs =
        br#"{"missing_value": NaN, "range": [-Infinity, Infinity], "text": "a \"NaN\" NaN \\", "n": -1}"#;
    let array = parse_v2_array(zarray.as_bytes(), Some(zattrs), &limits()).unwrap();
    let expected = json!({"missing_value": "NaN", "range": ["-Infinity", "Infinity"], "text": "a \"NaN\" NaN \\", "n": -1});
    assert_eq!(Value::Object(array.attributes.values().clone()), expected);
}
