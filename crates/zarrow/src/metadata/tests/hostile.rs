//! The parsers return for any bytes.

use proptest::prelude::*;

use super::*;

/// Passes `bytes` to every parser, and uses the results.
fn read(bytes: &[u8]) {
    let limits = limits();
    if let Ok(array) = parse_v2_array(bytes, Some(bytes), &limits) {
        walk(&array);
    }
    let consolidated = match parse_v3(bytes, &limits) {
        Ok(NodeMetadata::Array(array)) => return walk(&array),
        Ok(NodeMetadata::Group(group)) => group.consolidated,
        Err(_) => parse_v2_group(br#"{"zarr_format": 2}"#, Some(bytes), Some(bytes), &limits)
            .ok()
            .and_then(|group| group.consolidated),
    };
    for name in consolidated.iter().flat_map(|consolidated| consolidated.children("").unwrap()) {
        let node = consolidated.as_ref().and_then(|consolidated| consolidated.get(&name)).unwrap();
        if let Ok(NodeMetadata::Array(array)) = node {
            walk(&array);
        }
    }
}

/// Checks the guarantees in the documentation of [`ArrayMetadata`].
fn walk(array: &ArrayMetadata) {
    let grid_shape = array.chunk_grid.grid_shape(&array.shape);
    assert_eq!(grid_shape.len(), array.shape.len());
    for (axis, count) in grid_shape.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (start, extent) = array.chunk_grid.chunk_extent(axis, count - 1);
        assert!(start < array.shape[axis] && start + extent >= array.shape[axis]);
    }
    if let (FillValue::Fixed(bytes), Some(size)) = (&array.fill_value, array.data_type.item_size()) {
        assert_eq!(bytes.len(), size);
    }
    array.chunk_key_encoding.encode(&grid_shape, &mut String::new());
}

fn valid_documents() -> Vec<Value> {
    let lines =
        include_str!("zarr_python.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let arrays = lines
        .flat_map(|line| line["documents"].as_object().unwrap().clone().into_iter().map(|(_, value)| value));
    let groups = [include_str!("zarr_python_v2.json"), include_str!("zarr_python_v3.json")];
    arrays.chain(groups.iter().map(|text| serde_json::from_str(text).unwrap())).collect()
}

/// Any JSON, with keywords of the format more often than others.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "regular", "rectilinear", "inline", "default", "v2", "bytes", "r8", "int8", "optional", "string",
        "NaN", "0x7f", "/", "<M8[10us]", "|O", "<U5", "|S", "vlen-utf8", "numcodecs.blosc", "../a", "",
    ]);
    let numbers = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..4).prop_map(Value::from)
    ];
    let text = prop_oneof![words.prop_map(Value::from), any::<String>().prop_map(Value::from)];
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), numbers, text];
    let keys = prop::sample::select(vec![
        "name", "configuration", "chunk_shape", "chunk_shapes", "kind", "metadata", "id", "must_understand",
        "shape", "dtype", "separator", "length_bytes", "unit", "scale_factor", "fill_value", "a/b",
        "a/.zarray", "a/.zattrs",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns the value in `document` at the end of the path given by `turns`.
fn reach<'a>(document: &'a mut Value, turns: &[usize]) -> &'a mut Value {
    let mut value = document;
    for turn in turns {
        let count = value.as_object().map(Map::len).or(value.as_array().map(Vec::len)).unwrap_or(0);
        if count == 0 {
            break;
        }
        value = match value {
            Value::Object(map) => map.values_mut().nth(turn % count).unwrap(),
            value => &mut value[turn % count],
        };
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&bytes);
    }

    #[test]
    fn any_object(document in any_json()) {
        read(document.to_string().as_bytes());
    }

    #[test]
    fn valid_documents_with_a_part_replaced(
        which in any::<prop::sample::Index>(),
        turns in prop::collection::vec(any::<usize>(), 1..5),
        replacement in any_json(),
    ) {
        let documents = valid_documents();
        let mut document = which.get(&documents).clone();
        *reach(&mut document, &turns) = replacement;
        read(document.to_string().as_bytes());
    }

    #[test]
    fn valid_documents_with_bytes_replaced(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in any::<prop::sample::Index>(),
        cut in prop::bool::weighted(0.2),
    ) {
        let documents = valid_documents();
        let mut bytes = which.get(&documents).to_string().into_bytes();
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        read(&bytes);
    }
}

