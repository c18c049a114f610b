//! Counts the requests of each change of a node, and runs changes concurrently without loss.

use crate::arrays::counted;
use crate::message::Message;
use crate::server::{Fault, Server, well};
use serde_json::json;
use std::sync::Arc;
use zarrow::store::Store;
use zarrow::{
    Array, ArrayBuilder, AttributeChange, Existing, Group, Number, OpenOptions, Values, WriteOptions,
    ZarrFormat, create_array, create_array_with, create_group, open,
};

fn s3(server: &Server) -> Arc<dyn Store> {
    counted(server, "bucket/tree")
}

fn puts(log: &[Message]) -> usize {
    log.iter().filter(|message| message.method == "PUT").count()
}

/// Counts requests of `work`: all, and puts separately.
fn requests<T>(server: &Server, work: impl FnOnce() -> T) -> (usize, usize, T) {
    server.take_log();
    let done = work();
    let log = server.take_log();
    (log.len(), puts(&log), done)
}

fn attribute(name: &str) -> AttributeChange {
    AttributeChange::Update(serde_json::Map::from_iter([(name.to_owned(), json!(1))]).into())
}

fn group(store: &Arc<dyn Store>, path: &str) -> Group {
    let (format, options) = (ZarrFormat::V3, OpenOptions::default());
    create_group(Arc::clone(store), path, format, serde_json::Map::new(), Existing::Refuse, &options).unwrap()
}

fn array(store: &Arc<dyn Store>, path: &str, existing: Existing) -> Array {
    let metadata = ArrayBuilder::new([4, 6], Number::Int32).chunk_shape([2, 6]).build().unwrap();
    create_array(Arc::clone(store), path, metadata, existing, &OpenOptions::default()).unwrap()
}

#[test]
fn changes_of_a_node_send_few_requests() {
    let server = Server::start(well());
    let store = s3(&server);
    // The first conditional put to a server probes its support of conditions.
    group(&(counted(&server, "bucket/first") as Arc<dyn Store>), "");
    let (all, put, _) = requests(&server, || group(&store, ""));
    assert_eq!((all, put), (2, 1), "a listing of the path, and the document");
    let (all, put, _) = requests(&server, || array(&store, "fresh", Existing::Refuse));
    assert!(all <= 4 && put == 1, "no list in the first second: {all}");
    // Another store object does not know that the group is new.
    let store = s3(&server);
    let (all, put, mut own) = requests(&server, || array(&store, "x", Existing::Refuse));
    assert_eq!((all, put), (4, 1), "also the two documents of the group");
    let (all, put, _) = requests(&server, || own.change_attributes(&attribute("one")).unwrap());
    assert_eq!((all, put), (3, 1), "this store put the document: it reads only those of the group");
    let rows = [1_i32; 12];
    let (all, put, _) = requests(&server, || own.append(Values::slice(&rows, &[2, 6]).unwrap(), 0).unwrap());
    assert_eq!((all, put), (4, 2), "the shape, and then the chunk");
    // The shape of another store object is read.
    let mut other = open(s3(&server), "x").unwrap().into_array().unwrap();
    let (all, put, _) =
        requests(&server, || other.append(Values::slice(&rows, &[2, 6]).unwrap(), 0).unwrap());
    assert_eq!((all, put), (5, 2));
    own.refresh().unwrap();
    let (all, put, _) = requests(&server, || own.resize(&[20, 6]).unwrap());
    assert_eq!((all, put), (5, 1), "three documents and a list, and then the shape");
    let (all, put, _) = requests(&server, || own.resize(&[2, 6]).unwrap());
    assert_eq!((all, put), (6, 1), "also one delete of both chunks");
    let metadata = ArrayBuilder::new([4], Number::Int32).build().unwrap();
    let (all, put, _) = requests(&server, || {
        let (options, write) = (OpenOptions::default(), WriteOptions::default());
        let (store, existing) = (Arc::clone(&store), Existing::Refuse);
        create_array_with(store, "y", metadata, &Values::scalar(&5_i32), existing, &options, &write).unwrap()
    });
    assert_eq!((all, put), (8, 3), "unfinished, chunk, finished; and the group once more");
    let (all, put, _) = requests(&server, || array(&store, "y", Existing::Erase));
    assert_eq!((all, put), (8, 1), "the document, a list of all keys, two deletes");
    let (all, put, _) = requests(&server, || own.write((.., 1..), Values::scalar(&2_i32)).unwrap());
    assert_eq!((all, put), (3 + 1, 1));
}

