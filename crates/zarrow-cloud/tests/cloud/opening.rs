//! Opening nodes: which documents are requested, how many at once, and that a guess never changes the result.

use crate::arrays::counted;
use crate::message::Message;
use crate::server::{Fault, Server, well};
use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use zarrow::store::Store;
use zarrow::{Array, Group, Node, OpenOptions, ZarrFormat, open, open_detached};

const V3_GROUP: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;
const V2_GROUP: &str = r#"{"zarr_format": 2}"#;

fn v3_array(length: u64) -> String {
    format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{length}], "data_type": "int32", "fill_value": 0,
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [4]}}}},
        "chunk_key_encoding": {{"name": "default"}},
        "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}]}}"#
    )
}

fn v2_array(length: u64) -> String {
    format!(
        r#"{{"zarr_format": 2, "shape": [{length}], "chunks": [4], "dtype": "<i4", "compressor": null, "filters": null,
        "order": "C", "fill_value": 0}}"#
    )
}

/// A store in a bucket for one test: known documents are kept by store name.
struct Bucket {
    server: Server,
    path: String,
    store: Arc<dyn Store>,
}

impl Bucket {
    fn new(name: &str, documents: &[(&str, &str)]) -> Bucket {
        let (server, path) = (Server::start(well()), format!("{name}/tree"));
        let store = counted(&server, &path);
        let bucket = Bucket { server, path, store };
        bucket.put(documents);
        bucket
    }

    fn put(&self, documents: &[(&str, &str)]) {
        for (key, text) in documents {
            let key = format!("{}/{key}", self.path);
            self.server.objects(|objects| objects.put(&key, text.as_bytes().to_vec()));
        }
    }

    fn remove(&self, key: &str) {
        self.server.objects(|objects| objects.all.remove(&format!("{}/{key}", self.path)));
    }

    /// Returns the store at a path below.
    fn below(&self, path: &str) -> Arc<dyn Store> {
        counted(&self.server, &format!("{}/{path}", self.path))
    }

    fn opened(&self, path: &str) -> zarrow::Result<Node> {
        open(Arc::clone(&self.store), path)
    }

    fn array(&self, path: &str) -> Array {
        self.opened(path).unwrap().into_array().unwrap()
    }

    /// Opens the unknown group at the root.
    fn root(&self) -> Group {
        self.sends(5, || self.opened("")).unwrap().into_group().unwrap()
    }

    /// Checks how many requests an open sends.
    fn opens_by(&self, store: &Arc<dyn Store>, path: &str, expected: usize) {
        self.sends(expected, || open(Arc::clone(store), path).unwrap());
    }

