//! Many nodes created, and many arrays written, in batches.

use crate::arrays::{adapter, counted};
use crate::message::Message;
use crate::server::{Fault, Server, well};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zarrow::store::{MemoryStore, Store};
use zarrow::{
    ArrayBuilder, Existing, NewNode, Node, Number, OpenOptions, ValueSource, Values, WriteOptions,
    ZarrFormat, create_all, create_array, create_array_with, create_group, open,
};

/// Elements of an array.
struct Elements(Vec<i32>, Vec<u64>);

impl ValueSource for Elements {
    fn values(&self) -> zarrow::Result<Values<'_>> {
        Values::slice(&self.0, &self.1)
    }
}

fn s3(server: &Server) -> Arc<dyn Store> {
    adapter(server, "bucket/tree", true)
}

fn title(text: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::Map::from_iter([("title".to_owned(), text.into())])
}

fn elements(number: usize) -> Elements {
    Elements((0..8).map(|at| at + number as i32).collect(), vec![8])
}

fn metadata(format: ZarrFormat) -> zarrow::metadata::ArrayMetadata {
    let builder = ArrayBuilder::new([8], Number::Int32).zarr_format(format).chunk_shape([3]);
    builder.attributes(title("array")).build().unwrap()
}

/// A node of a test's tree.
#[derive(Debug, Clone)]
struct Planned {
    path: String,
    /// The number of an array, and whether it has elements.
    array: Option<(usize, bool)>,
}

/// The paths of `groups` groups and `arrays` arrays, some three levels deep.
fn tree(groups: usize, arrays: usize) -> Vec<Planned> {
    let mut paths = vec![String::new()];
    for number in 1..groups {
        let above = &paths[number / 3];
        paths.push(if above.is_empty() { format!("g{number}") } else { format!("{above}/g{number}") });
    }
    let mut planned: Vec<_> = paths.iter().map(|path| Planned { path: path.clone(), array: None }).collect();
    for number in 0..arrays {
        let above = &paths[number % groups];
        let path = if above.is_empty() { format!("x{number}") } else { format!("{above}/x{number}") };
        planned.push(Planned { path, array: Some((number, number % 4 > 0)) });
    }
    planned
}

fn nodes(planned: &[Planned], format: ZarrFormat, existing: Existing) -> Vec<NewNode> {
    let node = |own: &Planned| match own.array {
        None => NewNode::group(own.path.clone(), format, title(&own.path)).existing(existing),
        Some((number, is_filled)) => {
            let array = NewNode::array(own.path.clone(), metadata(format)).existing(existing);
            if is_filled { array.values(Arc::new(elements(number))) } else { array }
        }
    };
    planned.iter().map(node).collect()
}

/// Creates the same nodes one after the other.
fn one_by_one(store: &Arc<dyn Store>, planned: &[Planned], format: ZarrFormat) {
    let (options, write) = (OpenOptions::default(), WriteOptions::default());
    for own in planned {
        let store = Arc::clone(store);
        match own.array {
            None => {
                let attributes = title(&own.path);
                create_group(store, &own.path, format, attributes, Existing::Refuse, &options).unwrap();
            }
            Some((number, true)) => {
                let source = elements(number);
                let (values, refuse) = (source.values().unwrap(), Existing::Refuse);
                create_array_with(store, &own.path, metadata(format), &values, refuse, &options, &write)
                    .unwrap();
            }
            Some((_, false)) => {
                create_array(store, &own.path, metadata(format), Existing::Refuse, &options).unwrap();
            }
        }
    }
    open(Arc::clone(store), "").unwrap().into_group().unwrap().consolidate_metadata().unwrap();
}

fn create(store: &Arc<dyn Store>, nodes: Vec<NewNode>, consolidated: bool) -> zarrow::Result<Vec<Node>> {
    let (options, write) = (OpenOptions::default(), WriteOptions::default());
    create_all(store, nodes, consolidated.then_some(""), &options, &write)
}

