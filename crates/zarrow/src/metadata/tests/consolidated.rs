//! Consolidated metadata: subgroups keep their descendants.

use super::*;

fn roots() -> [GroupMetadata; 2] {
    let zmetadata = include_bytes!("zarr_python_v2.json");
    let v2 = parse_v2_group(br#"{"zarr_format": 2}"#, None, Some(zmetadata), &limits()).unwrap();
    let v3 = group(parse_v3(include_bytes!("zarr_python_v3.json"), &limits()).unwrap());
    [v2, v3]
}

fn group(node: NodeMetadata) -> GroupMetadata {
    match node {
        NodeMetadata::Group(group) => group,
        NodeMetadata::Array(_) => panic!("an array"),
    }
}

fn shape(consolidated: &Consolidated, path: &str) -> Vec<u64> {
    match consolidated.get(path).unwrap().unwrap() {
        NodeMetadata::Array(array) => array.shape,
        NodeMetadata::Group(_) => panic!("a group"),
    }
}

#[test]
fn a_path_leads_to_its_node() {
    for root in roots() {
        let consolidated = root.consolidated.unwrap();
        assert_eq!(consolidated.children("").unwrap(), ["a", "sub", "sub-1"]);
        assert_eq!(consolidated.children("sub").unwrap(), ["b", "deep"]);
        assert_eq!(consolidated.children("sub-1").unwrap(), [""; 0]);
        assert_eq!(shape(&consolidated, "a"), [3]);
        assert_eq!(shape(&consolidated, "sub/deep/c"), [7]);
        for absent in ["", "b", "sub/", "/a", "sub/a", "../a"] {
            assert!(consolidated.get(absent).is_none(), "{absent}");
        }
    }
}

#[test]
fn a_subgroup_keeps_its_descendants() {
    for root in roots() {
        let sub = group(root.consolidated.unwrap().get("sub").unwrap().unwrap());
        assert_eq!(sub.attributes["title"], "sub");
        let below = sub.consolidated.unwrap();
        assert_eq!(below.children("").unwrap(), ["b", "deep"]);
        assert_eq!(shape(&below, "b"), [5]);
        let deep = group(below.get("deep").unwrap().unwrap()).consolidated.unwrap();
        assert_eq!(deep.children("").unwrap(), ["c"]);
        assert_eq!(shape(&deep, "c"), [7]);
        assert_eq!(deep, below.subgroup("deep"));
    }
}

#[test]
fn nested_maps_are_one_map() {
    let node = |metadata: Value| {
        json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata":
            {"kind": "inline", "must_understand": false, "metadata": metadata}})
    };
    let document = node(json!({"sub": node(json!({"deep": node(json!({"a": v3_document(json!({}))}))}))}));
    let root = group(parse_v3(document.to_string().as_bytes(), &limits()).unwrap());
    let consolidated = root.consolidated.unwrap();
    assert_eq!(consolidated.children("sub/deep").unwrap(), ["a"]);
    assert_eq!(shape(&consolidated, "sub/deep/a"), [10, 6]);
}

#[test]
fn a_bad_entry_does_not_spoil_its_neighbours() {
    let metadata = json!({"good": v3_document(json!({})), "bad": v3_document(json!({"shape": null}))});
    let document = json!({"zarr_format": 3, "node_type": "group",
        "consolidated_metadata": {"kind": "inline", "metadata": metadata}});
    let root = group(parse_v3(document.to_string().as_bytes(), &limits()).unwrap());
    let consolidated = root.consolidated.unwrap();
    assert_eq!(shape(&consolidated, "good"), [10, 6]);
    assert_eq!(consolidated.get("bad"), Some(Err(MetadataError::MissingKey { key: "shape" })));
}

#[test]
fn missing_or_foreign_metadata_is_none() {
    for value in [json!(null), json!({"kind": "elsewhere", "must_understand": false})] {
        let document = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": value});
        let root = group(parse_v3(document.to_string().as_bytes(), &limits()).unwrap());
        assert_eq!(root.consolidated, None);
    }
}

#[test]
fn wrong_consolidated_metadata_is_an_error() {
    for value in [
        json!(1),
        json!({"kind": "elsewhere"}),
        json!({"kind": "inline"}),
        json!({"kind": "inline", "metadata": []}),
        json!({"kind": "inline", "metadata": {"../up": {}}}),
        json!({"kind": "inline", "metadata": {"/root": {}}}),
        json!({"kind": "inline", "metadata": {"a//b": {}}}),
    ] {
        let document = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": value});
        let error = parse_v3(document.to_string().as_bytes(), &limits()).unwrap_err();
        assert!(
            matches!(error, MetadataError::Invalid { key: "consolidated_metadata", .. }),
            "{value}: {error}"
        );
    }
    for zmetadata in [
        json!({}),
        json!({"metadata": 3}),
        json!({"zarr_consolidated_format": 2, "metadata": {}}),
        json!({"zarr_consolidated_format": 1, "metadata": 3}),
        json!({"zarr_consolidated_format": 1, "metadata": {"../.zarray": {}}}),
    ] {
        let bytes = zmetadata.to_string();
        let result = parse_v2_group(br#"{"zarr_format": 2}"#, None, Some(bytes.as_bytes()), &limits());
        assert!(result.is_err(), "{zmetadata}");
    }
}
