//! A failing server: reads give correct data or a typed error, bounded requests, and never two versions in one value.

use crate::arrays::{adapter, layouts, open_array, policy, read, selections, store, upload};
use crate::message::Answer;
use crate::server::{FAULTS, Fault, Server, once, seeded, well};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zarrow::store::remote::{ByteRange, Fetched, ObjectVersion, RemoteStore, Request, fetch, wait};
use zarrow_cloud::{CloudStore, TransportPolicy};

/// Reads every layout in both ways under faults, until this many requests were sent.
fn campaign(seed: u64, per_mille: u64, least_requests: usize) {
    let server = Server::start(well());
    let layouts = layouts();
    for (number, (_, memory)) in layouts.iter().enumerate() {
        upload(&server, &format!("bucket/array{number}"), &**memory);
    }
    // Requests of the reads without faults.
    let mut reads = Vec::new();
    for (number, (name, memory)) in layouts.iter().enumerate() {
        let path = format!("bucket/array{number}");
        let local = open_array(Arc::clone(memory) as _).unwrap();
        for by_s3 in [true, false] {
            let remote = open_array(adapter(&server, &path, by_s3)).unwrap();
            for selection in selections() {
                reads.push((name, remote.clone(), read(&local, &selection).unwrap(), selection));
            }
        }
    }
    let before = server.requests();
    reads.iter().for_each(|(_, remote, _, selection)| drop(read(remote, selection).unwrap()));
    let ideal = server.requests() - before;
    let (start, mut round, mut failed) = (server.requests(), 0, 0);
    while server.requests() - start < least_requests {
        server.behave(seeded(seed + round, per_mille));
        for (name, remote, expected, selection) in &reads {
            match read(remote, selection) {
                Ok(found) => assert_eq!(&found, expected, "{name}, {selection:?}"),
                Err(error) => {
                    assert_eq!(error.kind().code(), "io", "{name}: {error}");
                    failed += 1;
                }
            }
        }
        round += 1;
    }
    let (sent, ideal) = (server.requests() - start, ideal * round as usize);
    let reads = reads.len() * round as usize;
    assert!(failed * 1000 <= reads, "{failed} of {reads} reads failed");
    assert!(sent <= ideal + ideal * per_mille as usize / 250, "{sent} requests for {ideal}");
}

#[test]
fn reads_under_faults_are_right() {
    campaign(1, 50, 1_500);
}

#[test]
#[ignore = "long: the campaign of make soak"]
fn reads_under_faults_are_right_for_long() {
    campaign(std::process::id().into(), 50, 20_000);
}

/// Each fault alone, for the first request or for all.
#[test]
fn temporary_faults_are_overcome_and_permanent_ones_end() {
    for fault in FAULTS {
        let server = Server::start(well());
        server.objects(|objects| objects.put("bucket/a", (0..=255).cycle().take(100_000).collect()));
        for by_s3 in [true, false] {
            let store = store(&server, "bucket", by_s3);
            for span in [ByteRange::Whole, ByteRange::Range(1000..50_000), ByteRange::Suffix(700)] {
                server.behave(once(fault));
                let found = fetch(&store, Request::new("a", span.clone()), u64::MAX, &|| Ok(()));
                let Ok(Fetched::Body(body)) = found else { panic!("{fault:?}, {span:?}: {found:?}") };
                let start = body.start as usize;
                let right =
                    body.bytes.iter().enumerate().all(|(at, byte)| *byte == ((start + at) % 256) as u8);
                let nbytes = match span {
                    ByteRange::Whole => 100_000,
                    ByteRange::Range(range) => (range.end - range.start) as usize,
                    ByteRange::Suffix(nbytes) => nbytes as usize,
                };
                assert!(right && body.bytes.len() == nbytes, "{fault:?}");
            }
        }
        // A message of another length than its range is refused: its bytes may be of another form.
        let harmless = matches!(fault, Fault::Late | Fault::Trickle | Fault::Whole);
        server.behave(Box::new(move |_, _| Some(fault)));
        let (store, before) = (store(&server, "bucket", true), server.requests());
        match fetch(&store, Request::new("a", ByteRange::Range(0..100)), u64::MAX, &|| Ok(())) {
            Ok(_) => assert!(harmless, "{fault:?}"),
            Err(error) => {
                assert!(!harmless && error.kind().code() == "io", "{fault:?}: {error}");
                let most = 1 + policy().retries + policy().throttled_retries;
                // Each may be sent a second time if it is slow.
                assert!(server.requests() - before <= 2 * most as usize, "{fault:?}");
            }
        }
    }
}