/// The stored values below the tree.
fn stored(server: &Server) -> BTreeMap<String, Vec<u8>> {
    let own = |(key, object): (&String, &crate::objects::Object)| {
        Some((key.strip_prefix("bucket/tree/")?.to_owned(), object.bytes.to_vec()))
    };
    server.objects(|objects| objects.all.iter().filter_map(own).collect())
}

fn in_memory(store: &MemoryStore, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for name in store.list(prefix).unwrap() {
        let key = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        match store.get(&key, u64::MAX).unwrap() {
            Some(bytes) => drop(found.insert(key, bytes)),
            None => in_memory(store, &key, found),
        }
    }
}

#[test]
fn batches_store_the_same_bytes_as_single_creations() {
    for format in [ZarrFormat::V2, ZarrFormat::V3] {
        for (groups, arrays) in [(1, 0), (1, 5), (2, 1), (5, 9), (13, 20)] {
            let mut planned = tree(groups, arrays);
            let expected = {
                planned.sort_by(|one, other| one.path.cmp(&other.path));
                let store = Arc::new(MemoryStore::default());
                one_by_one(&(store.clone() as Arc<dyn Store>), &planned, format);
                let mut found = BTreeMap::new();
                in_memory(&store, "", &mut found);
                found
            };
            // The order of the call does not matter.
            planned.reverse();
            let local = Arc::new(MemoryStore::default());
            let made = nodes(&planned, format, Existing::Refuse);
            create(&(local.clone() as Arc<dyn Store>), made, true).unwrap();
            let mut found = BTreeMap::new();
            in_memory(&local, "", &mut found);
            assert!(found == expected, "{groups} groups and {arrays} arrays in memory");
            let server = Server::start(well());
            let made = create(&s3(&server), nodes(&planned, format, Existing::Refuse), true).unwrap();
            for (node, own) in made.iter().zip(&planned) {
                let path = match node {
                    Node::Array(array) => array.path(),
                    Node::Group(group) => group.path(),
                };
                assert_eq!(path, own.path);
            }
            let found = stored(&server);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            for (key, bytes) in &expected {
                let (own, other) = (String::from_utf8_lossy(&found[key]), String::from_utf8_lossy(bytes));
                assert_eq!(own, other, "{key} of {groups} groups and {arrays} arrays");
            }
        }
    }
}

/// A tree of arrays with elements and one chunk.
fn one_chunk_each(groups: usize, arrays: usize, format: ZarrFormat) -> Vec<NewNode> {
    let builder = ArrayBuilder::new([8], Number::Int32).zarr_format(format).chunk_shape([8]);
    let metadata = builder.attributes(title("array")).build().unwrap();
    let node = |own: Planned| match own.array {
        None => NewNode::group(own.path, format, title("group")),
        Some((number, _)) => NewNode::array(own.path, metadata.clone()).values(Arc::new(elements(number))),
    };
    tree(groups, arrays).into_iter().map(node).collect()
}

#[test]
fn a_tree_takes_few_round_trips() {
    let server = Server::start(well());
    // The first conditional put to a server probes its support of conditions.
    create(&counted_at(&server, "bucket/first"), nodes(&tree(1, 0), ZarrFormat::V3, Existing::Refuse), false)
        .unwrap();
    for format in [ZarrFormat::V3, ZarrFormat::V2] {
        let path = format!("bucket/{format:?}");
        let made = one_chunk_each(13, 60, format);
        let (rounds, made) = server.rounds(|| create(&counted_at(&server, &path), made, true));
        assert_eq!(made.unwrap().len(), 73);
        // A host gets 64 requests at once at first, and a batch of more takes another round trip.
        assert!(rounds <= 7, "{rounds} round trips of {format:?}");
    }
    // In an existing group, and without consolidated metadata.
    let path = "bucket/group";
    create(&counted_at(&server, path), nodes(&tree(1, 0), ZarrFormat::V3, Existing::Refuse), false).unwrap();
    let made = one_chunk_each(1, 24, ZarrFormat::V3).split_off(1);
    let (rounds, made) = server.rounds(|| create(&counted_at(&server, path), made, false));
    made.unwrap();
    assert!(rounds <= 4, "{rounds} round trips of 24 arrays");
    let root = open(counted_at(&server, path), "").unwrap().into_group().unwrap();
    let arrays: Vec<_> = (0..24).map(|number| root.array(&format!("x{number}")).unwrap()).collect();
    let (rounds, written) = server.rounds(|| {
        let write = |array: &'static zarrow::Array| {
            let source: Arc<dyn ValueSource> = Arc::new(elements(1));
            (array.write_request(..).unwrap(), source)
        };
        let arrays: &'static [zarrow::Array] = Box::leak(arrays.into_boxed_slice());
        zarrow::write_many(arrays.iter().map(write).collect(), &|| false)
    });
    written.unwrap();
    assert!(rounds <= 3, "{rounds} round trips of 24 writes");
    assert_eq!(
        root.array("x7").unwrap().read(7).unwrap().into_tensor().unwrap().as_slice::<i32>().unwrap(),
        [8]
    );
}

