//! Drops each request of each operation, before it is applied and after, while another client does the same.
//!
//! Every returned operation must be stored exactly once.

use crate::arrays::{adapter, policy};
use crate::message::Message;
use crate::server::{Fault, Manner, Server, well};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use zarrow::store::Store;
use zarrow::store::remote::RemoteAdapter;
use zarrow::{
    Array, ArrayBuilder, AttributeChange, Existing, Group, Node, Number, OpenOptions, Result, Values,
    WriteOptions, ZarrFormat, create_array, create_array_with, create_group, open,
};
use zarrow_cloud::{CloudStore, StorageOptions};

/// Access key of the client under attack, which identifies its requests.
const ATTACKED: &str = "AKIDATTACKED";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Append,
    AppendToShard,
    WriteAbsent,
    WriteStored,
    WriteShard,
    Attributes(ZarrFormat),
    CreateArray(ZarrFormat),
    CreateWith,
    CreateGroup,
    Resize,
    Erase,
}

const OPERATIONS: [Operation; 13] = [
    Operation::Append,
    Operation::AppendToShard,
    Operation::WriteAbsent,
    Operation::WriteStored,
    Operation::WriteShard,
    Operation::Attributes(ZarrFormat::V2),
    Operation::Attributes(ZarrFormat::V3),
    Operation::CreateArray(ZarrFormat::V2),
    Operation::CreateArray(ZarrFormat::V3),
    Operation::CreateWith,
    Operation::CreateGroup,
    Operation::Resize,
    Operation::Erase,
];

fn array(store: &Arc<dyn Store>) -> Result<Array> {
    open(Arc::clone(store), "x").map(|node| match node {
        Node::Array(array) => array,
        Node::Group(_) => panic!("an array was created"),
    })
}

fn group(store: &Arc<dyn Store>) -> Result<Group> {
    open(Arc::clone(store), "").map(|node| match node {
        Node::Group(group) => group,
        Node::Array(_) => panic!("a group was created"),
    })
}

fn elements(store: &Arc<dyn Store>) -> Vec<i32> {
    array(store).unwrap().read(..).unwrap().into_tensor().unwrap().as_slice::<i32>().unwrap().to_vec()
}

impl Operation {
    fn zarr_format(self) -> ZarrFormat {
        match self {
            Operation::Attributes(format) | Operation::CreateArray(format) => format,
            _ => ZarrFormat::V3,
        }
    }

    fn creates(self) -> bool {
        matches!(self, Operation::CreateArray(_) | Operation::CreateWith | Operation::CreateGroup)
    }

    fn build(self) -> zarrow::metadata::ArrayMetadata {
        let extent = if matches!(self, Operation::Append | Operation::AppendToShard) { 4 } else { 8 };
        let builder = ArrayBuilder::new([extent], Number::Int32).zarr_format(self.zarr_format());
        let builder = match self {
            Operation::AppendToShard | Operation::WriteShard => builder.chunk_shape([2]).shard_shape([8]),
            Operation::CreateWith | Operation::Resize => builder.chunk_shape([3]),
            _ => builder.chunk_shape([8]),
        };
        builder.build().unwrap()
    }

    /// Stores the node that the operation changes.
    fn prepare(self, store: &Arc<dyn Store>) {
        let (options, format) = (OpenOptions::default(), self.zarr_format());
        create_group(Arc::clone(store), "", format, serde_json::Map::new(), Existing::Refuse, &options)
            .unwrap();
        if self.creates() {
            return;
        }
        let made = create_array(Arc::clone(store), "x", self.build(), Existing::Refuse, &options).unwrap();
        if self != Operation::WriteAbsent {
            made.write((..,), Values::scalar(&9)).unwrap();
        }
    }

    /// Runs the operation with values that identify `who`, 1 or 2; returns the place of appended elements.
    fn run(self, store: &Arc<dyn Store>, who: i32) -> Result<u64> {
        let options = OpenOptions::default();
        let half = if who == 1 { 1..3 } else { 5..7 };
        let own = serde_json::Map::from_iter([(format!("by {who}"), who.into())]);
        let store = Arc::clone(store);
        match self {
            Operation::Append | Operation::AppendToShard => {
                return array(&store)?.append(Values::slice(&[who; 2], &[2])?, 0);
            }
            Operation::WriteAbsent | Operation::WriteStored | Operation::WriteShard => {
                array(&store)?.write((half,), Values::scalar(&who))?;
            }
            Operation::Attributes(_) => {
                array(&store)?.change_attributes(&AttributeChange::Update(own.into()))?;
            }
            Operation::CreateArray(_) => {
                drop(create_array(store, "x", self.build(), Existing::Refuse, &options)?);
            }
            Operation::CreateWith => {
                let (values, write) = ([who; 8], WriteOptions::default());
                let values = Values::slice(&values, &[8])?;
                create_array_with(store, "x", self.build(), &values, Existing::Refuse, &options, &write)?;
            }
            Operation::CreateGroup => {
                drop(create_group(store, "x", ZarrFormat::V3, own, Existing::Refuse, &options)?);
            }
            Operation::Resize => array(&store)?.resize(&[if who == 1 { 4 } else { 10 }])?,
            Operation::Erase => group(&store)?.erase("x")?,
        }
        Ok(0)
    }