#[test]
fn interrupted_bodies_resume_with_a_version_and_restart_without() {
    for has_no_e_tags in [false, true] {
        let server = Server::start(once(Fault::Cut));
        server.objects(|objects| {
            objects.has_no_e_tags = has_no_e_tags;
            objects.put("bucket/a", (0..100).collect())
        });
        let store = store(&server, "bucket", true);
        let found = fetch(&store, Request::new("a", ByteRange::Range(10..90)), u64::MAX, &|| Ok(())).unwrap();
        let Fetched::Body(body) = found else { panic!("it is there") };
        assert_eq!(body.bytes, (10..90).collect::<Vec<u8>>());
        let ranges: Vec<_> =
            server.take_log().iter().map(|message| message.header("range").unwrap().to_owned()).collect();
        let second = if has_no_e_tags { "bytes=10-89" } else { "bytes=50-89" };
        assert_eq!((ranges.first().unwrap().as_str(), ranges[1].as_str()), ("bytes=10-89", second));
    }
}

/// A writer replaces a value repeatedly while it is read in answers that break off.
#[test]
fn a_value_is_never_of_two_versions() {
    const NBYTES: usize = 200_000;
    let server = Server::start(seeded(7, 300));
    server.objects(|objects| objects.put("bucket/a", vec![0; NBYTES]));
    let stop = AtomicBool::new(false);
    let changed = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..=u8::MAX).cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                server.objects(|objects| objects.put("bucket/a", vec![number; NBYTES]));
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let store = store(&server, "bucket", true);
        let mut changed = 0;
        for _ in 0..150 {
            let first = fetch(&store, Request::new("a", ByteRange::Range(0..1000)), u64::MAX, &|| Ok(()));
            let Ok(Fetched::Body(first)) = first else { continue };
            assert!(first.bytes.iter().all(|byte| *byte == first.bytes[0]));
            let rest = Request::new("a", ByteRange::Range(1000..NBYTES as u64)).if_version(first.version);
            match fetch(&store, rest, u64::MAX, &|| Ok(())) {
                Ok(Fetched::Body(rest)) => assert!(rest.bytes.iter().all(|byte| *byte == first.bytes[0])),
                Ok(other) => {
                    assert_eq!(other, Fetched::Changed);
                    changed += 1;
                }
                Err(error) => assert_eq!(error.kind().code(), "io"),
            }
        }
        stop.store(true, Ordering::Relaxed);
        changed
    });
    assert!(changed > 0);
}

/// A server that ignores `If-Match` and sends another version.
#[test]
fn an_answer_of_another_version_is_refused() {
    let server = Server::start(well());
    server.answer_with(Some(
        Answer::new(206).with("etag", "\"new\"").with("content-range", "bytes 0-1/2").of("ab"),
    ));
    let store = store(&server, "bucket", true);
    let wanted = Some(ObjectVersion::new("\"old\""));
    let found = fetch(&store, Request::new("a", ByteRange::Range(0..2)).if_version(wanted), 10, &|| Ok(()));
    assert_eq!(found.unwrap(), Fetched::Changed);
}

#[test]
fn many_requests_at_once_are_held_to_the_budget_of_the_host() {
    let server = Server::start(Box::new(|_, _| Some(Fault::Late)));
    server.objects(|objects| objects.put("bucket/a", vec![1; 1000]));
    let store = store(&server, "bucket", true);
    let (done, received) = std::sync::mpsc::channel();
    struct Counter(std::sync::mpsc::Sender<bool>);
    impl zarrow::store::remote::Receiver for Counter {
        fn head(&mut self, _: &zarrow::store::remote::Head) -> std::ops::ControlFlow<()> {
            std::ops::ControlFlow::Continue(())
        }
        fn frame(&mut self, _: &[u8]) -> std::ops::ControlFlow<()> {
            std::ops::ControlFlow::Continue(())
        }
        fn done(self: Box<Self>, result: zarrow::Result<zarrow::store::remote::Outcome>) {
            self.0.send(result.is_ok()).unwrap();
        }
    }
    for _ in 0..300 {
        store.submit(Request::new("a", ByteRange::Whole), Box::new(Counter(done.clone())));
    }
    assert!((0..300).all(|_| received.recv().unwrap()));
    assert!((16..=256).contains(&server.most_at_once()), "{}", server.most_at_once());
}

