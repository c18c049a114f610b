//! Puts, conditions, parts, deletes.

use crate::arrays::{policy, s3_options, store};
use crate::message::Message;
use crate::server::{Fault, Server, once, well};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zarrow::store::remote::{BorrowedBytes, Condition, Put, PutBody, RemoteStore, wait};
use zarrow::{Error, ErrorKind, Result};
use zarrow_cloud::{CloudStore, StorageOptions};

fn put(store: &CloudStore, key: &str, body: &[&[u8]], condition: Condition) -> Result<Put> {
    let body: Vec<Vec<u8>> = body.iter().map(|part| part.to_vec()).collect();
    let writer = store.writer().unwrap();
    wait(|done| writer.put(key, body.into(), condition, done), &|| Ok(()))
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
    let left = server.objects(|objects| objects.all.keys().filter(|key| key.contains("probe")).count());
    assert_eq!(left, 0);
    let writer = store.writer().unwrap();
    let keys = ["a/b", "none"].map(str::to_owned).to_vec();
    wait(|done| writer.delete(keys, done), &|| Ok(())).unwrap();
    assert_eq!(there("bucket/root/a/b"), None);
}

#[test]
fn a_large_value_is_uploaded_in_parts_and_appears_whole() {
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
    // A permanent failure of one part abandons the upload: the old value stays.
    server.behave(Box::new(|message: &Message, _| {
        (message.query("partNumber").as_deref() == Some("2")).then_some(Fault::Status(500))
    }));
    let error = put(&store, "large", &[&vec![0; 33 << 20]], Condition::Always).unwrap_err();
    assert_eq!(error.kind().code(), "write", "{error}");
    assert!(server.objects(|objects| *objects.all["bucket/large"].bytes == body));
    assert!(server.take_log().iter().any(|message| message.method == "DELETE"));
}

/// The first put of `key` meets `fault`; if `beaten`, another client puts the same bytes before the first one knows.
fn after_a_drop(
    server: &Server,
    key: &'static str,
    fault: Fault,
    beaten: bool,
    condition: &Condition,
) -> Result<Put> {
    let own = store(server, "bucket", true);
    put(&own, "warm", &[b"x"], Condition::Always).unwrap();
    let (other, other_condition) = (store(server, "bucket", true), condition.clone());
    server.behave(Box::new(move |message: &Message, count| {
        (message.method == "PUT" && message.path() == format!("/bucket/{key}") && count == 1).then_some(fault)
    }));
    let other = move || {
        if let Ok(Put::Done(Some(version))) = put(&other, key, &[b"own"], other_condition) {
            put(&other, key, &[b"own"], Condition::IfVersion(version)).unwrap();
        }
    };
    server.meanwhile(move || {
        if beaten {
            other()
        }
    });
    let result = put(&own, key, &[b"own"], condition.clone());
    server.behave(well());
    result
}

#[test]
fn a_put_with_a_lost_answer_is_not_a_conflict() {
    let server = Server::start(well());
    let first = put(&store(&server, "bucket", true), "b", &[b"x"], Condition::IfAbsent).unwrap();
    let Put::Done(Some(first)) = first else { panic!("nothing was there") };
    for (key, condition) in [("a", Condition::IfAbsent), ("b", Condition::IfVersion(first))] {
        // Of two puts with equal bytes the second is refused.
        let result = after_a_drop(&server, key, Fault::Lost, true, &condition).unwrap();
        let Put::Done(Some(version)) = result else { panic!("it was applied") };
        let next = put(&store(&server, "bucket", true), key, &[b"next"], Condition::IfVersion(version));
        assert!(matches!(next, Ok(Put::Done(_))), "the version is the stored one");
    }
}

