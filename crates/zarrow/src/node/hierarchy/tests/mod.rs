//! Creating, changing and erasing nodes, in memory and in a folder.

mod attributes;
mod changes;
mod erasures;
mod faults;
mod resize;

use super::*;
use crate::metadata::{Attributes, CodecMetadata, FillValue, ZarrFormat};
use crate::open;
use crate::store::{Durability, FilesystemStore, MemoryStore, Store};
use crate::{Group, Node, OpenOptions};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use zarrow_array::{DataType, Number};

const FORMATS: [ZarrFormat; 2] = [ZarrFormat::V2, ZarrFormat::V3];

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

fn map(value: Value) -> Attributes {
    match value {
        Value::Object(map) => map.into(),
        _ => Attributes::default(),
    }
}

fn builder(zarr_format: ZarrFormat) -> ArrayBuilder {
    ArrayBuilder::new([6, 4], Number::Int16).zarr_format(zarr_format)
}

fn array(store: &Arc<dyn Store>, path: &str, zarr_format: ZarrFormat) -> crate::Result<crate::Array> {
    let metadata = builder(zarr_format).build().unwrap();
    create_array(Arc::clone(store), path, metadata, Existing::Refuse, &OpenOptions::default())
}

fn group(store: &Arc<dyn Store>, path: &str, zarr_format: ZarrFormat) -> Group {
    let attributes = map(json!({"of": path}));
    let options = OpenOptions::default();
    create_group(Arc::clone(store), path, zarr_format, attributes, Existing::Refuse, &options).unwrap()
}

fn opened(store: &Arc<dyn Store>, path: &str) -> Group {
    match open(Arc::clone(store), path).unwrap() {
        Node::Group(group) => group,
        Node::Array(_) => panic!("an array"),
    }
}

fn code<T>(result: crate::Result<T>) -> &'static str {
    result.map(drop).unwrap_err().kind().code()
}

/// All keys of the store, without folders, which may be left empty.
fn keys(store: &dyn Store, prefix: &str) -> Vec<String> {
    let is_value = |path: &str| store.open(path).unwrap().is_some_and(|value| value.nbytes().is_ok());
    let paths = store.list(prefix).unwrap().into_iter().map(|name| crate::store::join(prefix, &name));
    paths.flat_map(|path| if is_value(&path) { vec![path] } else { keys(store, &path) }).collect()
}

#[test]
fn what_was_created_is_opened() {
    for zarr_format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let stores: [Arc<dyn Store>; 2] =
            [memory(), Arc::new(FilesystemStore::create(folder.path().join("new")).unwrap())];
        for store in stores {
            let created = array(&store, "a/b/c", zarr_format).unwrap();
            let Node::Array(found) = open(Arc::clone(&store), "a/b/c").unwrap() else { panic!() };
            assert_eq!(found.metadata(), created.metadata());
            assert_eq!(opened(&store, "").children().unwrap()[0].0, "a");
            assert!(opened(&store, "a/b").attributes().is_empty());
            assert_eq!(code(array(&store, "a/b/c", zarr_format)), "exists");
            assert_eq!(code(array(&store, "a/b", zarr_format)), "exists");
            assert_eq!(code(array(&store, "a/b/c/d", zarr_format)), "wrong_node");
            let other = if zarr_format == ZarrFormat::V2 { ZarrFormat::V3 } else { ZarrFormat::V2 };
            assert_eq!(code(array(&store, "a/other", other)), "unsupported");
        }
    }
}

#[test]
fn names_that_are_refused_leave_nothing() {
    let store = memory();
    let long = "x".repeat(256);
    for path in
        ["..", "a/../b", "a//b", "__reserved", "a/__b", "...", "zarr.json", "a/.zarray", ".zarrow-1", &long]
    {
        assert_eq!(code(array(&store, path, ZarrFormat::V3)), "bad_key", "{path}");
    }
    let refused = builder(ZarrFormat::V3).chunk_shape([4]).build();
    assert_eq!(code(refused), "metadata");
    assert!(keys(&*store, "").is_empty());
}

