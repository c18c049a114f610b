//! Staged writes of chunks over S3: many requests at once, nothing lost, and nothing after a write was stopped.

use crate::arrays::{SHAPE, adapter, counted, keys, layouts, open_array, read, selections, upload};
use crate::message::Message;
use crate::server::{Fault, Server, seeded, well};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use zarrow::store::{MemoryStore, Store};
use zarrow::{
    Array, ArrayBuilder, Existing, Number, OpenOptions, Selection, Values, WriteOptions, create_array,
};
use zarrow_array::DecodedArray;

fn numbers(server: &Server, path: &str, chunks: [u64; 2]) -> Array {
    let metadata = ArrayBuilder::new(SHAPE, Number::Int32).chunk_shape(chunks).build().unwrap();
    let store = counted(server, path);
    create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default()).unwrap()
}

/// Writes every layout by every selection while requests fail, and compares with a local write.
#[test]
fn remote_writes_equal_local_ones() {
    for (seed, (name, source)) in (1..).zip(layouts()) {
        let server = Server::start(well());
        let copy = MemoryStore::default();
        for key in keys(&*source, "") {
            let bytes = source.get(&key, u64::MAX).unwrap().unwrap();
            copy.writer().unwrap().set(&key, &[&bytes], zarrow::store::Durability::None).unwrap();
        }
        upload(&server, "bucket/array", &*source);
        let local = open_array(Arc::new(copy)).unwrap();
        let remote = open_array(adapter(&server, "bucket/array", true)).unwrap();
        server.behave(seeded(seed, 60));
        for selection in selections() {
            let own = local.read(&selection).unwrap();
            let DecodedArray::Tensor(tensor) = &own else {
                remote.write(&selection, Values::decoded(&own).unwrap()).unwrap();
                continue;
            };
            let turned: Vec<u32> =
                tensor.as_slice::<u32>().unwrap().iter().map(|element| element ^ 0x55).collect();
            let values = Values::slice(&turned, tensor.shape()).unwrap();
            for array in [&local, &remote] {
                array.write(&selection, &values).unwrap();
            }
        }
        server.behave(well());
        let all = Selection::all(&SHAPE);
        assert_eq!(read(&remote, &all).unwrap(), read(&local, &all).unwrap(), "{name}");
    }
}

#[test]
fn many_chunks_are_in_flight_whatever_the_number_of_threads() {
    let server = Server::start(well());
    let array = numbers(&server, "bucket/array", [3, 4]);
    let elements = vec![1_i32; (SHAPE[0] * SHAPE[1]) as usize];
    array.write(.., Values::slice(&elements, &SHAPE).unwrap()).unwrap();
    server.behave(Box::new(|message: &Message, _| (message.method == "PUT").then_some(Fault::Late)));
    let before = server.requests();
    array.write((.., 1..47), Values::scalar(&2_i32)).unwrap();
    assert!(server.most_at_once() > 4 * zarrow::num_threads().min(8), "{}", server.most_at_once());
    // 240 puts, 40 of them after a fetch, and the document before and after.
    assert_eq!(server.requests() - before, 240 + 40 + 2);
    let found = array.read(..).unwrap().into_tensor().unwrap();
    let row = &found.as_slice::<i32>().unwrap()[..48];
    assert_eq!((row[0], row[47], &row[1..47]), (1, 1, &[2; 46][..]));
}

/// Two handles write parts of the same chunks.
#[test]
fn parts_of_one_chunk_by_many_writers_are_all_kept() {
    let server = Server::start(well());
    let array = numbers(&server, "bucket/array", [30, 48]);
    std::thread::scope(|scope| {
        for column in 0..8_i64 {
            let store = adapter(&server, "bucket/array", true);
            scope.spawn(move || {
                let array = open_array(store).unwrap();
                for row in 0..6 {
                    array
                        .write((row * 10..row * 10 + 10, column * 6..column * 6 + 6), Values::scalar(&7_i32))
                        .unwrap();
                }
            });
        }
    });
    assert!(
        array
            .read(..)
            .unwrap()
            .into_tensor()
            .unwrap()
            .as_slice::<i32>()
            .unwrap()
            .iter()
            .all(|found| *found == 7)
    );
}

