//! Listing the keys below a prefix.

use crate::arrays::{adapter, patient, store};
use crate::message::{Answer, Message};
use crate::server::{Fault, Server, once, well};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zarrow::ErrorKind;
use zarrow::store::Store;
use zarrow::store::remote::{Listing, RemoteStore, wait};

fn list(store: &dyn RemoteStore, prefix: &str, recursive: bool) -> zarrow::Result<Listing> {
    wait(|done| store.list(prefix, recursive, done), &|| Ok(()))
}

#[test]
fn names_and_sizes_over_many_pages() {
    // The first page must be requested twice.
    let server = Server::start(Box::new(|_, count| (count == 1).then_some(Fault::Status(500))));
    for number in 0..250 {
        server.objects(|objects| {
            objects.put(&format!("bucket/root/c/{number}"), vec![0; number]);
            objects.put(&format!("bucket/root/group{number}/zarr.json"), vec![0; 2]);
            objects.put(&format!("bucket/roots/{number}"), vec![0; 2])
        });
    }
    server.objects(|objects| objects.put("bucket/root/zarr.json", vec![1; 9]));
    let adapter = adapter(&server, "bucket/root", true);
    let names = adapter.list("").unwrap();
    assert_eq!(names.len(), 252);
    assert!(names.contains(&"zarr.json".to_owned()) && names.contains(&"group249".to_owned()));
    assert_eq!(adapter.list("c").unwrap().len(), 250);
    assert_eq!(adapter.list("none").unwrap(), Vec::<String>::new());
    assert_eq!(adapter.nbytes("c").unwrap(), 249 * 250 / 2);
    let store = store(&server, "bucket/root", true);
    let below = list(&store, "", true).unwrap();
    assert_eq!((below.values.len(), below.prefixes.len()), (501, 0));
    let whole = crate::arrays::store(&server, "bucket", true);
    assert_eq!(list(&whole, "", false).unwrap().prefixes, ["root", "roots"]);
}

#[test]
fn a_server_that_ignores_the_delimiter_has_the_same_names() {
    let server = Server::start(well());
    for number in 0..250 {
        server.objects(|objects| {
            objects.put(&format!("bucket/root/a/c/{number}"), vec![0; 2]);
            objects.put(&format!("bucket/root/b{}/zarr.json", number % 7), vec![0; 2]);
        });
    }
    server.objects(|objects| objects.put("bucket/root/zarr.json", vec![1; 9]));
    let names = || {
        let mut names = adapter(&server, "bucket/root", true).list("").unwrap();
        names.sort();
        names
    };
    let expected = names();
    assert_eq!(expected.len(), 9);
    server.objects(|objects| objects.ignored_in_lists = &["delimiter"]);
    assert_eq!(names(), expected);
    let below = list(&store(&server, "bucket/root/a", true), "c", false).unwrap();
    assert_eq!((below.values.len(), below.prefixes.len()), (250, 0));
    assert_eq!(below.values[0].key, "c/0");
}

#[test]
fn a_list_of_other_keys_is_not_an_empty_one() {
    let server = Server::start(well());
    server.objects(|objects| {
        objects.put("bucket/other/zarr.json", b"{}".to_vec());
        objects.put("bucket/root/a/zarr.json", b"{}".to_vec());
        objects.ignored_in_lists = &["prefix"];
    });
    let error = list(&store(&server, "bucket/root", true), "", false).unwrap_err();
    assert!(error.to_string().contains("which is not below \"root/\""), "{error}");
    let error = list(&store(&server, "bucket/none", true), "", true).unwrap_err();
    assert!(error.to_string().contains("which is not below \"none/\""), "{error}");
    // Some of the keys are those below.
    let found = list(&store(&server, "bucket/root", true), "", true).unwrap();
    assert_eq!(found.values.into_iter().map(|value| value.key).collect::<Vec<_>>(), ["a/zarr.json"]);
}

#[test]
fn a_malformed_listing_is_not_an_empty_one() {
    let server = Server::start(once(Fault::Code("InternalError")));
    server.objects(|objects| objects.put("bucket/a/zarr.json", b"{}".to_vec()));
    let store = store(&server, "bucket", true);
    assert_eq!(list(&store, "", true).unwrap().values.len(), 1, "the second answer is a list");
    let error = Answer::error(200, "AccessDenied", "No.");
    let page = Answer::new(200).with("content-type", "text/html").of("<!DOCTYPE html><html>Log in</html>");
    let cut = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
    let other = ["", "<Foreign/>", "<html></html>", cut].map(|body| Answer::new(200).of(body));
    for answer in [error, page].into_iter().chain(other) {
        server.answer_with(Some(answer.clone()));
        let error = list(&store, "", true).unwrap_err();
        assert!(matches!(error.kind().code(), "io" | "permission"), "{answer:?}: {error}");
    }
}

/// A page without an ETag in place of a value: a range of it must not be treated as data.
#[test]
fn a_web_page_is_not_a_value() {
    use zarrow::store::remote::{ByteRange, Request, fetch};
    let server = Server::start(well());
    let page = Answer::new(200).with("content-type", "text/html; charset=utf-8").of("<html>Log in</html>");
    server.answer_with(Some(page));
    let found =
        fetch(&store(&server, "bucket", true), Request::new("a", ByteRange::Range(0..4)), 10, &|| Ok(()));
    assert!(found.unwrap_err().to_string().contains("a web page"));
}