#[test]
fn a_new_group_gets_attributes_with_the_documents_of_its_arrays() {
    let server = Server::start(well());
    create(&counted_at(&server, "bucket/first"), nodes(&tree(1, 0), ZarrFormat::V3, Existing::Refuse), false)
        .unwrap();
    for format in [ZarrFormat::V3, ZarrFormat::V2] {
        let path = format!("bucket/{format:?}");
        let made = |last: &str| {
            let mut nodes = one_chunk_each(1, 5, format);
            nodes[0] = nodes[0].clone().keep_group().attributes_last(title(last));
            nodes.into_iter().map(|node| node.existing(Existing::EraseArray)).collect::<Vec<_>>()
        };
        server.take_log();
        let (rounds, nodes) = server.rounds(|| create(&counted_at(&server, &path), made("last"), false));
        let root = nodes.unwrap().remove(0).into_group().unwrap();
        assert!(rounds <= if format == ZarrFormat::V3 { 4 } else { 6 }, "{rounds} round trips of {format:?}");
        assert_eq!(root.attributes()["title"], "last");
        let stored = || open(counted_at(&server, &path), "").unwrap().into_group().unwrap();
        assert_eq!(stored().attributes()["title"], "last");
        let puts = server.take_log().into_iter().filter(|message| message.method == "PUT");
        let keys: Vec<String> = puts.map(|message| message.target).collect();
        let name = if format == ZarrFormat::V3 { "zarr.json" } else { ".zattrs" };
        let last = keys.iter().rposition(|key| key.ends_with(&format!("{format:?}/{name}"))).unwrap();
        let chunks: Vec<usize> =
            (0..keys.len()).filter(|at| keys[*at].ends_with("/c/0") || keys[*at].ends_with("/0")).collect();
        assert!(chunks.len() == 5 && chunks.iter().all(|at| *at < last), "{keys:?}");
        // An existing group does not get them.
        let nodes = create(&counted_at(&server, &path), made("again"), false).unwrap();
        assert_eq!(nodes[0].clone().into_group().unwrap().attributes()["title"], "group");
        assert_eq!(stored().attributes()["title"], "group");
    }
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let group = NewNode::group("g", ZarrFormat::V3, title("first")).attributes_last(title("last"));
    let array = NewNode::array("g/a", metadata(ZarrFormat::V3)).values(Arc::new(elements(1)));
    let root = create(&memory, vec![array, group], true).unwrap().remove(1).into_group().unwrap();
    assert_eq!(root.attributes()["title"], "last");
    let found = open(memory, "").unwrap().into_group().unwrap();
    assert_eq!(found.group("g").unwrap().attributes()["title"], "last", "also consolidated");
}

fn counted_at(server: &Server, path: &str) -> Arc<dyn Store> {
    counted(server, path)
}

