//! Reads from a correct server: the bytes, the heads, and the number of requests.

use crate::arrays::{SHAPE, adapter, layouts, open_array, policy, read, selections, store, upload};
use crate::message::Message;
use crate::server::{Fault, Server, well};
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;
use zarrow::store::Store;
use zarrow::store::remote::{
    Body, ByteRange, Fetched, Head, ObjectVersion, Outcome, Receiver, RemoteAdapter, RemoteStore, Request,
    fetch,
};
use zarrow::{Result, Selection};
use zarrow_cloud::{CloudStore, StorageOptions};

fn body(store: &dyn RemoteStore, request: Request) -> Body {
    match fetch(store, request, u64::MAX, &|| Ok(())).unwrap() {
        Fetched::Body(body) => body,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_span_returns_its_bytes_and_the_head() {
    let server = Server::start(well());
    let e_tag = server.objects(|objects| objects.put("bucket/data/a", (0..100).collect()));
    server.objects(|objects| objects.put("bucket/data/empty", Vec::new()));
    for by_s3 in [true, false] {
        let store = store(&server, "bucket/data", by_s3);
        let version = Some(ObjectVersion::new(&e_tag));
        for (span, range) in [
            (ByteRange::Whole, 0..100),
            (ByteRange::Range(3..9), 3..9),
            (ByteRange::Range(90..200), 90..100),
            (ByteRange::Range(100..101), 100..100),
            (ByteRange::Range(5..5), 0..0),
            (ByteRange::Suffix(7), 93..100),
            (ByteRange::Suffix(1000), 0..100),
        ] {
            let body = body(&store, Request::new("a", span.clone()));
            let expected: Vec<u8> = (range.start as u8..range.end as u8).collect();
            assert_eq!((body.bytes, body.nbytes), (expected, Some(100)), "{span:?}");
            if !range.is_empty() {
                assert_eq!((body.start, &body.version), (range.start, &version), "{span:?}");
            }
        }
        for span in [ByteRange::Whole, ByteRange::Range(0..5), ByteRange::Suffix(5), ByteRange::Range(0..0)] {
            let body = body(&store, Request::new("empty", span.clone()));
            assert_eq!((body.bytes.len(), body.nbytes), (0, Some(0)), "{span:?}");
        }
        let ask = |request: Request| fetch(&store, request, u64::MAX, &|| Ok(())).unwrap();
        assert_eq!(ask(Request::new("none", ByteRange::Whole)), Fetched::Missing);
        assert_eq!(ask(Request::new("none", ByteRange::Range(0..0))), Fetched::Missing);
        let other = Some(ObjectVersion::new("\"other\""));
        assert_eq!(ask(Request::new("a", ByteRange::Whole).if_version(other)), Fetched::Changed);
        let same = ask(Request::new("a", ByteRange::Range(0..2)).if_version(version));
        assert!(matches!(same, Fetched::Body(body) if body.bytes == [0, 1]));
    }
}

#[test]
fn arrays_of_every_layout_are_those_in_memory() {
    let server = Server::start(well());
    for (number, (name, memory)) in layouts().into_iter().enumerate() {
        let path = format!("bucket/array{number}");
        upload(&server, &path, &*memory);
        let local = open_array(memory as _).unwrap();
        for by_s3 in [true, false] {
            let remote = open_array(adapter(&server, &path, by_s3)).unwrap();
            for selection in selections() {
                assert_eq!(
                    read(&remote, &selection).unwrap(),
                    read(&local, &selection).unwrap(),
                    "{name}, {selection:?}"
                );
            }
        }
    }
    // Late answers overlap.
    server.behave(Box::new(|_: &Message, _| Some(Fault::Late)));
    read(&open_array(adapter(&server, "bucket/array0", true)).unwrap(), &Selection::all(&SHAPE)).unwrap();
    assert!(server.most_at_once() > 1, "requests of one read are under way at once");
}

/// Names with characters that URLs escape, and roots with such names.
#[test]
fn keys_are_sent_unchanged() {
    let server = Server::start(well());
    for name in ["a b", "a%20b", "ü", "a+b", "a=b&c", "#x", "a~b*c", "a:b@c", "[1]", "x?y"] {
        server.objects(|objects| objects.put(&format!("bucket/da ta/{name}"), name.as_bytes().to_vec()));
        let s3 = store(&server, "bucket/da ta", true);
        assert_eq!(body(&s3, Request::new(name, ByteRange::Whole)).bytes, name.as_bytes());
        let http = store(&server, "bucket/da%20ta", false);
        assert_eq!(body(&http, Request::new(name, ByteRange::Whole)).bytes, name.as_bytes());
    }
}

#[test]
fn a_server_without_ranges_or_tags_is_read_all_the_same() {
    let server = Server::start(Box::new(|_: &Message, _| Some(Fault::Whole)));
    server.objects(|objects| {
        objects.has_no_e_tags = true;
        objects.put("data/a", (0..100).collect());
        objects.put("data/large", vec![1; 9 << 20]);
    });
    let store = store(&server, "data", false);
    let found = body(&store, Request::new("a", ByteRange::Range(10..20)));
    assert_eq!((found.start, found.bytes, found.version), (10, (10..20).collect(), None));
    assert_eq!(body(&store, Request::new("a", ByteRange::Suffix(3))).bytes, [97, 98, 99]);
    // Skipping too much is refused, and nothing is collected.
    let far = Request::new("large", ByteRange::Suffix(10));
    let error = fetch(&store, far, u64::MAX, &|| Ok(())).unwrap_err();
    assert!(error.to_string().contains("range"), "{error}");
}

/// Records its events, and stops on request.
struct Watcher {
    frames: usize,
    stop_at_head: bool,
    done: mpsc::Sender<(usize, Result<Outcome>)>,
}

impl Receiver for Watcher {
    fn head(&mut self, _: &Head) -> ControlFlow<()> {
        if self.stop_at_head { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn frame(&mut self, _: &[u8]) -> ControlFlow<()> {
        self.frames += 1;
        ControlFlow::Continue(())
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        self.done.send((self.frames, result)).unwrap();
    }
}

#[test]
fn a_request_that_is_cancelled_or_not_wanted_stops() {
    let server = Server::start(Box::new(|_: &Message, _| Some(Fault::Stalled)));
    server.objects(|objects| objects.put("data/a", vec![1; 1 << 20]));
    let mut patient = policy();
    patient.silence = Duration::from_secs(60);
    let store = store(&server, "data", false).with_policy(patient);
    let (done, received) = mpsc::channel();
    let watcher = |stop_at_head| Box::new(Watcher { frames: 0, stop_at_head, done: done.clone() });
    store.submit(Request::new("a", ByteRange::Whole), watcher(true));
    assert!(matches!(received.recv().unwrap(), (0, Ok(Outcome::Stopped))));
    let handle = store.submit(Request::new("a", ByteRange::Whole), watcher(false));
    std::thread::sleep(Duration::from_millis(30));
    handle.cancel();
    assert!(matches!(received.recv().unwrap(), (_, Ok(Outcome::Stopped))));
    // A waiting caller stops too.
    let stop = || Err(zarrow::ErrorKind::Interrupted.into());
    let error = fetch(&store, Request::new("a", ByteRange::Whole), u64::MAX, &stop).unwrap_err();
    assert_eq!(error.kind().code(), "interrupted");
}

/// A server on a closed port, and a host name that does not exist.
#[test]
fn unreachable_servers_are_typed_errors() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://{closed}/data"), "http://no-such-host.invalid/data".to_owned()] {
        let store = CloudStore::new(&url, StorageOptions::default()).unwrap().with_policy(policy());
        let error = RemoteAdapter::new(std::sync::Arc::new(store)).get("zarr.json", 100).unwrap_err();
        assert_eq!(error.kind().code(), "io", "{error}");
        let host = url.split('/').nth(2).unwrap().split(':').next().unwrap();
        assert!(error.to_string().contains(host), "{error}");
    }
}

#[test]
fn a_bucket_in_another_region_is_found() {
    let server = Server::start(well());
    server.objects(|objects| objects.put("bucket/a", vec![1]));
    // The endpoint is given, so no request leaves the machine: the region is then the caller's.
    let mut options: serde_json::Value =
        serde_json::from_str(&crate::arrays::s3_options(&server).to_json()).unwrap();
    options.as_object_mut().unwrap().remove("region");
    let options = StorageOptions::from_json(&options.to_string()).unwrap();
    let store = CloudStore::new("s3://bucket", options).unwrap().with_policy(policy());
    let moved = crate::message::Answer::error(301, "PermanentRedirect", "Elsewhere.");
    server.answer_with(Some(moved.with("x-amz-bucket-region", "eu-north-1")));
    let error = fetch(&store, Request::new("a", ByteRange::Whole), 10, &|| Ok(())).unwrap_err();
    assert!(error.to_string().contains("301 PermanentRedirect"), "{error}");
}

#[test]
fn a_web_server_that_ignores_ranges_and_tells_no_length_is_read() {
    let server = Server::start(Box::new(|_: &Message, _| Some(Fault::Chunked)));
    for (number, (name, memory)) in layouts().into_iter().enumerate() {
        upload(&server, &format!("data/{number}"), &*memory);
        let expected = open_array(memory).unwrap();
        let found = open_array(adapter(&server, &format!("data/{number}"), false)).unwrap();
        for selection in selections() {
            assert_eq!(read(&found, &selection).unwrap(), read(&expected, &selection).unwrap(), "{name}");
        }
    }
}

#[test]
fn an_answer_of_416_to_a_request_without_a_range_is_an_error_of_the_server() {
    let server = Server::start(well());
    server.answer_with(Some(crate::message::Answer::new(416).with("content-range", "bytes */9")));
    let error = adapter(&server, "bucket/tree", true).get("zarr.json", 100).unwrap_err();
    assert_eq!(error.kind().code(), "io");
    assert!(error.to_string().contains("416"), "{error}");
}

#[test]
fn a_late_first_byte_is_awaited() {
    let server = Server::start(Box::new(|_: &Message, _| Some(Fault::Slow)));
    server.objects(|objects| objects.put("bucket/tree/x", vec![7; 9]));
    assert_eq!(adapter(&server, "bucket/tree", true).get("x", 9).unwrap(), Some(vec![7; 9]));
}