/// Some answers stall for much longer than the others: only these are requested a second time.
#[test]
fn stalled_answers_are_requested_again() {
    let number = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(Box::new(move |_, _| {
        let number = number.fetch_add(1, Ordering::SeqCst);
        if number % 50 == 49 { Some(Fault::Silent) } else { Some(Fault::Late) }
    }));
    server.objects(|objects| objects.put("bucket/a", vec![1; 1000]));
    let mut patient = policy();
    // Nothing fails and nothing is retried: the second request overtakes the stalled one.
    (patient.silence, patient.retries) = (std::time::Duration::from_secs(60), 0);
    let store = store(&server, "bucket", true).with_policy(patient);
    const READS: usize = 150;
    for _ in 0..READS {
        let found = fetch(&store, Request::new("a", ByteRange::Whole), u64::MAX, &|| Ok(()));
        assert!(matches!(found, Ok(Fetched::Body(body)) if body.bytes.len() == 1000));
    }
    let extra = server.requests() - READS;
    assert!((3..=READS / 20 + 6).contains(&extra), "{extra}");
}

/// Returns a policy with a short limit for slow bodies, and long ones for everything else.
fn impatient() -> TransportPolicy {
    let mut policy = policy();
    policy.silence = Duration::from_secs(60);
    (policy.low_speed, policy.low_speed_time) = (1 << 20, Duration::from_millis(200));
    policy.hedging = false;
    policy
}

#[test]
fn a_slow_body_is_requested_once_more() {
    let server = Server::start(once(Fault::Drip(None)));
    server.objects(|objects| objects.put("bucket/a", (0..=255).cycle().take(100_000).collect()));
    let mut policy = impatient();
    let slow = store(&server, "bucket", true).with_policy(policy);
    let body =
        |store: &CloudStore, key| fetch(store, Request::new(key, ByteRange::Whole), u64::MAX, &|| Ok(()));
    let Fetched::Body(found) = body(&slow, "a").unwrap() else { panic!("it is there") };
    assert!(found.bytes.iter().enumerate().all(|(at, byte)| *byte == (at % 256) as u8));
    server.behave(Box::new(|_, _| Some(Fault::Drip(None))));
    let before = server.requests();
    let error = body(&slow, "a").unwrap_err();
    assert!(error.to_string().contains("below low_speed_limit (1048576 bytes per second)"), "{error}");
    assert_eq!(server.requests() - before, 2);
    // Without a limit the body may take its time; a listing has the same limit as a value.
    let error = wait(|done| slow.list("", true, done), &|| Ok(())).unwrap_err();
    assert!(error.to_string().contains("low_speed_limit"), "{error}");
    policy.low_speed = 0;
    server.objects(|objects| objects.put("bucket/b", vec![1; 30]));
    let found = body(&slow.with_policy(policy), "b").unwrap();
    assert!(matches!(found, Fetched::Body(body) if body.bytes == [1; 30]));
}

#[test]
fn endless_error_bodies_end_soon() {
    let mut policy = policy();
    (policy.silence, policy.retries, policy.hedging) = (Duration::from_secs(60), 1, false);
    for (status, code, requests) in [(403, "permission", 1), (400, "io", 1), (500, "io", 2)] {
        for fault in [Fault::Drip(Some(status)), Fault::Endless(status)] {
            let server = Server::start(Box::new(move |_, _| Some(fault)));
            let store = store(&server, "bucket", true).with_policy(policy);
            let error = fetch(&store, Request::new("a", ByteRange::Whole), u64::MAX, &|| Ok(())).unwrap_err();
            assert!(error.to_string().contains(&status.to_string()), "{error}");
            assert_eq!((error.kind().code(), server.requests()), (code, requests), "{fault:?}");
        }
    }
}

#[test]
fn an_endless_value_ends_at_its_limit() {
    let server = Server::start(Box::new(|_, _| Some(Fault::Endless(200))));
    let store = store(&server, "data", false);
    let found = fetch(&store, Request::new("a", ByteRange::Whole), 1 << 20, &|| Ok(())).unwrap();
    assert!(matches!(found, Fetched::TooLarge(nbytes) if nbytes > 1 << 20));
}
