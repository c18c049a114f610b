//! Puts, conditions, parts, deletes.

use crate::arrays::{policy, s3_options, store};
use crate::message::Message;
use crate::server::{Fault, Server, well};
use zarrow::store::remote::{Condition, Put, RemoteStore, wait};
use zarrow::{Error, Result};
use zarrow_cloud::CloudStore;

fn put(store: &CloudStore, key: &str, body: &[&[u8]], condition: Condition) -> Result<Put> {
    let body: Vec<Vec<u8>> = body.iter().map(|part| part.to_vec()).collect();
    let writer = store.writer().unwrap();
    wait(|done| writer.put(key, body, condition, done), &|| Ok(()))
}

#[test]
fn values_are_put_under_conditions() {
    let server = Server::start(well());
    let store = store(&server, "bucket/root", true);
    let there =
        |key: &str| server.objects(|objects| objects.all.get(key).map(|object| object.bytes.to_vec()));
    let Put::Done(Some(first)) = put(&store, "a/b", &[b"x", b"", b"yz"], Condition::IfAbsent).unwrap() else {
        panic!("nothing was there")
    };
    assert_eq!(there("bucket/root/a/b").unwrap(), b"xyz");
    assert_eq!(put(&store, "a/b", &[b"w"], Condition::IfAbsent).unwrap(), Put::Conflict);
    let Put::Done(Some(_)) = put(&store, "a/b", &[b"w"], Condition::IfVersion(first.clone())).unwrap() else {
        panic!("it is of this version")
    };
    assert_eq!(put(&store, "a/b", &[b"v"], Condition::IfVersion(first.clone())).unwrap(), Put::Conflict);
    assert_eq!(put(&store, "none", &[b"v"], Condition::IfVersion(first)).unwrap(), Put::Conflict);
    assert_eq!(there("bucket/root/a/b").unwrap(), b"w");
    assert!(matches!(put(&store, "a/b", &[], Condition::Always).unwrap(), Put::Done(_)));
    assert_eq!(there("bucket/root/a/b").unwrap(), b"");
    assert_eq!(there("bucket/root/.zarrow-probe"), None);
    let writer = store.writer().unwrap();
    let keys = ["a/b", "none"].map(str::to_owned).to_vec();
    wait(|done| writer.delete(keys, done), &|| Ok(())).unwrap();
    assert_eq!(there("bucket/root/a/b"), None);
}

#[test]
fn a_large_value_goes_in_parts_and_is_seen_whole() {
    let server = Server::start(well());
    let store = store(&server, "bucket", true);
    let body: Vec<u8> = (0..40_u32 << 20).map(|at| (at >> 12) as u8).collect();
    assert!(matches!(
        put(&store, "large", &[&body[..1000], &body[1000..]], Condition::Always),
        Ok(Put::Done(Some(_)))
    ));
    assert!(server.objects(|objects| *objects.all["bucket/large"].bytes == body));
    let parts = server.take_log().iter().filter(|message| message.query("partNumber").is_some()).count();
    assert_eq!(parts, 3);
    // A part that fails for good gives all of it up: the old value stands.
    server.behave(Box::new(|message: &Message, _| {
        (message.query("partNumber").as_deref() == Some("2")).then_some(Fault::Status(500))
    }));
    let error = put(&store, "large", &[&vec![0; 33 << 20]], Condition::Always).unwrap_err();
    assert_eq!(error.kind().code(), "write", "{error}");
    assert!(server.objects(|objects| *objects.all["bucket/large"].bytes == body));
    assert!(server.take_log().iter().any(|message| message.method == "DELETE"));
}

/// The answer to a put is lost after it was done: the second try meets our own value.
#[test]
fn a_put_whose_answer_was_lost_is_no_conflict() {
    for fault in [Fault::Cut, Fault::TooLong] {
        let server = Server::start(well());
        let store = store(&server, "bucket", true);
        put(&store, "warm", &[b"x"], Condition::IfAbsent).unwrap();
        server.behave(Box::new(move |message: &Message, count| {
            (message.method == "PUT" && count == 1).then_some(Fault::Reset).filter(|_| fault == Fault::Cut)
        }));
        // What a first try that was done left behind.
        server.objects(|objects| objects.put("bucket/a", b"own".to_vec()));
        let result = put(&store, "a", &[b"own"], Condition::IfAbsent).unwrap();
        // Without an uncertain try it is another's, even where the bytes are the same.
        assert_eq!(matches!(result, Put::Done(Some(_))), fault == Fault::Cut, "{result:?}");
        server.objects(|objects| objects.put("bucket/b", b"other".to_vec()));
        assert_eq!(put(&store, "b", &[b"own"], Condition::IfAbsent).unwrap(), Put::Conflict);
    }
}

#[test]
fn a_server_that_reads_over_conditions_is_found_out() {
    let server = Server::start(well());
    server.objects(|objects| objects.ignores_conditions = true);
    let store = CloudStore::new("s3://careless", s3_options(&server)).unwrap().with_policy(policy());
    let error: Error = put(&store, "a/0", &[b"x"], Condition::IfAbsent).unwrap_err();
    assert_eq!(error.kind().code(), "unsupported");
    assert!(error.to_string().contains("two writers of one chunk"), "{error}");
    assert!(server.objects(|objects| objects.all.is_empty()), "nothing of the try is left");
    assert!(matches!(put(&store, "a/0", &[b"x"], Condition::Always).unwrap(), Put::Done(_)));
    assert!(crate::arrays::store(&server, "data", false).writer().is_none());
}
