//! Arrays and groups that one or many clients create and write over S3.

use crate::arrays::{adapter, policy, store};
use crate::message::Message;
use crate::server::{Fault, Server, well};
use std::sync::Arc;
use std::time::Duration;
use zarrow::store::Store;
use zarrow::store::remote::RemoteAdapter;
use zarrow::{
    Array, ArrayBuilder, AttributeChange, Existing, Group, Node, Number, OpenOptions, Values, WriteOptions,
    ZarrFormat, create_array, create_array_with, create_group, open,
};

fn s3(server: &Server) -> Arc<dyn Store> {
    adapter(server, "bucket/tree", true)
}

fn array(store: &Arc<dyn Store>, path: &str) -> Array {
    match open(Arc::clone(store), path).unwrap() {
        Node::Array(array) => array,
        Node::Group(_) => panic!("an array was created"),
    }
}

fn elements(array: &Array) -> Vec<i32> {
    array.read(..).unwrap().into_tensor().unwrap().as_slice::<i32>().unwrap().to_vec()
}

fn group(store: &Arc<dyn Store>) -> Group {
    match open(Arc::clone(store), "").unwrap() {
        Node::Group(group) => group,
        Node::Array(_) => panic!("a group was created"),
    }
}

fn attributes(title: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::Map::from_iter([(title.to_owned(), 1.into())])
}

#[test]
fn a_tree_is_created_written_changed_and_erased() {
    let server = Server::start(well());
    let store = s3(&server);
    let options = OpenOptions::default();
    for format in [ZarrFormat::V2, ZarrFormat::V3] {
        create_group(Arc::clone(&store), "", format, attributes("one"), Existing::Erase, &options).unwrap();
        let error =
            create_group(Arc::clone(&store), "", format, attributes("two"), Existing::Refuse, &options)
                .unwrap_err();
        assert_eq!(error.kind().code(), "exists");
        let build = |chunks: [u64; 2], shards: Option<[u64; 2]>| {
            let builder = ArrayBuilder::new([7, 9], Number::Int32).zarr_format(format).chunk_shape(chunks);
            let builder = shards.map_or(builder.clone(), |shards| builder.shard_shape(shards));
            builder.build().unwrap()
        };
        let mut kinds = vec![("plain", build([3, 4], None))];
        if format == ZarrFormat::V3 {
            kinds.push(("sharded", build([2, 2], Some([4, 6]))));
        }
        for (name, metadata) in kinds {
            let path = format!("group/{name}");
            create_array(Arc::clone(&store), &path, metadata, Existing::Refuse, &options).unwrap();
            let mut array = array(&store, &path);
            let mut expected = vec![0_i32; 63];
            let all: Vec<i32> = (0..63).collect();
            array.write((.., ..), Values::slice(&all, &[7, 9]).unwrap()).unwrap();
            expected.copy_from_slice(&all);
            // Parts of chunks, to the fill value and back.
            for (value, rows) in [(-5, 2..5), (0, 1..6), (8, 3..4)] {
                array.write((rows.clone(), 1..8), Values::scalar(&value)).unwrap();
                for row in rows {
                    expected[row as usize * 9 + 1..row as usize * 9 + 8].fill(value);
                }
                assert_eq!(elements(&array), expected, "{name}");
            }
            array.append(Values::slice(&[1; 18], &[2, 9]).unwrap(), 0).unwrap();
            expected.extend([1; 18]);
            array.change_attributes(&AttributeChange::Update(attributes("units").into())).unwrap();
            let found = self::array(&store, &path);
            assert_eq!((elements(&found), found.shape()), (expected.clone(), &[9, 9][..]));
            array.resize(&[4, 9]).unwrap();
            assert_eq!(elements(&self::array(&store, &path)), expected[..36]);
        }
        let mut root = group(&store);
        root.consolidate_metadata().unwrap();
        let consolidated = group(&store);
        assert!(consolidated.is_consolidated());
        server.take_log();
        assert_eq!(consolidated.array("group/plain").unwrap().shape(), [4, 9]);
        let asked = server.take_log();
        assert!(asked.iter().all(|message| !message.target.contains("plain")), "{asked:?}");
        root.erase("group").unwrap();
        let left = server.objects(|objects| objects.all.keys().filter(|key| key.contains("/group/")).count());
        assert_eq!(left, 0);
    }
}

