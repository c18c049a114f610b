//! Changes that fail after their first step: the state that remains, and the report.

use crate::arrays::{adapter, policy};
use crate::message::{Answer, Message};
use crate::server::{Fault, Manner, Server, once, well};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use zarrow::store::Store;
use zarrow::store::remote::{RemoteStore, wait};
use zarrow::{
    Array, ArrayBuilder, Existing, Number, OpenOptions, Values, WriteOptions, create_array,
    create_array_with, open, with_warnings,
};
use zarrow_cloud::{CloudStore, StorageOptions};

/// Refuses chunks.
fn without_chunks() -> Manner {
    Box::new(|message: &Message, _| {
        (message.method == "PUT" && message.path().contains("/c/")).then_some(Fault::Status(403))
    })
}

fn opened(server: &Server) -> Array {
    let store: Arc<dyn Store> = adapter(server, "bucket/tree", true);
    open(store, "x").unwrap().into_array().unwrap()
}

#[test]
fn a_failed_append_says_which_elements_are_missing() {
    let server = Server::start(well());
    let store: Arc<dyn Store> = adapter(&server, "bucket/tree", true);
    let metadata = ArrayBuilder::new([4], Number::Int32).chunk_shape([4]).build().unwrap();
    let mut array = create_array(store, "x", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
    array.write(.., &[1_i32; 4]).unwrap();
    server.behave(without_chunks());
    let error = array.append(&[2_i32; 4], 0).unwrap_err();
    server.behave(well());
    assert_eq!(error.kind().code(), "permission");
    assert!(error.to_string().contains("elements 4 to 8 along axis 0 may be missing"), "{error}");
    assert_eq!((array.shape(), opened(&server).shape()), (&[8][..], &[8][..]));
    // Another appends behind the place, which is then filled as the error says.
    assert_eq!(opened(&server).append(&[3_i32; 4], 0).unwrap(), 8);
    array.write(4..8, &[2_i32; 4]).unwrap();
    let elements = opened(&server).read(..).unwrap().into_tensor().unwrap();
    assert_eq!(elements.as_slice::<i32>().unwrap(), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn groups_that_stay_after_a_failed_creation_are_a_warning() {
    let server = Server::start(well());
    let store: Arc<dyn Store> = adapter(&server, "bucket/tree", true);
    let create = |value: i32| {
        let metadata = ArrayBuilder::new([4], Number::Int32).build().unwrap();
        let (options, write) = (OpenOptions::default(), WriteOptions::default());
        let values = Values::scalar(&value);
        create_array_with(Arc::clone(&store), "a/b/x", metadata, &values, Existing::Refuse, &options, &write)
    };
    server.behave(without_chunks());
    let (failed, warnings) = with_warnings(|| create(1));
    server.behave(well());
    assert_eq!(failed.unwrap_err().kind().code(), "permission");
    assert!(warnings.len() == 1 && warnings[0].contains(r#"["/", "/a", "/a/b"]"#), "{warnings:?}");
    // They are in no way of a second creation.
    let (created, warnings) = with_warnings(|| create(2));
    assert_eq!(created.unwrap().shape(), [4]);
    assert!(warnings.is_empty(), "{warnings:?}");
}

/// An answer that does not say whether the put was applied, or asks for another attempt, is overcome.
#[test]
fn a_put_with_a_passing_error_is_tried_again_and_recognised() {
    let faults = [
        Fault::RefusedAfter(500, "InternalError"),
        Fault::RefusedAfter(503, "SlowDown"),
        Fault::RefusedAfter(400, "RequestTimeout"),
        Fault::Refused(400, "RequestTimeout"),
        Fault::Refused(409, "ConditionalRequestConflict"),
    ];
    for fault in faults {
        for existing in [Existing::Refuse, Existing::Erase] {
            let server = Server::start(well());
            let store: Arc<dyn Store> = adapter(&server, "bucket/tree", true);
            let create = |value: i32, existing| {
                let metadata = ArrayBuilder::new([4], Number::Int32).build().unwrap();
                let (options, write) = (OpenOptions::default(), WriteOptions::default());
                let values = Values::scalar(&value);
                create_array_with(Arc::clone(&store), "x", metadata, &values, existing, &options, &write)
            };
            if existing == Existing::Erase {
                create(1, Existing::Refuse).unwrap();
            }
            // Each put of the array gets the fault once: its unfinished document, its chunk, its document.
            let met = Mutex::new(HashMap::new());
            server.behave(Box::new(move |message: &Message, _| {
                let is_put = message.method == "PUT" && message.path().contains("tree/x/");
                let mut met = met.lock().unwrap();
                let times =
                    met.entry((message.path().to_owned(), message.header("if-match").is_some())).or_insert(0);
                *times += usize::from(is_put);
                (is_put && *times == 1).then_some(fault)
            }));
            let created = create(2, existing);
            server.behave(well());
            created.unwrap_or_else(|error| panic!("{fault:?}, {existing:?}: {error}"));
            let elements = opened(&server).read(..).unwrap().into_tensor().unwrap();
            assert_eq!(elements.as_slice::<i32>().unwrap(), [2; 4], "{fault:?}");
        }
    }
}

#[test]
fn a_batch_of_deletes_is_sent_again_if_its_answer_is_cut_off() {
    let server = Server::start(once(Fault::Cut));
    server.answer_by(|_| {
        let body = "--parts\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 \
                    Accepted\r\nx-ms-version: 2018-11-09\r\n\r\n--parts--\r\n";
        Answer::new(202).with("content-type", "multipart/mixed; boundary=parts").of(body)
    });
    let options = json!({"account_name": "me", "endpoint_url": server.url(""), "sas_token": "sv=1&sig=c2ln"});
    let options = StorageOptions::from_json(&options.to_string()).unwrap();
    let store = CloudStore::new("az://files/a", options).unwrap().with_policy(policy());
    let writer = store.writer().unwrap();
    wait(|done| writer.delete(vec!["k".into()], done), &|| Ok(())).unwrap();
    assert_eq!(server.take_log().iter().filter(|message| message.target.contains("comp=batch")).count(), 2);
}