    /// Error kinds that are valid results of a concurrent operation.
    fn expected_errors(self) -> &'static [&'static str] {
        match self {
            Operation::Resize => &["stale"],
            Operation::Erase => &["not_found"],
            _ if self.creates() => &["exists"],
            _ => &[],
        }
    }

    /// Checks the stored node against the results of both clients.
    fn check(self, store: &Arc<dyn Store>, results: [&Result<u64>; 2]) {
        let done: Vec<i32> =
            (1..).zip(results).filter(|(_, result)| result.is_ok()).map(|(who, _)| who).collect();
        let failed = 2 - done.len();
        match self {
            Operation::Append | Operation::AppendToShard => {
                let found = elements(store);
                assert_eq!(found[..4], [9; 4]);
                let places = (1..)
                    .zip(results)
                    .filter_map(|(who, result)| Some((who, *result.as_ref().ok()? as usize)));
                let places: Vec<(i32, usize)> = places.collect();
                for (who, place) in &places {
                    assert_eq!(found[*place..place + 2], [*who; 2], "{found:?}");
                }
                assert!(
                    (4 + 2 * done.len()..=4 + 2 * (done.len() + failed)).contains(&found.len()),
                    "{found:?}"
                );
            }
            Operation::WriteAbsent | Operation::WriteStored | Operation::WriteShard => {
                let found = elements(store);
                for who in done {
                    let at = if who == 1 { 1 } else { 5 };
                    assert_eq!(found[at..at + 2], [who; 2], "{found:?}");
                }
            }
            Operation::Attributes(_) => {
                let array = array(store).unwrap();
                done.iter()
                    .for_each(|who| assert!(array.metadata().attributes.contains_key(&format!("by {who}"))));
            }
            Operation::CreateArray(_) => {
                assert!(done.len() == 1 || failed == 2, "both created it");
                assert_eq!(elements(store), [0; 8]);
            }
            Operation::CreateWith => {
                assert!(done.len() <= 1, "both created it");
                done.iter().for_each(|who| assert_eq!(elements(store), [*who; 8]));
            }
            Operation::CreateGroup => {
                assert!(done.len() <= 1, "both created it");
                let Node::Group(group) = open(Arc::clone(store), "x").unwrap() else { panic!("a group") };
                assert_eq!(group.attributes().len(), 1);
                done.iter().for_each(|who| assert!(group.attributes().contains_key(&format!("by {who}"))));
            }
            Operation::Resize => {
                let found = elements(store);
                let shapes: BTreeSet<usize> = done.iter().map(|who| if *who == 1 { 4 } else { 10 }).collect();
                assert!(shapes.contains(&found.len()) || failed > 0, "{found:?} after {done:?}");
                assert_eq!(found[..4], [9; 4]);
                assert!(found.len() <= 8 || found[8..] == [0, 0], "{found:?}");
            }
            Operation::Erase => {
                assert!(!done.is_empty() || results.iter().any(|result| is_uncertain(result)));
                if !done.is_empty() {
                    assert_eq!(array(store).unwrap_err().kind().code(), "not_found");
                }
            }
        }
    }
}

fn is_uncertain(result: &Result<u64>) -> bool {
    result.as_ref().is_err_and(|error| error.kind().code() == "uncertain")
}

/// Drops the attacked client's request of this number.
fn dropping(number: usize, fault: Option<Fault>) -> (Manner, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let manner = move |message: &Message, _| {
        let is_own = message.header("authorization").is_some_and(|text| text.contains(ATTACKED));
        fault.filter(|_| is_own && count.fetch_add(1, Ordering::SeqCst) == number)
    };
    (Box::new(manner), sent)
}