/// Writers of parts of the same chunks and shards; no part is a whole one.
#[test]
fn misaligned_writers_lose_nothing() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 6;
    // A few answers are slow, so that writers overlap.
    let server = Server::start(Box::new(|_: &Message, count| (count % 3 == 0).then_some(Fault::Late)));
    let store = s3(&server);
    for shards in [false, true] {
        let path = format!("shards {shards}");
        let builder = ArrayBuilder::new([(WRITERS * ROUNDS) as u64], Number::Int32).chunk_shape([5]);
        let builder = if shards { builder.shard_shape([10]) } else { builder };
        create_array(
            Arc::clone(&store),
            &path,
            builder.build().unwrap(),
            Existing::Refuse,
            &OpenOptions::default(),
        )
        .unwrap();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (server, path) = (&server, &path);
                scope.spawn(move || {
                    let own = Arc::new(RemoteAdapter::new(Arc::new(crate::arrays::store(
                        server, "bucket/tree", true,
                    ))));
                    let array = array(&(own as _), path);
                    for round in 0..ROUNDS {
                        let at = (round * WRITERS + writer) as i64;
                        array.write((at..at + 1,), Values::scalar(&(at as i32 + 1))).unwrap();
                    }
                });
            }
        });
        let expected: Vec<i32> = (1..=(WRITERS * ROUNDS) as i32).collect();
        assert_eq!(elements(&array(&store, &path)), expected, "shards: {shards}");
    }
}

#[test]
fn writes_beside_changes_of_attributes_are_not_refused() {
    let server = Server::start(well());
    let store = s3(&server);
    let metadata = ArrayBuilder::new([8], Number::Int32).chunk_shape([2]).build().unwrap();
    create_array(Arc::clone(&store), "x", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut array = array(store, "x");
                for round in 1..=25 {
                    if thread < 2 {
                        array.write((thread * 4..thread * 4 + 2,), Values::scalar(&round)).unwrap();
                    } else {
                        let change = AttributeChange::Update(attributes(&format!("{thread} {round}")).into());
                        array.change_attributes(&change).unwrap();
                    }
                }
            });
        }
    });
    let array = array(&store, "x");
    assert_eq!(elements(&array), [25, 25, 0, 0, 25, 25, 0, 0]);
    assert_eq!(array.metadata().attributes.len(), 50);
}

#[test]
fn who_appends_at_once_gets_places_of_their_own() {
    let server = Server::start(Box::new(|_: &Message, count| (count % 3 == 0).then_some(Fault::Late)));
    let store = s3(&server);
    let metadata = ArrayBuilder::new([0], Number::Int32).chunk_shape([4]).build().unwrap();
    create_array(Arc::clone(&store), "log", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for writer in 1..=3 {
            let store = &store;
            scope.spawn(move || {
                let mut array = array(store, "log");
                for _ in 0..4 {
                    let values = [writer; 3];
                    array.append(Values::slice(&values, &[3]).unwrap(), 0).unwrap();
                }
            });
        }
    });
    let found = elements(&array(&store, "log"));
    assert_eq!(found.len(), 36);
    for (row, writer) in found.chunks(3).zip(0..) {
        assert!(row.iter().all(|value| *value == row[0] && *value > 0), "row {writer}: {found:?}");
    }
    assert!((1..=3).all(|writer| found.iter().filter(|value| **value == writer).count() == 12));
}

#[test]
fn one_of_many_creators_of_a_node_succeeds_and_all_attributes_are_kept() {
    let server = Server::start(well());
    let store = s3(&server);
    let created: usize = std::thread::scope(|scope| {
        let create = || {
            let options = OpenOptions::default();
            create_group(
                Arc::clone(&store),
                "",
                ZarrFormat::V3,
                attributes("own"),
                Existing::Refuse,
                &options,
            )
            .is_ok()
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(create)).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(created, 1);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let store = &store;
            scope.spawn(move || {
                let name = format!("name{number}");
                group(store).change_attributes(&AttributeChange::Update(attributes(&name).into())).unwrap();
            });
        }
    });
    assert_eq!(group(&store).attributes().values().len(), 7);
}