#[test]
fn descriptions_that_do_not_hold_together() {
    let new = |shape: &[u64]| ArrayBuilder::new(shape, Number::Int16);
    let codec = |name: &str| CodecMetadata::new(name, Map::new());
    for (expected, builder) in [
        ("metadata", new(&[4]).chunk_shape([0])),
        ("metadata", new(&[1 << 62, 1 << 62])),
        ("metadata", new(&[4]).chunk_shape([1 << 62])),
        ("metadata", new(&[u64::MAX])),
        ("metadata", new(&[4]).dimension_names([None::<&str>, None])),
        ("metadata", new(&[4]).fill_value(FillValue::Fixed(vec![0; 3]))),
        ("metadata", new(&[4]).fill_value(FillValue::Missing)),
        ("metadata", new(&[1; 33])),
        ("bad_codec", new(&[4]).shard_shape([6]).chunk_shape([4])),
        ("bad_codec", new(&[4]).shard_shape([4, 4]).chunk_shape([4])),
        ("bad_codec", new(&[4]).shard_shape([0]).chunk_shape([0])),
        ("bad_codec", new(&[4]).serializer(codec("vlen-utf8"))),
        ("bad_codec", new(&[4]).compressors([codec("bytes")])),
        ("unknown_codec", new(&[4]).compressors([codec("unheard")])),
        ("metadata", new(&[4]).codecs([])),
        ("metadata", new(&[4]).zarr_format(ZarrFormat::V2).shard_shape([4])),
        ("metadata", new(&[4]).zarr_format(ZarrFormat::V2).dimension_names([None::<&str>])),
        ("metadata", new(&[4]).zarr_format(ZarrFormat::V2).compressors([codec("unheard")])),
    ] {
        let refused = builder.build();
        assert!(refused.is_err(), "{builder:?}");
        assert_eq!(code(refused), expected, "{builder:?}");
    }
}

#[test]
fn urls_are_refused_and_make_no_folder() {
    for (url, said) in [
        ("s3://bucket/data.zarr", "zarrow_cloud::open_urls()"),
        ("https://user:secret@host/x", "zarrow_cloud::open_urls()"),
        ("file:///tmp/x", "pass the path \"/tmp/x\""),
    ] {
        for refused in [
            Group::create(url).map(drop),
            Group::create_with(url, Existing::Erase).map(drop),
            Group::open(url).map(drop),
            crate::Array::open(url).map(drop),
            FilesystemStore::create(url).map(drop),
        ] {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(said) && !text.contains("secret"), "{text}");
        }
        assert!(!std::path::Path::new(url.split("//").next().unwrap_or_default()).exists());
    }
}

#[test]
#[allow(clippy::needless_borrows_for_generic_args, reason = "users type it so")]
fn builders_take_numbers_and_texts() {
    let new = |data_type: DataType| ArrayBuilder::new([2, 3], data_type);
    let fill = |builder: ArrayBuilder| builder.build().unwrap().fill_value;
    let fixed = |bytes: &[u8]| FillValue::Fixed(bytes.to_vec());
    let of = DataType::from;
    assert_eq!(fill(new(of(Number::Float32)).fill_value(f32::NAN)), fixed(&f32::NAN.to_ne_bytes()));
    assert_eq!(fill(new(of(Number::Float32)).fill_value(-1.5)), fixed(&(-1.5f32).to_ne_bytes()));
    assert_eq!(fill(new(of(Number::Float64)).fill_value(f64::INFINITY)), fixed(&f64::INFINITY.to_ne_bytes()));
    assert_eq!(fill(new(of(Number::Int16)).fill_value(-7)), fixed(&(-7i16).to_ne_bytes()));
    assert_eq!(fill(new(DataType::String).fill_value("none")), FillValue::Variable(b"none".to_vec()));
    let optional = DataType::Optional(Box::new(of(Number::UInt8)));
    assert_eq!(fill(new(optional).fill_value(3)), FillValue::Present(Box::new(fixed(&[3]))));
    for builder in [new(of(Number::UInt8)).fill_value(-1), new(of(Number::Int16)).fill_value(0.5)] {
        assert_eq!(code(builder.build()), "metadata");
    }
    let names = |builder: ArrayBuilder| builder.build().unwrap().dimension_names.unwrap();
    let both = [Some("y".to_owned()), Some("x".to_owned())];
    assert_eq!(names(new(of(Number::Int16)).dimension_names(&["y", "x"])), both);
    assert_eq!(names(new(of(Number::Int16)).dimension_names(vec!["y".to_owned(), "x".to_owned()])), both);
    assert_eq!(names(new(of(Number::Int16)).dimension_names([Some("y"), None])), [both[0].clone(), None]);
}