#[test]
fn a_refusal_writes_nothing() {
    let server = Server::start(well());
    let store = s3(&server);
    create(&store, nodes(&tree(3, 4), ZarrFormat::V3, Existing::Refuse), true).unwrap();
    server.objects(|objects| objects.put("bucket/tree/notes/a.txt", b"mine".to_vec()));
    let before = stored(&server);
    let group = |path: &str| NewNode::group(path, ZarrFormat::V3, title("new"));
    let array = |path: &str| NewNode::array(path, metadata(ZarrFormat::V3));
    let filled = |path: &str| array(path).values(Arc::new(elements(1)));
    let long = Elements(vec![1; 9], vec![9]);
    let v2 = || NewNode::array("b", metadata(ZarrFormat::V2));
    let cases: Vec<(Vec<NewNode>, &str)> = vec![
        (vec![filled("a"), group("g1")], "exists"),
        (vec![filled("a"), filled("x0")], "exists"),
        (vec![filled("a"), filled("g1").existing(Existing::EraseArray)], "exists"),
        (vec![filled("a"), group("x0").keep_group()], "wrong_node"),
        (vec![filled("a"), group("notes").existing(Existing::Erase)], "foreign"),
        (vec![filled("a"), group("x0/b")], "wrong_node"),
        (vec![filled("a"), group("a/b")], "wrong_node"),
        (vec![filled("a"), array("a")], "exists"),
        (vec![filled("a"), group("__b")], "bad_key"),
        (vec![filled("a"), v2()], "unsupported"),
        (vec![v2()], "unsupported"),
        (vec![filled("a"), array("b").values(Arc::new(long))], "shape"),
    ];
    for (number, (nodes, code)) in cases.into_iter().enumerate() {
        server.take_log();
        let error = create(&store, nodes, true).unwrap_err();
        assert_eq!(error.kind().code(), code, "case {number}: {error}");
        let log = server.take_log();
        assert!(
            log.iter().all(|message| message.method == "GET" || message.method == "HEAD"),
            "case {number}"
        );
        assert!(stored(&server) == before, "case {number}");
    }
}

/// Consolidated groups above show replaced and kept nodes.
#[test]
fn nodes_are_replaced_and_kept() {
    for format in [ZarrFormat::V2, ZarrFormat::V3] {
        let server = Server::start(well());
        let store = s3(&server);
        create(&store, nodes(&tree(4, 8), format, Existing::Refuse), true).unwrap();
        let larger =
            ArrayBuilder::new([20], Number::Int32).zarr_format(format).chunk_shape([3]).build().unwrap();
        let source = || Arc::new(Elements((0..20).collect(), vec![20]));
        let made = vec![
            NewNode::group("", format, serde_json::Map::from_iter([("more".to_owned(), 1.into())]))
                .keep_group(),
            NewNode::array("x4", metadata(format)).existing(Existing::EraseArray),
            NewNode::array("g1/x1", larger).existing(Existing::EraseArray).values(source()),
            NewNode::group("g2", format, title("new")).existing(Existing::Erase),
            NewNode::group("g2/inner", format, title("inner")),
        ];
        create(&store, made, false).unwrap();
        for root in [open(s3(&server), "").unwrap(), open(s3(&server), "").unwrap()] {
            let root = root.into_group().unwrap();
            assert!(root.is_consolidated());
            assert_eq!(
                (root.attributes()["more"].as_i64(), &root.attributes()["title"]),
                (Some(1), &"".into())
            );
            let own: Vec<String> =
                root.group("g2").unwrap().children().unwrap().into_iter().map(|(name, _)| name).collect();
            assert_eq!(own, ["inner"], "{format:?}");
            let read = |path: &str| {
                let read = root.array(path).unwrap().read(..).unwrap().into_tensor().unwrap();
                read.as_slice::<i32>().unwrap().to_vec()
            };
            assert_eq!(read("x4"), [0; 8]);
            assert_eq!(read("g1/x1"), (0..20).collect::<Vec<_>>());
            let mut left = root.without_consolidated();
            let documents = || -> BTreeMap<String, serde_json::Value> {
                let found = stored(&server).into_iter();
                found.filter_map(|(key, bytes)| Some((key, serde_json::from_slice(&bytes).ok()?))).collect()
            };
            let before = documents();
            left.consolidate_metadata().unwrap();
            assert_eq!(documents(), before, "the copies were complete");
        }
    }
}