#[test]
fn keys_that_a_server_does_not_delete_are_errors() {
    let server = Server::start(Box::new(|message: &Message, count| {
        (message.method == "POST" && count == 1).then_some(Fault::Code("InternalError"))
    }));
    server.objects(|objects| objects.put("bucket/a b", b"x".to_vec()));
    let store = store(&server, "bucket", true);
    let delete = || {
        let writer = store.writer().unwrap();
        wait(|done| writer.delete(vec!["a b".to_owned()], done), &|| Ok(()))
    };
    delete().unwrap();
    assert!(server.objects(|objects| objects.all.is_empty()));
    // A name unknown to the client.
    let refusal = "<DeleteResult><Error><Key>a%20b</Key><Code>AccessDenied</Code><Message>No.</Message></Error></DeleteResult>";
    server.answer_with(Some(Answer::new(200).of(refusal)));
    let error = delete().unwrap_err();
    assert!(error.to_string().contains("AccessDenied"), "{error}");
    server.answer_with(Some(Answer::new(200).of("<html></html>")));
    assert!(delete().unwrap_err().to_string().contains("a web page"));
}

#[test]
fn listing_a_web_server_is_an_error_with_a_remedy() {
    let server = Server::start(well());
    let error = adapter(&server, "data", false).list("").unwrap_err();
    assert_eq!(error.kind().code(), "unsupported");
    assert!(error.to_string().contains("consolidate"), "{error}");
}

/// Returns a page of a listing with these names, and the token of the next one.
fn page(names: impl Iterator<Item = String>, token: &str) -> Answer {
    let contents: String = names
        .map(|name| {
            format!(
                "<Contents><Key>root/{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
            )
        })
        .collect();
    Answer::new(200).of(format!(
        "<ListBucketResult>{contents}<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>\
         </ListBucketResult>"
    ))
}

#[test]
fn endless_lists_are_errors() {
    type Pages = fn(&Message, usize) -> Answer;
    let cases: [(Pages, &str, usize); 6] = [
        (|_, _| page(["a".to_owned()].into_iter(), "again"), "repeated a page token", 2),
        (|_, count| page(std::iter::empty(), &(count % 2).to_string()), "repeated a page token", 3),
        (|_, count| page(std::iter::empty(), &count.to_string()), "without a new name", 1001),
        (
            |_, count| page([format!("a{}", count % 3)].into_iter(), &count.to_string()),
            "without a new name",
            1004,
        ),
        (
            |_, count| page((0..100).map(|name| format!("{count}.{name}")), &count.to_string()),
            "more than 5000 names, the limit set by max_listed",
            51,
        ),
        (|_, _| page(["a".repeat(65 << 20)].into_iter(), "next"), "more than 64 MiB", 1),
    ];
    for (respond, text, requests) in cases {
        let server = Server::start(well());
        let count = AtomicUsize::new(0);
        server.answer_by(move |message| respond(message, count.fetch_add(1, Ordering::SeqCst)));
        let mut policy = patient();
        policy.listed_names = 5000;
        let store = store(&server, "bucket/root", true).with_policy(policy);
        for recursive in [false, true] {
            let before = server.requests();
            let error = list(&store, "", recursive).unwrap_err();
            assert!(error.kind().code() == "io" && error.to_string().contains(text), "{error}");
            assert_eq!(server.requests() - before, requests, "{text}");
        }
    }
}

#[test]
fn an_endless_list_stops_with_its_caller() {
    let server = Server::start(well());
    let count = AtomicUsize::new(0);
    server.answer_by(move |_| {
        let count = count.fetch_add(1, Ordering::SeqCst).to_string();
        page([count.clone()].into_iter(), &count)
    });
    let store = store(&server, "bucket/root", true);
    let looks = AtomicUsize::new(0);
    let pass = || match looks.fetch_add(1, Ordering::SeqCst) {
        0 => Ok(()),
        _ => Err(ErrorKind::Interrupted.into()),
    };
    let error = wait(|done| store.list("", true, done), &pass).unwrap_err();
    assert_eq!(error.kind().code(), "interrupted");
    // Requests stop soon after.
    let is_quiet = (0..100).any(|_| {
        let before = server.requests();
        std::thread::sleep(Duration::from_millis(50));
        server.requests() == before
    });
    assert!(is_quiet);
}

#[test]
fn a_broken_page_is_requested_again() {
    let server = Server::start(Box::new(|_, count| (count == 1).then_some(Fault::Cut)));
    server.objects(|objects| objects.put("bucket/root/zarr.json", vec![1; 9]));
    assert_eq!(list(&store(&server, "bucket/root", true), "", true).unwrap().values.len(), 1);
}

#[test]
fn keys_of_other_programs_do_not_break_a_list() {
    let server = Server::start(well());
    server.objects(|objects| {
        for key in ["zarr.json", "x/zarr.json", "/odd", "x//y", "a\tb", "t/a\tb", "n/../m"] {
            objects.put(&format!("bucket/root/{key}"), vec![0; 2]);
        }
    });
    let adapter = adapter(&server, "bucket/root", true);
    assert_eq!(adapter.list("").unwrap(), ["n", "t", "x", "zarr.json"]);
    assert_eq!(adapter.list("x").unwrap(), ["zarr.json"]);
    assert_eq!(adapter.nbytes("").unwrap(), 4);
}