#[test]
fn debug_forms_are_short() {
    let store = memory();
    array(&store, "a", ZarrFormat::V3).unwrap();
    let root = opened(&store, "");
    assert_eq!(format!("{root:?}"), r#"Group { store: "memory", path: "", zarr_format: V3, .. }"#);
    assert!(format!("{:?}", root.array("a").unwrap()).len() < 120);
    let error = root.array("missing").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn usual_codecs_and_chosen_ones() {
    let names = |builder: ArrayBuilder| -> Vec<String> {
        builder.build().unwrap().codecs.into_iter().map(|codec| codec.name).collect()
    };
    let new = |data_type: DataType| ArrayBuilder::new([6, 4], data_type);
    assert_eq!(names(new(Number::Int16.into())), ["bytes", "zstd"]);
    assert_eq!(names(new(DataType::String)), ["vlen-utf8", "zstd"]);
    assert_eq!(names(new(DataType::Optional(Box::new(DataType::Bytes)))), ["zarrs.optional", "zstd"]);
    assert_eq!(names(new(Number::Int16.into()).compressors([]).column_major(true)), ["transpose", "bytes"]);
    assert_eq!(names(new(Number::Int16.into()).shard_shape([6, 4])), ["sharding_indexed"]);
    let version_2 = new(DataType::String).zarr_format(ZarrFormat::V2).column_major(true);
    assert_eq!(names(version_2), ["transpose", "vlen-utf8", "zstd"]);
    let big_endian = new(Number::Int16.into()).zarr_format(ZarrFormat::V2).big_endian(true).build().unwrap();
    assert_eq!(big_endian.codecs[0].configuration["endian"], "big");
    assert_eq!(big_endian.codecs[1].configuration["checksum"], true);

    let float32 = Number::Float32.into();
    for (choice, expected) in [
        (json!("lz4"), json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}})),
        (json!({"id": "gzip"}), json!({"name": "gzip", "configuration": {"level": 5}})),
        (
            json!({"name": "blosc", "configuration": {"cname": "lz4"}}),
            json!({"name": "blosc", "configuration":
                   {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}}),
        ),
        (json!({"id": "zlib", "level": 9}), json!({"name": "numcodecs.zlib", "configuration": {"level": 9}})),
        (json!("crc32c"), json!({"name": "crc32c", "configuration": {}})),
        (json!("fletcher32"), json!({"name": "numcodecs.fletcher32", "configuration": {}})),
        (json!("shuffle"), json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}})),
    ] {
        assert_eq!(CodecMetadata::from_choice(&choice, &float32).unwrap().document(), expected);
    }
    for choice in [json!(5), json!({}), json!({"id": 1}), json!(null), json!({"name": "a", "level": 1})] {
        assert_eq!(code(CodecMetadata::from_choice(&choice, &float32)), "bad_codec");
    }
}

