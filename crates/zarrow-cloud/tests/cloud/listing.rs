//! What lies below a prefix.

use crate::arrays::{adapter, policy, store};
use crate::message::{Answer, Message};
use crate::server::{Fault, Server, well};
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
    // The first page has to be asked for twice.
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
fn a_web_server_has_no_lists_and_says_what_to_do() {
    let server = Server::start(well());
    let error = adapter(&server, "data", false).list("").unwrap_err();
    assert_eq!(error.kind().code(), "unsupported");
    assert!(error.to_string().contains("consolidate"), "{error}");
}

/// The page of a list with these names, and the token of the next one.
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
fn lists_without_end_are_errors() {
    type Pages = fn(&Message, usize) -> Answer;
    let cases: [(Pages, &str, usize); 6] = [
        (|_, _| page(["a".to_owned()].into_iter(), "again"), "repeats a page token", 2),
        (|_, count| page(std::iter::empty(), &(count % 2).to_string()), "repeats a page token", 3),
        (|_, count| page(std::iter::empty(), &count.to_string()), "without a new name", 1001),
        (
            |_, count| page([format!("a{}", count % 3)].into_iter(), &count.to_string()),
            "without a new name",
            1004,
        ),
        (
            |_, count| page((0..100).map(|name| format!("{count}.{name}")), &count.to_string()),
            "more than 5000 names, which max_listed allows",
            51,
        ),
        (|_, _| page(["a".repeat(65 << 20)].into_iter(), "next"), "more than 64 MiB", 1),
    ];
    for (respond, text, requests) in cases {
        let server = Server::start(well());
        let count = AtomicUsize::new(0);
        server.answer_by(move |message| respond(message, count.fetch_add(1, Ordering::SeqCst)));
        let mut policy = policy();
        (policy.listed_names, policy.hedging, policy.silence) = (5000, false, Duration::from_secs(60));
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
fn a_list_that_goes_on_stops_with_its_caller() {
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
    // Nothing is asked for any more, soon after.
    let is_quiet = (0..100).any(|_| {
        let before = server.requests();
        std::thread::sleep(Duration::from_millis(50));
        server.requests() == before
    });
    assert!(is_quiet);
}

#[test]
fn a_page_that_breaks_off_is_asked_for_again() {
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