#[test]
fn nothing_is_put_below_an_erased_array() {
    let server = Server::start(well());
    let array = numbers(&server, "bucket/array", [3, 4]);
    array.write(.., Values::scalar(&1_i32)).unwrap();
    server.objects(|objects| objects.all.clear());
    server.take_log();
    let error = array.write((.., 1..), Values::scalar(&2_i32)).unwrap_err();
    assert_eq!(error.kind().code(), "not_found", "{error}");
    assert!(server.take_log().iter().all(|message| message.method != "PUT"));
}

/// A server takes puts and never answers: stopping the write ends it, and nothing is sent again.
#[test]
fn a_stopped_write_ends_and_sends_nothing_again() {
    let server = Server::start(well());
    let array = numbers(&server, "bucket/array", [3, 4]);
    array.write(.., Values::scalar(&1_i32)).unwrap();
    let silent = || Box::new(|message: &Message, _| (message.method == "PUT").then_some(Fault::Silent));
    server.behave(silent());
    server.take_log();
    let put = AtomicBool::new(false);
    let cancel = || {
        let is_put =
            put.load(Ordering::Relaxed) || server.take_log().iter().any(|message| message.method == "PUT");
        put.store(is_put, Ordering::Relaxed);
        is_put
    };
    let error = array
        .write_request(..)
        .unwrap()
        .options(&WriteOptions::default().cancel(&cancel))
        .write(&Values::scalar(&2_i32))
        .unwrap_err();
    assert_eq!(error.kind().code(), "interrupted", "{error}");
    assert_no_requests(&server);

    let (sender, receiver) = mpsc::channel();
    let elements = array.read(..).unwrap();
    server.take_log();
    let done = move |written| sender.send(written).unwrap();
    let write = array.write_request(..).unwrap().detach(Box::new(elements), done).unwrap();
    let start = Instant::now();
    while !server.take_log().iter().any(|message| message.method == "PUT") {
        assert!(start.elapsed() < Duration::from_secs(20), "no chunk was put");
        std::thread::sleep(Duration::from_millis(1));
    }
    write.cancel();
    let error = receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap_err();
    assert_eq!(error.kind().code(), "interrupted", "{error}");
    assert_no_requests(&server);
}

/// Waits until pending answers have arrived, and then longer than any pause before a retry.
fn assert_no_requests(server: &Server) {
    let is_quiet = |_| {
        std::thread::sleep(Duration::from_millis(100));
        server.take_log().is_empty()
    };
    // Retries would go on for longer.
    let _ = (0..5).any(is_quiet);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(server.take_log().len(), 0);
}

#[test]
fn detached_writes_store_their_values() {
    let server = Server::start(well());
    let array = numbers(&server, "bucket/array", [7, 11]);
    let (sender, receiver) = mpsc::channel();
    for row in 0..60_i64 {
        let store = Arc::new(MemoryStore::default());
        let metadata = ArrayBuilder::new([48], Number::Int32).build().unwrap();
        let source = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default()).unwrap();
        source.write(.., Values::scalar(&(row as i32))).unwrap();
        let selection = Selection::new(&SHAPE, &[row.into()]).unwrap();
        let sender = sender.clone();
        let done = move |written| sender.send(written).unwrap();
        let values = Box::new(source.read(..).unwrap());
        array.write_request(selection).unwrap().detach(values, done).unwrap();
    }
    for _ in 0..60 {
        receiver.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    }
    let found = array.read(..).unwrap().into_tensor().unwrap();
    let rows = found.as_slice::<i32>().unwrap().chunks(48);
    assert!(rows.enumerate().all(|(row, found)| found.iter().all(|element| *element == row as i32)));
    let wrong = Selection::new(&SHAPE, &[0.into()]).unwrap();
    let text = read_text(&server);
    let error = array.write_request(wrong).unwrap().detach(Box::new(text), |_| {}).unwrap_err();
    assert_eq!(error.kind().code(), "unsupported", "{error}");
}

/// Returns text, which a write of numbers refuses.
fn read_text(server: &Server) -> DecodedArray {
    let metadata = ArrayBuilder::new([48], Number::Float64).build().unwrap();
    let store = adapter(server, "bucket/other", true);
    create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default()).unwrap().read(..).unwrap()
}