#[test]
fn parameters_that_a_codec_does_not_have_are_refused() {
    let float32 = Number::Float32.into();
    let inner = |codec: Value| json!({"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": ["bytes", codec]}});
    for (choice, expected) in [
        (
            json!({"id": "zstd", "lvl": 9}),
            "unknown parameter \"lvl\": expected one of level, checksum (codec zstd)",
        ),
        (json!({"id": "zstd", "level": "9"}), "level is \"9\", expected a whole number (codec zstd)"),
        (json!({"id": "zstd", "checksum": 1}), "checksum is 1, expected true or false (codec zstd)"),
        (json!({"name": "gzip", "configuration": {"level": 5.5}}), "level is 5.5, expected a whole number"),
        (
            json!({"id": "blosc", "cname": "lz4", "codec": "lz4"}),
            "unknown parameter \"codec\": expected one of cname, ",
        ),
        (json!({"id": "fletcher32", "level": 1}), "unknown parameter \"level\": the codec has no parameters"),
        (inner(json!({"name": "zstd", "configuration": {"levels": 1}})), "unknown parameter \"levels\""),
        (
            json!({"id": "delta", "dtypes": "<f4"}),
            "unknown parameter \"dtypes\": expected one of dtype, astype",
        ),
    ] {
        let error = CodecMetadata::from_choice(&choice, &float32).unwrap_err();
        assert_eq!(error.kind().code(), "bad_codec");
        assert!(error.to_string().contains(expected), "{choice}: {error}");
    }
    for choice in [
        json!({"id": "lzma", "format": 1, "check": -1, "preset": null, "filters": null}),
        json!({"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": -1, "blocksize": 0}),
        json!({"id": "jenkins_lookup3", "initval": 0, "prefix": null}),
        inner(json!({"name": "blosc", "configuration": {"typesize": null}})),
        json!({"name": "not.known.here", "configuration": {"any": ["thing"]}}),
    ] {
        CodecMetadata::from_choice(&choice, &float32).unwrap();
    }
    // Such a parameter in stored metadata is still accepted.
    let store = memory();
    let text = json!({"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "fill_value": 0,
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                   {"name": "zstd", "configuration": {"level": "9", "lvl": 9}}]})
    .to_string();
    store.writer().unwrap().set("zarr.json", &[text.as_bytes()], Durability::None).unwrap();
    assert!(matches!(open(store, "").unwrap(), Node::Array(_)));
}

#[test]
fn overwriting_leaves_nothing_of_the_old_node() {
    for (old, new) in [(ZarrFormat::V2, ZarrFormat::V3), (ZarrFormat::V3, ZarrFormat::V2)] {
        for path in ["", "a"] {
            let store = memory();
            group(&store, path, old)
                .change_attributes(&AttributeChange::Update(map(json!({"x": 1}))))
                .unwrap();
            array(&store, crate::store::join(path, "below").as_str(), old).unwrap();
            let metadata = builder(new).build().unwrap();
            let options = OpenOptions::default();
            let erased = create_array(Arc::clone(&store), path, metadata.clone(), Existing::Erase, &options);
            match erased {
                Err(error) => assert_eq!((error.kind().code(), path), ("unsupported", "a")),
                Ok(_) => assert_eq!(keys(&*store, "").len(), 1),
            }
        }
    }
}

#[test]
fn chunks_without_an_array_do_not_become_those_of_a_new_one() {
    let store: Arc<dyn Store> =
        Arc::new(MemoryStore::new([("c/0", vec![1]), ("a/c/0/0", vec![1]), ("b/notes", vec![1])]).unwrap());
    let make = |path: &str, existing: Existing| {
        let metadata = builder(ZarrFormat::V3).build().unwrap();
        create_array(Arc::clone(&store), path, metadata, existing, &OpenOptions::default())
    };
    assert_eq!(code(make("", Existing::Erase)), "foreign");
    assert_eq!(code(make("a", Existing::Refuse)), "exists");
    assert_eq!(code(make("a", Existing::Erase)), "foreign");
    make("b", Existing::Refuse).unwrap();
    assert_eq!(keys(&*store, ""), ["a/c/0/0", "b/notes", "b/zarr.json", "c/0", "zarr.json"]);
}

#[test]
fn attributes_change_one_by_one() {
    for zarr_format in FORMATS {
        let store = memory();
        let mut first = array(&store, "a", zarr_format).unwrap();
        let mut second = first.clone();
        first.change_attributes(&AttributeChange::Update(map(json!({"x": 1, "y": [2]})))).unwrap();
        second.change_attributes(&AttributeChange::Update(map(json!({"z": null})))).unwrap();
        assert_eq!(
            Value::Object(second.metadata().attributes.values().clone()),
            json!({"x": 1, "y": [2], "z": null})
        );
        first.change_attributes(&AttributeChange::Remove(map(json!({"x": null, "none": null})))).unwrap();
        assert_eq!(Value::Object(first.metadata().attributes.values().clone()), json!({"y": [2], "z": null}));
        let more = map(json!({"y": [2, 5], "z": [1], "none": [1]}));
        first.change_attributes(&AttributeChange::Extend(more)).unwrap();
        assert_eq!(
            Value::Object(first.metadata().attributes.values().clone()),
            json!({"y": [2, 5], "z": null})
        );
        let fewer = map(json!({"y": [2, 7], "z": [null], "none": [1]}));
        first.change_attributes(&AttributeChange::Shorten(fewer)).unwrap();
        assert_eq!(Value::Object(first.metadata().attributes.values().clone()), json!({"y": [5], "z": null}));
        second.change_attributes(&AttributeChange::Replace(map(json!({"y": 3})))).unwrap();
        let Node::Array(found) = open(Arc::clone(&store), "a").unwrap() else { panic!() };
        assert_eq!(Value::Object(found.metadata().attributes.values().clone()), json!({"y": 3}));
        opened(&store, "").erase("a").unwrap();
        assert_eq!(
            code(first.change_attributes(&AttributeChange::Remove(Attributes::default()))),
            "not_found"
        );
        assert!(keys(&*store, "a").is_empty());
    }
}