#[test]
fn a_dropped_put_is_not_mistaken_for_another_writers() {
    let server = Server::start(well());
    let first = put(&store(&server, "bucket", true), "b", &[b"x"], Condition::IfAbsent).unwrap();
    let Put::Done(Some(first)) = first else { panic!("nothing was there") };
    for (key, condition) in [("a", Condition::IfAbsent), ("b", Condition::IfVersion(first))] {
        assert_eq!(after_a_drop(&server, key, Fault::Reset, true, &condition).unwrap(), Put::Conflict);
    }
    let result = after_a_drop(&server, "c", Fault::Reset, false, &Condition::IfAbsent).unwrap();
    assert!(matches!(result, Put::Done(Some(_))));
}

#[test]
fn without_marks_an_unanswered_put_is_uncertain() {
    let server = Server::start(well());
    server.objects(|objects| objects.forgets_metadata = true);
    for (key, fault) in [("a", Fault::Lost), ("b", Fault::Reset)] {
        let error = after_a_drop(&server, key, fault, true, &Condition::IfAbsent).unwrap_err();
        assert_eq!(error.kind().code(), "uncertain", "{error}");
    }
    // No response was lost: the value is another client's.
    let again = put(&store(&server, "bucket", true), "a", &[b"own"], Condition::IfAbsent);
    assert_eq!(again.unwrap(), Put::Conflict);
}

#[test]
fn an_upload_is_stored_if_its_last_answer_is_lost() {
    let server = Server::start(well());
    let store = store(&server, "bucket", true);
    let body = vec![7; 17 << 20];
    server.behave(Box::new(|message: &Message, count| {
        let is_end = message.method == "POST" && message.query("uploadId").is_some();
        (is_end && count == 1).then_some(Fault::Lost)
    }));
    let result = put(&store, "large", &[&body], Condition::Always);
    assert!(matches!(result, Ok(Put::Done(Some(_)))), "{result:?}");
    assert!(server.objects(|objects| *objects.all["bucket/large"].bytes == body));
}

#[test]
fn an_error_in_an_answer_of_200_is_tried_again() {
    let server =
        Server::start(Box::new(|_: &Message, count| (count == 1).then_some(Fault::Code("InternalError"))));
    let store = store(&server, "bucket", true);
    let body = vec![7; 17 << 20];
    // All requests of the upload: its beginning, its parts and its end.
    let result = put(&store, "large", &[&body], Condition::Always);
    assert!(matches!(result, Ok(Put::Done(Some(_)))), "{result:?}");
    assert!(server.objects(|objects| *objects.all["bucket/large"].bytes == body));
    assert!(matches!(put(&store, "small", &[b"x"], Condition::Always), Ok(Put::Done(Some(_)))));
    assert!(server.objects(|objects| objects.all.contains_key("bucket/small")));
}

#[test]
fn a_server_that_ignores_conditions_is_detected() {
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

/// One writer tests the server, and the others wait for the result.
#[test]
fn many_writers_test_a_server_once() {
    let server = Server::start(Box::new(|_, _| Some(Fault::Late)));
    let store = store(&server, "many", true);
    std::thread::scope(|scope| {
        for number in 0..20 {
            let store = &store;
            scope.spawn(move || {
                let put = put(store, &number.to_string(), &[b"x"], Condition::IfAbsent).unwrap();
                assert!(matches!(put, Put::Done(_)));
            });
        }
    });
    let log = server.take_log();
    let probes = log.iter().filter(|message| message.method == "PUT" && message.target.contains("probe"));
    assert_eq!(probes.count(), 3);
    assert_eq!(server.objects(|objects| objects.all.len()), 20);
}

#[test]
fn a_server_that_ignores_only_absence_is_detected() {
    let server = Server::start(well());
    server.objects(|objects| objects.ignores_absence = true);
    let store = CloudStore::new("s3://half", s3_options(&server)).unwrap().with_policy(policy());
    let error: Error = put(&store, "a/0", &[b"x"], Condition::IfAbsent).unwrap_err();
    assert_eq!(error.kind().code(), "unsupported");
    assert!(server.objects(|objects| objects.all.is_empty()), "nothing of the try is left");
    assert!(!store.writer().unwrap().has_conditions());
}

/// Borrowed memory, taken back after `left` bytes were copied.
#[derive(Debug)]
struct Lending {
    bytes: Vec<u8>,
    left: AtomicUsize,
    copied: AtomicUsize,
}

impl BorrowedBytes for Lending {
    fn nbytes(&self) -> usize {
        self.bytes.len()
    }

    fn append_to(&self, start: usize, nbytes: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let take = |left: usize| left.checked_sub(nbytes);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Err(ErrorKind::Interrupted.into());
        }
        self.copied.fetch_add(nbytes, Ordering::Relaxed);
        bytes.extend_from_slice(&self.bytes[start..start + nbytes]);
        Ok(())
    }
}