    /// Checks how many requests `work` sends. It may return before the last one has arrived.
    fn sends<T>(&self, expected: usize, work: impl FnOnce() -> T) -> T {
        let begun = self.server.requests();
        let done = work();
        let sent = || self.server.requests() - begun;
        let mut waits = 0..500;
        while sent() < expected && waits.next().is_some() {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(sent(), expected);
        done
    }
}

#[test]
fn known_nodes_are_opened_by_their_documents() {
    let (three, two) = (v3_array(8), v2_array(8));
    let bucket = Bucket::new(
        "known",
        &[
            ("three/zarr.json", V3_GROUP),
            ("three/a/zarr.json", &three),
            ("three/b/zarr.json", &three),
            ("two/.zgroup", V2_GROUP),
            ("two/a/.zarray", &two),
            ("two/b/.zarray", &two),
        ],
    );
    for (path, requests) in [("three/a", 5), ("three/a", 1), ("three/b", 1), ("three", 5), ("three", 1)] {
        bucket.opens_by(&bucket.store, path, requests);
    }
    // The first one is treated as version 3, like the nodes beside its group.
    for (path, requests) in [("two/a", 5), ("two/a", 3), ("two/b", 3)] {
        bucket.opens_by(&bucket.store, path, requests);
    }
    // Another handle of the same store.
    bucket.opens_by(&bucket.below(""), "three/b", 1);
    bucket.opens_by(&bucket.below("two/a"), "", 3);
}

#[test]
fn the_version_that_a_caller_names_saves_requests() {
    let bucket = Bucket::new("named", &[("x/zarr.json", &v3_array(8)), ("y/z/.zarray", &v2_array(8))]);
    zarrow::expect_format(&*bucket.store, "x", ZarrFormat::V3);
    bucket.opens_by(&bucket.store, "x", 1);
    zarrow::expect_format(&*bucket.store, "y/z", ZarrFormat::V2);
    bucket.opens_by(&bucket.store, "y/z", 3);
}

#[test]
fn a_replaced_node_is_opened_in_its_new_version() {
    let bucket = Bucket::new("replaced", &[("x/.zarray", &v2_array(8)), ("y/zarr.json", &v3_array(8))]);
    for path in ["x", "y", "x", "y"] {
        assert_eq!(bucket.array(path).shape(), [8]);
    }
    // Version 3 comes first, even if the old document still exists.
    bucket.put(&[("x/zarr.json", &v3_array(16))]);
    assert_eq!(bucket.array("x").shape(), [16]);
    bucket.remove("x/zarr.json");
    assert_eq!(bucket.array("x").shape(), [8]);
    bucket.put(&[("y/.zarray", &v2_array(24)), ("y/.zattrs", r#"{"unit": "m"}"#)]);
    bucket.remove("y/zarr.json");
    let array = bucket.array("y");
    assert_eq!((array.shape(), array.metadata().attributes.get("unit").is_some()), (&[24][..], true));
    // An array that became a group of either version, consolidated since.
    bucket.remove("x/.zarray");
    bucket.put(&[
        ("x/.zgroup", V2_GROUP),
        ("x/.zmetadata", r#"{"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}}"#),
    ]);
    assert!(bucket.opened("x").unwrap().into_group().unwrap().is_consolidated());
    bucket.remove("x/.zgroup");
    bucket.remove("x/.zmetadata");
    for path in ["x", "x"] {
        assert_eq!(bucket.opened(path).unwrap_err().kind().code(), "not_found");
    }
    bucket.put(&[("x/zarr.json", V3_GROUP)]);
    assert_eq!(bucket.opened("x").unwrap().into_group().unwrap().zarr_format(), ZarrFormat::V3);
}

#[test]
fn many_nodes_are_opened_at_once_without_threads() {
    const NODES: usize = 120;
    let keys: Vec<String> = (0..NODES).map(|number| format!("{number}/zarr.json")).collect();
    let text = v3_array(8);
    let documents: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), text.as_str())).collect();
    let bucket = Bucket::new("many", &documents);
    bucket.server.behave(Box::new(|_: &Message, _| Some(Fault::Late)));
    let (sender, results) = mpsc::channel();
    for number in 0..NODES {
        let sender = sender.clone();
        let done = move |node: zarrow::Result<Node>| sender.send((number, node)).unwrap();
        open_detached(Arc::clone(&bucket.store), &number.to_string(), &OpenOptions::default(), done).unwrap();
    }
    drop(sender);
    let mut found: Vec<usize> =
        results.iter().map(|(number, node)| node.unwrap().into_array().map(|_| number).unwrap()).collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..NODES));
    assert!(bucket.server.most_at_once() > 16, "{} at once", bucket.server.most_at_once());
    let log = bucket.server.take_log();
    let asked: BTreeSet<String> = log.iter().map(Message::path).collect();
    assert_eq!(asked.len(), NODES + 4, "only the first requests all documents");
}

#[test]
fn a_detached_open_ends_as_an_open_does() {
    let bucket = Bucket::new("detached", &[("x/.zarray", &v2_array(8)), ("bad/zarr.json", "{")]);
    let outcome = |path: &str| {
        let (sender, result) = mpsc::channel();
        let done = move |node: zarrow::Result<Node>| sender.send(node).unwrap();
        open_detached(Arc::clone(&bucket.store), path, &OpenOptions::default(), done)
            .map(|_| result.recv().unwrap())
    };
    assert_eq!(outcome("x").unwrap().unwrap().into_array().unwrap().shape(), [8]);
    for (path, code) in [("nothing", "not_found"), ("bad", "metadata")] {
        let error = outcome(path).unwrap().unwrap_err();
        assert_eq!(error.kind().code(), code);
        assert!(error.to_string().contains(path), "{error}");
    }
    assert_eq!(outcome("../x").unwrap_err().kind().code(), "bad_key");
    bucket.server.behave(Box::new(|_: &Message, _| Some(Fault::Status(403))));
    assert_eq!(outcome("x").unwrap().unwrap_err().kind().code(), "permission");
}

#[test]
fn a_cancelled_open_ends_at_once() {
    let bucket = Bucket::new("cancelled", &[("x/zarr.json", V3_GROUP)]);
    bucket.server.behave(Box::new(|_: &Message, _| Some(Fault::Silent)));
    let (sender, result) = mpsc::channel();
    let done = move |node: zarrow::Result<Node>| sender.send(node).unwrap();
    let work = open_detached(Arc::clone(&bucket.store), "x", &OpenOptions::default(), done).unwrap();
    work.cancel();
    let error = result.recv_timeout(Duration::from_millis(400)).unwrap().unwrap_err();
    assert_eq!(error.kind().code(), "interrupted");
}

fn names(members: &[(String, zarrow::Result<Node>)]) -> Vec<&str> {
    members.iter().map(|(name, node)| node.as_ref().map(|_| name.as_str()).unwrap()).collect()
}