#[test]
fn what_another_program_stored_stays() {
    let document =
        br#"{"zarr_format": 3, "node_type": "group", "theirs": {"must_understand": false, "n": 1e400},
  "attributes": {"big": 123456789012345678901234567890, "nan": NaN}}"#
            .to_vec();
    let text = String::from_utf8(document).unwrap().replace("1e400", "1E+2");
    let store: Arc<dyn Store> =
        Arc::new(MemoryStore::new([("zarr.json", text.clone().into_bytes())]).unwrap());
    opened(&store, "").change_attributes(&AttributeChange::Update(map(json!({"new": 1})))).unwrap();
    let stored = String::from_utf8(store.get("zarr.json", 1 << 20).unwrap().unwrap()).unwrap();
    assert_eq!(stored, text.replace("NaN", "NaN, \"new\": 1"));
}

/// Compares each node in a consolidated root with the store.
fn check_consolidated(store: &Arc<dyn Store>) {
    let root = opened(store, "");
    assert!(root.is_consolidated());
    let expected: Vec<(String, String)> = walk(&root);
    let plain = memory();
    for key in keys(&**store, "") {
        let bytes = store.get(&key, 1 << 20).unwrap().unwrap();
        if !key.ends_with(".zmetadata") {
            plain.writer().unwrap().set(&key, &[&bytes], Durability::None).unwrap();
        }
    }
    if let Some(bytes) = plain.get("zarr.json", 1 << 20).unwrap() {
        let mut document: Map<String, Value> = serde_json::from_slice(&bytes).unwrap();
        document.remove("consolidated_metadata");
        let bytes = Value::Object(document).to_string().into_bytes();
        plain.writer().unwrap().set("zarr.json", &[&bytes], Durability::None).unwrap();
    }
    assert_eq!(expected, walk(&opened(&plain, "")));
}

fn walk(group: &Group) -> Vec<(String, String)> {
    let mut nodes = vec![(group.path().to_owned(), format!("{:?}", group.attributes()))];
    for (_, node) in group.children().unwrap() {
        match node.unwrap() {
            Node::Array(array) => nodes.push((array.path().to_owned(), format!("{:?}", array.metadata()))),
            Node::Group(group) => nodes.extend(walk(&group)),
        }
    }
    nodes
}

#[test]
fn consolidated_metadata_stay_up_to_date() {
    for zarr_format in FORMATS {
        let store = memory();
        let mut root = group(&store, "", zarr_format);
        let mut deep = array(&store, "a/b", zarr_format).unwrap();
        group(&store, "s", zarr_format);
        root.consolidate_metadata().unwrap();
        check_consolidated(&store);
        assert_eq!(walk(&root).len(), 4);
        let update = |value: Value| AttributeChange::Update(map(value));
        deep.change_attributes(&update(json!({"units": "K"}))).unwrap();
        root.change_attributes(&update(json!({"title": "rain"}))).unwrap();
        check_consolidated(&store);
        root.create_group("s/t", map(json!({"q": 1})), Existing::Refuse).unwrap();
        array(&store, "s/u/v", zarr_format).unwrap();
        opened(&store, "s").consolidate_metadata().unwrap();
        array(&store, "s/w", zarr_format).unwrap();
        check_consolidated(&store);
        assert!(root.get("s/t").is_ok() && root.get("s/w").is_ok());
        root.refresh().unwrap();
        assert!(root.get("s/w").is_ok());
        root.erase("s").unwrap();
        check_consolidated(&store);
        assert!(root.get("s/t").is_err() && root.get("s").is_err());
        assert_eq!(code(root.erase("s")), "not_found");
        let metadata = builder(zarr_format).build().unwrap();
        root.create_array("a", metadata, Existing::Erase).unwrap();
        check_consolidated(&store);
        assert_eq!(walk(&root).len(), 2);
    }
}