#[test]
fn a_store_without_conditions_refuses_parts_and_takes_whole_chunks() {
    let server = Server::start(well());
    server.objects(|objects| objects.ignores_conditions = true);
    let remote = store(&server, "careless2/tree", true);
    let store: Arc<dyn Store> = Arc::new(RemoteAdapter::new(Arc::new(remote)));
    let metadata = ArrayBuilder::new([8], Number::Int32).chunk_shape([4]).build().unwrap();
    create_array(Arc::clone(&store), "", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    let array = array(&store, "");
    array.write((0..4,), Values::scalar(&3)).unwrap();
    let error = array.write((2..6,), Values::scalar(&5)).unwrap_err();
    assert_eq!(error.kind().code(), "unsupported");
    assert!(error.to_string().contains("conditional writes"), "{error}");
    assert_eq!(elements(&array), [3, 3, 3, 3, 0, 0, 0, 0]);
}

/// Creates an array of 12 elements, in chunks of 2, all equal to `value`.
fn created(store: &Arc<dyn Store>, path: &str, value: i32, existing: Existing) -> zarrow::Result<Array> {
    let metadata = ArrayBuilder::new([12], Number::Int32).chunk_shape([2]).build()?;
    let (options, write) = (OpenOptions::default(), WriteOptions::default());
    let values = [value; 12];
    let values = Values::slice(&values, &[12])?;
    create_array_with(Arc::clone(store), path, metadata, &values, existing, &options, &write)
}

/// Returns the keys below the tree.
fn keys(server: &Server) -> Vec<String> {
    let own = |key: &String| key.strip_prefix("bucket/tree/").map(str::to_owned);
    server.objects(|objects| objects.all.keys().filter_map(own).collect())
}

/// Creates the group of a test's nodes.
fn create_root(store: &Arc<dyn Store>) {
    let options = OpenOptions::default();
    create_group(Arc::clone(store), "", ZarrFormat::V3, attributes("one"), Existing::Refuse, &options)
        .unwrap();
}

/// Refuses all chunks but the first two, once the first is stored, and every delete if `with_deletes`.
///
/// All chunks are sent at once, so a refusal that does not wait could stop the write before any chunk is stored.
fn refusing(with_deletes: bool) -> crate::server::Manner {
    Box::new(move |message: &Message, _| {
        let is_refused = |number| message.path().ends_with(&format!("/c/{number}"));
        if message.method == "PUT" && (2..6).any(is_refused) {
            return Some(Fault::StatusAfter(403, "/c/0"));
        }
        (with_deletes && message.target.contains("?delete")).then_some(Fault::Status(403))
    })
}

#[test]
fn metadata_of_arrays_with_elements_are_written_last() {
    let server = Server::start(well());
    let store = s3(&server);
    create_root(&store);
    server.take_log();
    let array = created(&store, "x", 5, Existing::Refuse).unwrap();
    assert_eq!(elements(&array), [5; 12]);
    let puts: Vec<Message> =
        server.take_log().into_iter().filter(|message| message.method == "PUT").collect();
    let (first, last) = (&puts[0], &puts[puts.len() - 1]);
    assert!(first.path().ends_with("x/zarr.json") && first.header("if-none-match").is_some());
    assert!(last.path().ends_with("x/zarr.json") && last.header("if-match").is_some());
    assert_eq!(puts.len(), 8, "both documents, and the chunks between them");
    assert_eq!(elements(&self::array(&store, "x")), [5; 12]);
}

#[test]
fn an_array_that_cannot_be_written_leaves_nothing() {
    let server = Server::start(well());
    let store = s3(&server);
    create_root(&store);
    server.behave(refusing(false));
    assert!(created(&store, "x", 5, Existing::Refuse).is_err());
    server.behave(well());
    assert_eq!(keys(&server), ["zarr.json"]);
    created(&store, "x", 6, Existing::Refuse).unwrap();
}

/// The server applies puts long after it received them, and refuses one at once. The late ones are deleted too.
#[test]
fn a_cleanup_waits_for_puts_that_were_sent() {
    let server = Server::start(well());
    let mut patient = policy();
    patient.silence = Duration::from_secs(20);
    let store: Arc<dyn Store> =
        Arc::new(RemoteAdapter::new(Arc::new(store(&server, "bucket/tree", true).with_policy(patient))));
    create_root(&store);
    server.behave(Box::new(|message: &Message, _| {
        let is_chunk = message.method == "PUT" && message.target.contains("/c/");
        let is_last = message.path().ends_with("/c/5");
        is_chunk.then_some(if is_last { Fault::Status(403) } else { Fault::Slow })
    }));
    server.take_log();
    assert!(created(&store, "x", 5, Existing::Refuse).is_err());
    let sent = server.take_log();
    let late =
        sent.iter().filter(|message| message.method == "PUT" && message.target.contains("/c/")).count();
    assert!(late > 1, "no chunk was sent before the refusal");
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(keys(&server), ["zarr.json"]);
    // A put that was cancelled is not applied after a later one of the same key.
    server.behave(Box::new(|message: &Message, count| {
        (message.method == "PUT" && message.target.contains("/c/") && count == 1).then_some(Fault::Slow)
    }));
    let metadata = ArrayBuilder::new([2], Number::Int32).build().unwrap();
    let array =
        create_array(Arc::clone(&store), "y", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    server.take_log();
    let is_sent = || server.take_log().iter().any(|message| message.method == "PUT");
    let cancel = move || is_sent();
    let write = WriteOptions::default().cancel(&cancel);
    let error = array.write_request(..).unwrap().options(&write).write(&Values::scalar(&1_i32)).unwrap_err();
    assert_eq!(error.kind().code(), "interrupted", "{error}");
    array.write(.., Values::scalar(&2_i32)).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(elements(&array), [2; 2]);
}

/// A writer killed between its chunks leaves no node, and nothing that obstructs another creator.
#[test]
fn an_interrupted_creation_leaves_no_array() {
    let server = Server::start(well());
    let store = s3(&server);
    create_root(&store);
    for old in [false, true] {
        if old {
            group(&store).consolidate_metadata().unwrap();
        }
        let existing = if old { Existing::EraseArray } else { Existing::Refuse };
        server.behave(refusing(!old));
        let failed = created(&store, "x", 5, existing);
        server.behave(well());
        assert!(failed.is_err());
        if !old {
            assert!(keys(&server).iter().any(|key| key == "x/zarr.json"), "deletes were refused");
            server.objects(|objects| objects.put("bucket/tree/x/c/0", vec![5; 8]));
            let error = created(&store, "x", 6, Existing::Refuse).unwrap_err();
            assert!(error.kind().code() == "exists" && error.to_string().contains("interrupted"), "{error}");
        }
        let error = open(Arc::clone(&store), "x").unwrap_err();
        assert_eq!(error.kind().code(), "not_found");
        let mut root = group(&store);
        assert!(root.children().unwrap().is_empty() && root.listed().unwrap().names().is_empty());
        root.consolidate_metadata().unwrap();
        assert!(group(&store).children().unwrap().is_empty());
        let array = created(&store, "x", 7, Existing::EraseArray).unwrap();
        assert_eq!(elements(&array), [7; 12]);
        assert_eq!(group(&store).children().unwrap().len(), 1);
        assert_eq!(elements(&self::array(&store, "x")), [7; 12]);
    }
}

#[test]
fn one_of_many_creators_of_an_array_succeeds_with_its_elements() {
    let server = Server::start(Box::new(|_: &Message, count| (count % 3 == 0).then_some(Fault::Late)));
    let store = s3(&server);
    for round in 0..4 {
        let path = format!("x{round}");
        let made: Vec<zarrow::Result<Array>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6)
                .map(|value| {
                    let (store, path) = (&store, &path);
                    scope.spawn(move || created(store, path, value, Existing::Refuse))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut winners = (0..).zip(&made).filter(|(_, made)| made.is_ok());
        let (winner, _) = winners.next().unwrap();
        assert_eq!(winners.count(), 0);
        let losers = made.iter().filter_map(|made| made.as_ref().err());
        assert!(losers.into_iter().all(|error| error.kind().code() == "exists"));
        assert_eq!(elements(&array(&store, &path)), [winner; 12]);
    }
}