#[test]
fn a_list_shows_the_members_of_a_group_and_their_documents() {
    let (three, two) = (v3_array(8), v2_array(8));
    let bucket = Bucket::new(
        "listed",
        &[
            ("zarr.json", V3_GROUP),
            ("a/zarr.json", &three),
            ("a/c/0", "1234"),
            ("b/zarr.json", V3_GROUP),
            ("b/x/zarr.json", &three),
            ("c/.zarray", &two),
            ("d/.zarray", &two),
            ("d/.zattrs", r#"{"unit": "m"}"#),
            ("e/.zgroup", V2_GROUP),
            ("no/node", "text"),
            ("notes", "text"),
        ],
    );
    let group = bucket.root();
    let listed = bucket.sends(1, || group.listed().unwrap());
    assert_eq!(listed.names(), ["a", "b", "c", "d", "e"]);
    let opened = bucket.sends(1 + 1 + 1 + 2 + 1, || listed.open(0..5).unwrap());
    assert!(opened.iter().all(Option::is_some));
    let members = bucket.sends(1 + 6, || group.children().unwrap());
    assert_eq!(names(&members), ["a", "b", "c", "d", "e"]);
    let unit = |node: &Node| match node {
        Node::Array(array) => array.metadata().attributes.get("unit").is_some(),
        Node::Group(_) => false,
    };
    assert!(
        members.iter().map(|(_, node)| unit(node.as_ref().unwrap())).eq([false, false, false, true, false])
    );
    // The version of a node may have changed since the list.
    bucket.remove("a/zarr.json");
    bucket.put(&[("a/.zarray", &two), ("a/.zattrs", "{}")]);
    assert!(bucket.sends(1 + 4, || listed.open(0..1).unwrap()).iter().all(Option::is_some));
}

#[test]
fn a_large_group_is_listed_by_its_names() {
    let three = v3_array(8);
    let chunks: Vec<String> = (0..100).map(|number| format!("a/c/{number}")).collect();
    let mut documents: Vec<(&str, &str)> = chunks.iter().map(|key| (key.as_str(), "1234")).collect();
    documents.extend([
        ("zarr.json", V3_GROUP),
        ("a/zarr.json", &three),
        ("b/zarr.json", &three),
        ("no/x", ""),
    ]);
    let bucket = Bucket::new("large", &documents);
    let group = bucket.root();
    // One page of all keys, the names, and documents, also of the folder `no`.
    assert_eq!(bucket.sends(1 + 1 + 3 + 4, || group.listed().unwrap()).names(), ["a", "b"]);
    let listed = bucket.sends(1 + 3 + 4, || group.listed().unwrap());
    assert!(bucket.sends(0, || listed.open(0..2).unwrap()).iter().all(Option::is_some));
    // A bucket may allow lists of names alone.
    let other = Bucket::new("allowed", &[("zarr.json", V3_GROUP), ("a/zarr.json", &three)]);
    let group = other.root();
    other.server.behave(Box::new(|message: &Message, _| {
        let is_recursive = message.query("list-type").is_some()
            && message.query("delimiter").is_none_or(|text| text.is_empty());
        is_recursive.then_some(Fault::Status(403))
    }));
    assert_eq!(group.listed().unwrap().names(), ["a"]);
}

#[test]
fn whether_a_node_exists_takes_one_round_trip() {
    let (three, two) = (v3_array(8), v2_array(8));
    let bucket =
        Bucket::new("exists", &[("zarr.json", V3_GROUP), ("a/zarr.json", &three), ("b/.zarray", &two)]);
    let group = bucket.root();
    bucket.opens_by(&bucket.store, "a", 1);
    let found = |path: &str| group.find(path).unwrap().is_some();
    assert!(!bucket.sends(3, || found("no")));
    assert!(bucket.sends(3, || found("a")));
    // The documents that only an array of version 2 has are requested once it is known to be one.
    assert!(bucket.sends(3 + 2, || found("b")));
    assert!(bucket.sends(1 + 4, || group.get("no").is_err()));
    bucket.server.behave(Box::new(|_: &Message, _| Some(Fault::Status(403))));
    assert_eq!(group.find("no").unwrap_err().kind().code(), "permission");
}

#[test]
fn urls_open_in_place_of_paths() {
    let bucket = Bucket::new("urls", &[("zarr.json", V3_GROUP), ("a/zarr.json", &v3_array(5))]);
    zarrow_cloud::open_urls();
    assert_eq!(Array::open(bucket.server.url("urls/tree/a")).unwrap().shape(), [5]);
    assert!(Group::open(bucket.server.url("urls/tree")).unwrap().attributes().is_empty());
    // A web server takes no values. What opens URLs is asked for new nodes, too.
    let refused = Group::create(bucket.server.url("urls/new")).unwrap_err();
    assert_eq!(refused.kind().code(), "read_only", "{refused}");
    assert!(!refused.to_string().contains("zarrow_cloud"), "{refused}");
}
