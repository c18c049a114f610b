//! One wrong document for each error.

use super::*;

fn v3_error(changes: Value) -> MetadataError {
    v3_array(&v3_document(changes)).unwrap_err()
}

fn v2_error(changes: Value) -> MetadataError {
    v2_array(&v2_document(changes)).unwrap_err()
}

#[test]
fn the_documents_that_are_changed_are_right() {
    assert_eq!(v3_array(&v3_document(json!({}))).unwrap().chunk_grid.grid_shape(&[10, 6]), [3, 2]);
    assert_eq!(v2_array(&v2_document(json!({}))).unwrap().chunk_grid.grid_shape(&[10, 6]), [3, 2]);
}

#[test]
fn not_json() {
    for bytes in [&b""[..], b"{", b"[]", b"null", b"3", b"{\"a\": NaNx}", b"\xff", b"{} {}"] {
        let error = parse_v3(bytes, &limits()).unwrap_err();
        assert!(matches!(error, MetadataError::NotJson { .. }), "{error}");
    }
}

#[test]
fn nested_too_deep() {
    let text = format!("{{\"a\": {}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(matches!(parse_v3(text.as_bytes(), &limits()), Err(MetadataError::TooLarge { .. })));
}

#[test]
fn missing_keys() {
    for key in [
        "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value",
        "codecs",
    ] {
        assert_eq!(v3_error(json!({key: null})), MetadataError::MissingKey { key });
    }
    for key in ["zarr_format", "shape", "chunks", "dtype", "fill_value", "order"] {
        assert_eq!(v2_error(json!({key: null})), MetadataError::MissingKey { key });
    }
}

#[test]
fn invalid_values_of_version_3() {
    for (key, value) in [
        ("zarr_format", json!(2)),
        ("zarr_format", json!("3")),
        ("node_type", json!("table")),
        ("shape", json!(5)),
        ("shape", json!([1.5, 1])),
        ("shape", json!([-1, 1])),
        ("shape", json!([9_223_372_036_854_775_808_u64, 1])),
        ("data_type", json!(5)),
        ("chunk_grid", json!({"name": "regular"})),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [4]}})),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": [4, -1]}})),
        ("chunk_key_encoding", json!({"name": "default", "configuration": {"separator": "../"}})),
        ("chunk_key_encoding", json!({"name": "default", "configuration": {"separator": "-"}})),
        ("codecs", json!([])),
        ("codecs", json!({})),
        ("codecs", json!([5])),
        ("codecs", json!([""])),
        ("codecs", json!([{"configuration": {}}])),
        ("codecs", json!([{"name": "bytes", "configuration": []}])),
        ("codecs", json!([{"name": "bytes", "must_understand": 1}])),
        ("codecs", json!([{"name": "numcodecs.blosc", "configuration": {"shuffle": 7}}])),
        ("attributes", json!([])),
        ("dimension_names", json!(["x"])),
        ("dimension_names", json!(["x", 1])),
        ("dimension_names", json!("xy")),
    ] {
        let error = v3_error(json!({key: value}));
        assert!(
            matches!(error, MetadataError::Invalid { key: found, .. } if found == key),
            "{key} {value}: {error}"
        );
    }
}

#[test]
fn invalid_values_of_version_2() {
    for (key, value) in [
        ("zarr_format", json!(3)),
        ("shape", json!("5")),
        ("chunks", json!([4, -1])),
        ("chunks", json!(true)),
        ("dtype", json!(5)),
        ("order", json!("A")),
        ("filters", json!({})),
        ("filters", json!([5])),
        ("filters", json!([{"id": 5}])),
        ("compressor", json!("zlib")),
        ("compressor", json!({"level": 1})),
        ("fill_value", json!("x")),
        ("dimension_separator", json!("_")),
    ] {
        let error = v2_error(json!({key: value}));
        assert!(
            matches!(error, MetadataError::Invalid { key: found, .. } if found == key),
            "{key} {value}: {error}"
        );
    }
    let error = v2_error(json!({"chunks": [4]}));
    assert!(matches!(error, MetadataError::Invalid { .. }), "{error}");
}

#[test]
fn unsupported() {
    for changes in [
        json!({"data_type": "decimal"}),
        json!({"chunk_grid": {"name": "hexagonal"}}),
        json!({"chunk_grid": {"name": "rectilinear", "configuration": {"kind": "array"}}}),
        json!({"chunk_key_encoding": "hashed"}),
        json!({"storage_transformers": [{"name": "chunk-manifest-json"}]}),
        json!({"new_thing": {"must_understand": true}}),
        json!({"new_thing": {}}),
        json!({"new_thing": 5}),
    ] {
        let error = v3_error(changes.clone());
        assert!(matches!(error, MetadataError::Unsupported { .. }), "{changes}: {error}");
    }
}

#[test]
fn what_need_not_be_understood_is_ignored() {
    let changes = json!({"new_thing": {"must_understand": false}, "storage_transformers": []});
    assert!(v3_array(&v3_document(changes)).is_ok());
}

#[test]
fn too_large() {
    let regular =
        |chunk_shape: Value| json!({"name": "regular", "configuration": {"chunk_shape": chunk_shape}});
    for changes in [
        json!({"shape": [i64::MAX, 1]}),
        json!({"shape": [1_u64 << 40, 1_u64 << 40]}),
        json!({"shape": [0, 1_u64 << 62]}),
        json!({"chunk_grid": regular(json!([1_u64 << 40, 1]))}),
        json!({"chunk_grid": regular(json!([i64::MAX, i64::MAX]))}),
        json!({"shape": vec![1; 33], "chunk_grid": regular(json!(vec![1; 33]))}),
        json!({"data_type": {"name": "raw_bytes", "configuration": {"length_bytes": u32::MAX}}, "fill_value": ""}),
    ] {
        let error = v3_error(changes.clone());
        assert!(matches!(error, MetadataError::TooLarge { .. }), "{changes}: {error}");
    }
    assert!(matches!(v2_error(json!({"dtype": "<U4294967295"})), MetadataError::TooLarge { .. }));
}

#[test]
fn a_document_has_a_limited_length() {
    let limits = MetadataLimits { max_metadata_nbytes: 400, max_consolidated_nbytes: 500, ..limits() };
    let document = |length: usize| {
        let text = v3_document(json!({})).to_string();
        text + &" ".repeat(length)
    };
    assert!(parse_v3(document(0).as_bytes(), &limits).is_ok());
    for length in [250, 600] {
        let error = parse_v3(document(length).as_bytes(), &limits).unwrap_err();
        assert!(matches!(error, MetadataError::TooLarge { .. }), "{error}");
    }
}

#[test]
fn an_error_does_not_carry_the_document() {
    let error = v3_error(json!({"data_type": "x".repeat(100_000)}));
    assert!(error.to_string().len() < 300, "{error}");
}