#[test]
fn copies_inside_copies_are_renewed_too() {
    let store = memory();
    let mut root = group(&store, "", ZarrFormat::V3);
    let mut deep = array(&store, "a/b", ZarrFormat::V3).unwrap();
    root.consolidate_metadata().unwrap();
    // Copies nested as some writers do it: the entry of `a` contains an entry of `b`, and the root does not.
    let mut document: Value =
        serde_json::from_slice(&store.get("zarr.json", 1 << 20).unwrap().unwrap()).unwrap();
    let entries = document["consolidated_metadata"]["metadata"].as_object_mut().unwrap();
    let inner = entries.remove("a/b").unwrap();
    entries["a"]["consolidated_metadata"] =
        json!({"kind": "inline", "must_understand": false, "metadata": {"b": inner}});
    let bytes = document.to_string().into_bytes();
    store.writer().unwrap().set("zarr.json", &[&bytes], Durability::None).unwrap();
    deep.change_attributes(&AttributeChange::Update(map(json!({"units": "K"})))).unwrap();
    check_consolidated(&store);
}

#[test]
fn changes_of_threads_are_not_lost() {
    for zarr_format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(FilesystemStore::create(folder.path()).unwrap());
        let mut root = group(&store, "", zarr_format);
        root.consolidate_metadata().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..8 {
                        let name = format!("{thread}-{round}");
                        array(store, &format!("g/{name}"), zarr_format).unwrap();
                        let change = AttributeChange::Update(Map::from_iter([(name, json!(round))]).into());
                        opened(store, "").change_attributes(&change).unwrap();
                    }
                });
            }
        });
        root.refresh().unwrap();
        assert_eq!(root.attributes().len(), 33);
        check_consolidated(&store);
        assert_eq!(walk(&root).len(), 34);
    }
}

/// The values of the store with their keys.
fn values(store: &dyn Store) -> Vec<(String, Vec<u8>)> {
    keys(store, "").into_iter().map(|key| (key.clone(), store.get(&key, 10_000).unwrap().unwrap())).collect()
}

fn put(store: &dyn Store, key: &str, value: &[u8]) {
    store.writer().unwrap().set(key, &[value], Durability::None).unwrap();
}

#[test]
fn only_nodes_are_erased() {
    for zarr_format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let stores: [Arc<dyn Store>; 2] =
            [memory(), Arc::new(FilesystemStore::create(folder.path()).unwrap())];
        for store in stores {
            let mut root = group(&store, "", zarr_format);
            let y = array(&store, "y", zarr_format).unwrap();
            y.write(.., &crate::Values::slice(&[1i16; 24], &[6, 4]).unwrap()).unwrap();
            put(&*store, "notes.txt", b"mine");
            put(&*store, "docs/readme", b"mine");
            put(&*store, "theirs/zarr.json", b"{}");
            let before = values(&*store);
            let paths = [
                "notes.txt", "docs", "docs/readme", "y/c", "y/c/0", "y/0.0", "zarr.json", ".zgroup",
                "y/zarr.json",
            ];
            for path in paths {
                assert_eq!(code(root.erase(path)), "not_found", "{path}");
                assert!(root.get(path).is_err());
            }
            assert_eq!(code(root.erase("theirs")), "foreign");
            let metadata = || builder(zarr_format).build().unwrap();
            assert_eq!(code(root.create_array("theirs", metadata(), Existing::Erase)), "foreign");
            assert_eq!(values(&*store), before);
            root.erase("y").unwrap();
            assert!(values(&*store).iter().all(|(key, _)| !key.starts_with("y/")));
        }
    }
}