fn lending(nbytes: usize, left: usize) -> Arc<Lending> {
    let bytes = (0..nbytes).map(|at| (at % 251) as u8).collect();
    Arc::new(Lending { bytes, left: AtomicUsize::new(left), copied: AtomicUsize::new(0) })
}

fn put_borrowed(store: &CloudStore, borrowed: &Arc<Lending>, condition: Condition) -> Result<Put> {
    let (writer, body) = (store.writer().unwrap(), PutBody::Borrowed(Arc::clone(borrowed) as _));
    wait(|done| writer.put("a", body, condition, done), &|| Ok(()))
}

fn anonymous(server: &Server) -> CloudStore {
    let endpoint = format!("http://{}", server.address);
    let options = serde_json::json!({ "anon": true, "endpoint_url": endpoint, "region": "us-east-1" });
    let options = StorageOptions::from_json(&options.to_string()).unwrap();
    CloudStore::new("s3://bucket/root", options).unwrap().with_policy(policy())
}

#[test]
fn lent_bytes_are_stored_whole() {
    const NBYTES: usize = (3 << 20) + 17;
    let server = Server::start(well());
    let stored =
        || server.objects(|objects| objects.all.get("bucket/root/a").map(|object| object.bytes.to_vec()));
    // A signed put needs a copy for its checksum; so does one with a condition, and one in parts.
    let large = 17 << 20;
    for (store, condition, nbytes) in [
        (anonymous(&server), Condition::Always, NBYTES),
        (anonymous(&server), Condition::Always, large),
        (store(&server, "bucket/root", true), Condition::Always, NBYTES),
        (anonymous(&server), Condition::IfAbsent, NBYTES),
    ] {
        server.objects(|objects| objects.all.clear());
        let borrowed = lending(nbytes, usize::MAX);
        assert!(matches!(put_borrowed(&store, &borrowed, condition).unwrap(), Put::Done(Some(_))));
        assert!(stored().unwrap() == borrowed.bytes);
        assert_eq!(borrowed.copied.load(Ordering::Relaxed), nbytes, "each byte is copied once");
    }
    // The second attempt sends all bytes again.
    server.behave(once(Fault::Status(500)));
    let borrowed = lending(NBYTES - 1, usize::MAX);
    put_borrowed(&anonymous(&server), &borrowed, Condition::Always).unwrap();
    assert!(stored().unwrap() == borrowed.bytes);
    assert_eq!(borrowed.copied.load(Ordering::Relaxed), 2 * borrowed.bytes.len());
}

#[test]
fn a_put_without_its_borrowed_bytes_stores_nothing() {
    let server = Server::start(well());
    // Taken back before the first piece, in between, and before the last one.
    for left in [0, 1 << 20, (3 << 20) - 1] {
        let borrowed = lending(3 << 20, left);
        put_borrowed(&anonymous(&server), &borrowed, Condition::Always).unwrap_err();
        assert!(server.objects(|objects| objects.all.is_empty()));
        assert!(borrowed.copied.load(Ordering::Relaxed) <= left);
    }
}