#[test]
fn documents_are_bounded_before_they_are_parsed() {
    let limits = MetadataLimits { max_metadata_nbytes: 4096, ..limits() };
    let attributes = json!({ "x": "y".repeat(5000) });
    let too_large = |result: Result<(), MetadataError>| {
        let limit = limits.max_metadata_nbytes;
        let what = "the size of the metadata in bytes (DecodeLimits.max_metadata_nbytes)";
        assert_eq!(result.unwrap_err(), MetadataError::TooLarge { what, limit });
    };
    let empty = json!({"kind": "inline", "must_understand": false, "metadata": {}});
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    too_large(parse_v3(group.to_string().as_bytes(), &limits).map(drop));
    // An empty consolidated document is refused too, at any position and in any spelling.
    for key in ["\"consolidated_metadata\"", "\"consolidated\\u005fmetadata\""] {
        let text = group.to_string();
        let document = format!("{{{key}: {empty}, {}", &text[1..]);
        too_large(parse_v3(document.as_bytes(), &limits).map(drop));
    }
    let array = v2_document(json!({})).to_string();
    too_large(parse_v2_array(array.as_bytes(), Some(attributes.to_string().as_bytes()), &limits).map(drop));
    let zgroup = br#"{"zarr_format": 2}"#;
    too_large(parse_v2_group(zgroup, Some(attributes.to_string().as_bytes()), None, &limits).map(drop));
    // Each node of consolidated metadata is a document.
    let zmetadata = json!({"zarr_consolidated_format": 1, "metadata":
        {"a/.zgroup": {"zarr_format": 2}, "a/.zattrs": attributes, "b/.zgroup": {"zarr_format": 2}}});
    let root = parse_v2_group(zgroup, None, Some(zmetadata.to_string().as_bytes()), &limits).unwrap();
    let consolidated = root.consolidated.unwrap();
    too_large(consolidated.get("a").unwrap().map(drop));
    assert!(consolidated.get("b").unwrap().is_ok());
    let inline = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata":
        {"kind": "inline", "metadata": {"a": group, "b": {"zarr_format": 3, "node_type": "group"}}}});
    let NodeMetadata::Group(root) = parse_v3(inline.to_string().as_bytes(), &limits).unwrap() else {
        panic!()
    };
    let consolidated = root.consolidated.unwrap();
    too_large(consolidated.get("a").unwrap().map(drop));
    assert!(consolidated.get("b").unwrap().is_ok());
}

#[test]
fn depth_is_bounded_everywhere() {
    const DEPTH: usize = 50_000;
    let nested = |open: &str, inner: &str, close: &str| open.repeat(DEPTH) + inner + &close.repeat(DEPTH);
    let deep = [
        nested("[", "", "]"),
        nested("{\"a\":", "1", "}"),
        nested("{\"name\":\"optional\",\"configuration\":", "\"int8\"", "}"),
        nested("{\"name\":\"sharding_indexed\",\"configuration\":{\"codecs\":[", "", "]}}"),
        "[".repeat(DEPTH),
    ];
    for deep in &deep {
        for key in ["attributes", "data_type", "codecs", "fill_value", "consolidated_metadata", "other"] {
            for node_type in ["array", "group"] {
                let document =
                    format!("{{\"zarr_format\":3,\"node_type\":\"{node_type}\",\"{key}\":{deep}}}");
                assert!(parse_v3(document.as_bytes(), &limits()).is_err());
            }
        }
        let zarray = format!("{{\"zarr_format\":2,\"dtype\":{deep}}}");
        assert!(parse_v2_array(zarray.as_bytes(), Some(deep.as_bytes()), &limits()).is_err());
        let zmetadata = format!("{{\"zarr_consolidated_format\":1,\"metadata\":{{\"a/.zattrs\":{deep}}}}}");
        let group = parse_v2_group(br#"{"zarr_format": 2}"#, None, Some(zmetadata.as_bytes()), &limits());
        assert!(group.is_err());
    }
}