/// The server refuses every request after some number of changes, as if this process had been killed there.
#[test]
fn a_kill_at_any_point_leaves_no_array_without_its_chunks() {
    let planned = tree(4, 9);
    for format in [ZarrFormat::V3, ZarrFormat::V2] {
        let mut most = 0;
        loop {
            let server = Server::start(well());
            let store = s3(&server);
            // The probes of conditions are done.
            create(&adapter_at(&server), nodes(&tree(1, 0), format, Existing::Refuse), false).unwrap();
            let changes = AtomicUsize::new(0);
            server.behave(Box::new(move |message: &Message, _| {
                let is_change = message.method != "GET" && message.method != "HEAD";
                let number = if is_change {
                    changes.fetch_add(1, Ordering::SeqCst)
                } else {
                    changes.load(Ordering::SeqCst)
                };
                (number >= most).then_some(Fault::Status(403))
            }));
            let created = create(&store, nodes(&planned, format, Existing::Refuse), true);
            server.behave(well());
            if created.is_ok() {
                break;
            }
            for own in planned.iter().filter(|own| format == ZarrFormat::V3 && own.array.is_some()) {
                let (number, is_filled) = own.array.unwrap();
                if let Ok(node) = open(s3(&server), &own.path) {
                    let read = node.into_array().unwrap().read(..).unwrap().into_tensor().unwrap();
                    let expected = if is_filled { elements(number).0 } else { vec![0; 8] };
                    assert_eq!(read.as_slice::<i32>().unwrap(), expected, "{} after {most}", own.path);
                }
            }
            let mut again = nodes(&planned, format, Existing::Refuse);
            if format == ZarrFormat::V3 || open(s3(&server), "").is_ok() {
                again[0] = again[0].clone().existing(Existing::Erase);
            }
            create(&store, again, true).unwrap_or_else(|error| panic!("after {most} changes: {error}"));
            let whole = stored(&server);
            let other = Server::start(well());
            create(&s3(&other), nodes(&planned, format, Existing::Refuse), true).unwrap();
            assert!(whole == stored(&other), "after {most} changes");
            most += 1 + most / 4;
        }
        assert!(most > 10);
    }
}

fn adapter_at(server: &Server) -> Arc<dyn Store> {
    adapter(server, "bucket/first", true)
}

/// One chunk is refused.
#[test]
fn a_failed_batch_leaves_no_unfinished_array() {
    let server = Server::start(well());
    let store = s3(&server);
    server.behave(Box::new(|message: &Message, _| {
        (message.method == "PUT" && message.path().ends_with("x6/c/1")).then_some(Fault::Status(403))
    }));
    let error = create(&store, nodes(&tree(2, 8), ZarrFormat::V3, Existing::Refuse), true).unwrap_err();
    server.behave(well());
    assert_eq!(error.kind().code(), "permission");
    assert!(error.to_string().contains("were created before this and remain: \"/\""), "{error}");
    let left = stored(&server);
    let keys: Vec<&str> = left.keys().map(String::as_str).collect();
    assert_eq!(keys, ["g1/zarr.json", "x0/zarr.json", "x4/zarr.json", "zarr.json"]);
}

#[test]
fn one_of_several_creators_of_a_tree_succeeds() {
    for _ in 0..4 {
        let server = Server::start(well());
        let results: Vec<bool> = std::thread::scope(|scope| {
            let run = |_| {
                let store = s3(&server);
                scope
                    .spawn(move || create(&store, nodes(&tree(3, 6), ZarrFormat::V3, Existing::Refuse), true))
            };
            let running: Vec<_> = (0..4).map(run).collect();
            running.into_iter().map(|thread| thread.join().unwrap().is_ok()).collect()
        });
        assert_eq!(results.iter().filter(|is_ok| **is_ok).count(), 1, "{results:?}");
        let root = open(s3(&server), "").unwrap().into_group().unwrap();
        assert_eq!(root.array("g2/x5").unwrap().read(0).unwrap().into_tensor().unwrap().bytes()[0], 5);
    }
}
