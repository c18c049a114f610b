//! Pauses that a server asks for, and redirects.

use crate::arrays::{patient, patient_store, store};
use crate::message::{Answer, Message};
use crate::server::{Fault, Server, well};
use zarrow::store::remote::{ByteRange, Fetched, Request, fetch};
use zarrow_cloud::{CloudStore, StorageOptions};

#[test]
fn endless_requests_for_pauses_end_the_retries() {
    let server = Server::start(Box::new(|_: &Message, _| Some(Fault::Pause(503))));
    server.objects(|objects| objects.put("bucket/a", vec![1; 1000]));
    let store = patient_store(&server, "bucket");
    let error = fetch(&store, Request::new("a", ByteRange::Whole), u64::MAX, &|| Ok(())).unwrap_err();
    assert!(error.to_string().contains("503 SlowDown: Later."), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("limits requests")));
    assert_eq!(server.requests() as u32, 1 + patient().throttled_retries);
}

#[test]
fn a_pause_that_is_too_long_is_an_error_that_says_so() {
    let server = Server::start(well());
    let store = patient_store(&server, "bucket");
    let pause = |text: &str| {
        let answer = Answer::error(503, "SlowDown", "Later.").with("date", "Wed, 21 Oct 2026 07:00:00 GMT");
        server.answer_with(Some(answer.with("retry-after", text)));
        let before = server.requests();
        let error = fetch(&store, Request::new("a", ByteRange::Whole), u64::MAX, &|| Ok(())).unwrap_err();
        (error, server.requests() - before)
    };
    for text in ["3600", "Wed, 21 Oct 2026 08:00:00 GMT"] {
        let (error, requests) = pause(text);
        let expected =
            "503 SlowDown: Later.: the requested pause of 3600 s exceeds max_retry_after, 60 s in total";
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("max_retry_after")));
        assert_eq!(requests, 1);
    }
    // A date that has passed asks for no pause.
    let (error, requests) = pause("Wed, 21 Oct 2026 06:00:00 GMT");
    assert!(!error.to_string().contains("max_retry_after") && requests > 1, "{error}");
}

#[test]
fn errors_of_the_caller_are_not_retried() {
    for status in [400, 401, 403] {
        let server = Server::start(well());
        server.answer_with(Some(Answer::error(status, "AccessDenied", "No.")));
        let store = patient_store(&server, "bucket");
        let error = fetch(&store, Request::new("a", ByteRange::Whole), u64::MAX, &|| Ok(())).unwrap_err();
        let expected = if status == 400 { "io" } else { "permission" };
        assert_eq!(error.kind().code(), expected, "{error}");
        assert_eq!(server.requests(), 1);
    }
}

#[test]
fn forbidden_values_are_never_missing() {
    let server = Server::start(well());
    server.answer_with(Some(Answer::error(403, "AccessDenied", "Access Denied")));
    let options = format!(r#"{{"anon": true, "endpoint_url": "http://{}"}}"#, server.address);
    let store = CloudStore::new("s3://bucket/a", StorageOptions::from_json(&options).unwrap()).unwrap();
    let error = fetch(&store, Request::new("zarr.json", ByteRange::Whole), 10, &|| Ok(())).unwrap_err();
    assert_eq!(error.kind().code(), "permission");
    assert!(error.to_string().contains("for missing and for private data"), "{error}");
    let asked = server.take_log();
    assert!(asked.iter().all(|message| message.header("authorization").is_none()));
}

#[test]
fn a_missing_bucket_is_not_a_missing_chunk() {
    let server = Server::start(well());
    server.answer_with(Some(Answer::error(404, "NoSuchBucket", "The bucket does not exist.")));
    let store = store(&server, "bucket", true);
    let error = fetch(&store, Request::new("a", ByteRange::Whole), 10, &|| Ok(())).unwrap_err();
    assert!(error.to_string().contains("NoSuchBucket"), "{error}");
}

#[test]
fn redirects_to_other_hosts_carry_no_credentials() {
    let (from, to) = (Server::start(well()), Server::start(well()));
    to.objects(|objects| objects.put("there/a", (0..100).collect()));
    let place = to.url("there/a?ticket=1");
    from.answer_with(Some(Answer::new(302).with("location", place)));
    let options = r#"{"headers": {"Authorization": "Bearer own-secret", "X-Api-Key": "other-secret"}}"#;
    let store = CloudStore::new(&from.url("data"), StorageOptions::from_json(options).unwrap()).unwrap();
    let found = fetch(&store, Request::new("a", ByteRange::Range(3..5)), 10, &|| Ok(())).unwrap();
    assert!(matches!(found, Fetched::Body(body) if body.bytes == [3, 4]));
    let asked = from.take_log();
    assert_eq!(asked[0].header("authorization"), Some("Bearer own-secret"));
    assert_eq!(asked[0].header("x-api-key"), Some("other-secret"));
    let passed_on = to.take_log();
    assert_eq!(passed_on[0].header("range"), Some("bytes=3-4"));
    assert!(
        passed_on.iter().flat_map(|message| &message.headers).all(|(_, value)| !value.contains("secret"))
    );
    // A loop of redirects ends.
    let itself = from.url("data/a");
    from.answer_with(Some(Answer::new(302).with("location", itself)));
    let error = fetch(&store, Request::new("a", ByteRange::Whole), 10, &|| Ok(())).unwrap_err();
    assert!(error.to_string().contains("in a circle"), "{error}");
}

/// Compressed bytes in place of a range have other positions than the stored ones.
#[test]
fn compressed_ranges_are_refused() {
    let server = Server::start(well());
    let store = patient_store(&server, "bucket");
    for (length, headers) in [(74, vec![("content-encoding", "gzip")]), (74, vec![])] {
        server.answer_by(move |message: &Message| {
            assert_eq!(message.header("accept-encoding"), Some("identity"));
            let mut answer = Answer::new(206).of(vec![7; length]).with("content-range", "bytes 0-199/200");
            for (name, value) in &headers {
                answer = answer.with(name, value);
            }
            answer
        });
        let request = Request::new("a", ByteRange::Range(0..200));
        let error = fetch(&store, request, u64::MAX, &|| Ok(())).unwrap_err();
        assert!(error.to_string().contains("other bytes than the requested ones"), "{error}");
    }
}

/// The error names the dead address, and not the redirecting server.
#[test]
fn a_redirect_to_a_dead_server_names_it() {
    let server = Server::start(well());
    let store = patient_store(&server, "bucket");
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (place, named) in [
        (format!("http://{unused}/a"), unused.to_string()),
        ("ftp://host/a".into(), "from http to ftp".into()),
    ] {
        server.answer_with(Some(Answer::new(302).with("location", place)));
        let error = fetch(&store, Request::new("a", ByteRange::Whole), u64::MAX, &|| Ok(())).unwrap_err();
        assert!(error.to_string().contains(&named), "{error}");
    }
}

#[test]
fn credentials_that_no_header_can_carry_are_refused() {
    for (url, name, options) in [
        ("s3://bucket", "\"token\"", r#"{"key": "AKID", "secret": "hush-hush", "token": "hush\n"}"#),
        ("s3://bucket", "\"token\"", r#"{"key": "AKID", "secret": "hush-hush", "token": "hu\u0001sh"}"#),
        ("gs://bucket", "google_bearer_token", r#"{"token": "ya29.hush\u0007"}"#),
    ] {
        let error =
            CloudStore::new(url, StorageOptions::from_json(options).unwrap()).unwrap_err().to_string();
        assert!(error.contains(name) && !error.contains("hu"), "{error}");
    }
}