/// A change of a document that this store object put last starts with a put. Changes by others in between must stay.
#[test]
fn cached_documents_hide_no_changes_by_other_writers() {
    let server = Server::start(well());
    let store = s3(&server);
    let mut own = array(&store, "", Existing::Refuse);
    let mut other = open(s3(&server), "").unwrap().into_array().unwrap();
    let set = |value: i32| {
        AttributeChange::Update(serde_json::Map::from_iter([("a".to_owned(), json!(value))]).into())
    };
    let stored = || open(s3(&server), "").unwrap().into_array().unwrap();
    own.change_attributes(&set(1)).unwrap();
    other.change_attributes(&set(2)).unwrap();
    // The recalled document has this value already.
    own.change_attributes(&set(1)).unwrap();
    assert_eq!(stored().metadata().attributes.get("a"), Some(&json!(1)));
    own.change_attributes(&set(3)).unwrap();
    other.resize(&[4, 9]).unwrap();
    // Rows of six elements fit the recalled shape alone.
    assert_eq!(
        own.append(Values::slice(&[1_i32; 6], &[1, 6]).unwrap(), 0).unwrap_err().kind().code(),
        "index"
    );
    assert_eq!(own.append(Values::slice(&[1_i32; 9], &[1, 9]).unwrap(), 0).unwrap(), 4);
    // Another layout takes the place of the document.
    own.change_attributes(&set(4)).unwrap();
    let metadata = ArrayBuilder::new([4], Number::Float64).build().unwrap();
    create_array(s3(&server), "", metadata, Existing::Erase, &OpenOptions::default()).unwrap();
    let mut new = open(Arc::clone(&store), "").unwrap().into_array().unwrap();
    new.change_attributes(&set(5)).unwrap();
    assert_eq!(own.change_attributes(&set(6)).unwrap_err().kind().code(), "stale");
    assert_eq!(stored().metadata().attributes.get("a"), Some(&json!(5)));
}

/// Each handle starts from an outdated document.
#[test]
fn changes_by_others_in_between_are_kept() {
    let server = Server::start(well());
    let store = s3(&server);
    group(&store, "");
    array(&store, "x", Existing::Refuse);
    let handle = || open(s3(&server), "x").unwrap().into_array().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let mut own = handle();
            scope.spawn(move || {
                for number in 0..5 {
                    own.change_attributes(&attribute(&format!("{writer}.{number}"))).unwrap();
                    own.append(Values::scalar(&(writer * 10 + number)).broadcast(&[1, 6]).unwrap(), 0)
                        .unwrap();
                }
            });
        }
    });
    let found = handle();
    assert_eq!((found.shape(), found.metadata().attributes.len()), (&[24, 6][..], 20));
    let read = found.read((4.., 0)).unwrap().into_tensor().unwrap();
    let mut rows = read.as_slice::<i32>().unwrap().to_vec();
    rows.sort_unstable();
    let written: Vec<i32> =
        (0..4).flat_map(|writer| (0..5).map(move |number| writer * 10 + number)).collect();
    assert_eq!(rows, written);
}

/// The group is consolidated while the elements of a new array are written.
#[test]
fn an_array_is_added_to_a_concurrently_consolidated_group() {
    let server = Server::start(well());
    let store = s3(&server);
    let root = group(&store, "");
    // The chunk takes long enough for a cancellation check.
    server.behave(Box::new(|message: &Message, count| {
        let is_chunk = message.method == "PUT" && message.target.contains("/c/");
        (is_chunk && count == 1).then_some(Fault::Silent)
    }));
    let consolidated = std::sync::Mutex::new(Some(root));
    let cancel = || {
        if let Some(mut root) = consolidated.lock().unwrap().take() {
            root.consolidate_metadata().unwrap();
        }
        false
    };
    let metadata = ArrayBuilder::new([4], Number::Int32).build().unwrap();
    let (options, write) = (OpenOptions::default(), WriteOptions::default().cancel(&cancel));
    let values = Values::scalar(&5_i32);
    create_array_with(Arc::clone(&store), "x", metadata, &values, Existing::Refuse, &options, &write)
        .unwrap();
    assert!(consolidated.lock().unwrap().is_none(), "the write asked whether to stop");
    let found = open(s3(&server), "").unwrap().into_group().unwrap();
    let names: Vec<String> = found.children().unwrap().into_iter().map(|(name, _)| name).collect();
    assert!(found.is_consolidated() && names == ["x"], "{names:?}");
}