fn attacked(server: &Server, path: &str) -> Arc<dyn Store> {
    let options = serde_json::json!({
        "key": ATTACKED, "secret": "secret", "endpoint_url": format!("http://{}", server.address), "region": "us-east-1",
    });
    let options = StorageOptions::from_json(&options.to_string()).unwrap();
    let store = CloudStore::new(&format!("s3://{path}"), options).unwrap().with_policy(policy());
    Arc::new(RemoteAdapter::new(Arc::new(store)))
}

/// Drops each request of an operation in turn; returns the number of uncertain results.
fn attack(operation: Operation, forgets_metadata: bool) -> usize {
    let server = Server::start(well());
    server.objects(|objects| objects.forgets_metadata = forgets_metadata);
    let (mut requests, mut number, mut uncertain) = (usize::MAX, 0, 0);
    while number < requests {
        for fault in [Fault::Reset, Fault::Lost] {
            let path = format!("bucket/{fault:?}-{number}");
            let other: Arc<dyn Store> = adapter(&server, &path, true);
            operation.prepare(&other);
            // The server's support of conditions is already known.
            let own = attacked(&server, &path);
            let (manner, sent) = dropping(number, Some(fault));
            server.behave(manner);
            let second = Arc::new(Mutex::new(None));
            let (outcome, store) = (Arc::clone(&second), Arc::clone(&other));
            server.meanwhile(move || {
                let result = operation.run(&store, 2);
                *outcome.lock().unwrap() = Some(result);
            });
            let first = operation.run(&own, 1);
            server.behave(well());
            server.meanwhile(|| {});
            requests = sent.load(Ordering::SeqCst);
            let Some(second) = second.lock().unwrap().take() else { continue };
            let place = format!("{operation:?}, request {number}, {fault:?}: {first:?}, {second:?}");
            for result in [&first, &second] {
                uncertain += usize::from(is_uncertain(result));
                let Err(error) = result else { continue };
                let code = error.kind().code();
                let is_expected =
                    operation.expected_errors().contains(&code) || forgets_metadata && code == "uncertain";
                assert!(is_expected, "{place}");
            }
            let checked = std::panic::AssertUnwindSafe(|| operation.check(&other, [&first, &second]));
            if let Err(panic) = std::panic::catch_unwind(checked) {
                eprintln!("{place}");
                std::panic::resume_unwind(panic);
            }
        }
        number += 1;
    }
    uncertain
}

#[test]
fn returned_changes_are_stored_once_if_a_request_is_dropped() {
    for operation in OPERATIONS {
        assert_eq!(attack(operation, false), 0, "{operation:?}");
    }
}

#[test]
fn without_marks_returned_changes_are_stored_once_or_uncertain() {
    let operations = [
        Operation::Append,
        Operation::WriteStored,
        Operation::Attributes(ZarrFormat::V3),
        Operation::CreateArray(ZarrFormat::V3),
    ];
    let uncertain: usize = operations.into_iter().map(|operation| attack(operation, true)).sum();
    assert!(uncertain > 0);
}

/// Appends from many threads, with some dropped requests.
#[test]
fn returned_appends_keep_their_places_while_requests_are_dropped() {
    const THREADS: i32 = 4;
    const ROUNDS: i32 = 30;
    let server = Server::start(well());
    let store: Arc<dyn Store> = adapter(&server, "bucket/log", true);
    let metadata = ArrayBuilder::new([0], Number::Int32).chunk_shape([7]).build().unwrap();
    create_array(Arc::clone(&store), "x", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    let sent = AtomicUsize::new(0);
    server.behave(Box::new(move |_: &Message, _| match sent.fetch_add(1, Ordering::SeqCst) % 50 {
        11 => Some(Fault::Reset),
        36 => Some(Fault::Lost),
        _ => None,
    }));
    let places = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (server, places) = (&server, &places);
            scope.spawn(move || {
                let own: Arc<dyn Store> = adapter(server, "bucket/log", true);
                let mut array = array(&own).unwrap();
                for value in (1..=ROUNDS).map(|round| thread * ROUNDS + round) {
                    let place = array.append(Values::slice(&[value; 2], &[2]).unwrap(), 0).unwrap();
                    places.lock().unwrap().push((value, place as usize));
                }
            });
        }
    });
    server.behave(well());
    let found = elements(&store);
    assert_eq!(found.len(), (2 * THREADS * ROUNDS) as usize, "no place is taken twice, and none is empty");
    for (value, place) in places.into_inner().unwrap() {
        assert_eq!(found[place..place + 2], [value; 2]);
    }
}
