//! Detached reads of local and remote stores: their results, their concurrency, and their cancellation.

use super::{local, manner, open, selections, single};
use crate::arrays::{SHAPE, dump, kinds, written};
use crate::simulated::{Manner, SimulatedStore};
use std::sync::Arc;
use zarrow::store::remote::{FetchPolicy, RemoteAdapter};
use zarrow::{Array, ErrorKind, Index, Selection};
use zarrow_array::DecodedArray;

/// Starts a detached read, and waits for it.
fn detached(array: &Array, selection: &Selection) -> zarrow::Result<DecodedArray> {
    let (sender, receiver) = std::sync::mpsc::channel();
    array.request(selection.clone()).unwrap().detach(move |decoded| sender.send(decoded).unwrap()).unwrap();
    receiver.recv().unwrap()
}

/// Detached reads have the same results, from local and remote stores.
#[test]
fn detached_reads_equal_direct_ones() {
    for (number, kind) in kinds().into_iter().enumerate() {
        let values = written(&kind, 0);
        let direct = local(&values);
        let store = SimulatedStore::new(single(&values), Manner { restarts: 17, ..manner(number as u64) });
        let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
        for selection in selections() {
            let expected = dump(&direct.read(&selection).unwrap());
            assert_eq!(dump(&detached(&direct, &selection).unwrap()), expected, "{}", kind.name);
            assert_eq!(dump(&detached(&staged, &selection).unwrap()), expected, "{}", kind.name);
        }
    }
}

/// Hundreds of reads are under way on a few threads, and each has its own result.
#[test]
fn many_detached_reads_hold_no_threads() {
    let kind = kinds().into_iter().find(|kind| kind.name == "sharded").unwrap();
    let values = written(&kind, 0);
    let store = SimulatedStore::new(single(&values), Manner { policy: FetchPolicy::default(), ..manner(4) });
    let (direct, staged) = (local(&values), open(Arc::new(RemoteAdapter::new(store.clone())), 0));
    let row = |number: i64| Selection::new(&SHAPE, &[Index::At(number % 60)]).unwrap();
    store.seen();
    store.wait_for(600);
    let (sender, receiver) = std::sync::mpsc::channel();
    for number in 0..600 {
        let sender = sender.clone();
        let done = move |decoded| sender.send((number, decoded)).unwrap();
        staged.request(row(number)).unwrap().detach(done).unwrap();
    }
    for _ in 0..600 {
        let (number, decoded) = receiver.recv().unwrap();
        assert_eq!(dump(&decoded.unwrap()), dump(&direct.read(row(number)).unwrap()), "row {number}");
    }
    assert!(store.seen().1 >= 600);
}

/// A detached read that is cancelled at any event ends when its requests end, and frees its memory.
#[test]
fn a_detached_read_is_cancelled_at_any_event() {
    for kind in kinds() {
        let values = written(&kind, 0);
        let expected = dump(&local(&values).read(..).unwrap());
        for (turn, stop) in (0..60).step_by(7).enumerate() {
            let store = SimulatedStore::new(single(&values), manner(turn as u64 * 5));
            let staged = open(Arc::new(RemoteAdapter::new(store.clone())), 0);
            let begun = store.events();
            let (sender, receiver) = std::sync::mpsc::channel();
            let selection = Selection::all(&SHAPE);
            let read = staged
                .request(selection)
                .unwrap()
                .detach(move |decoded| sender.send(decoded).unwrap())
                .unwrap();
            let found = loop {
                match receiver.try_recv() {
                    Ok(found) => break found,
                    Err(_) if store.events() >= begun + stop => {
                        read.cancel();
                        break receiver.recv().unwrap();
                    }
                    Err(_) => std::thread::yield_now(),
                }
            };
            match found {
                Ok(found) => assert_eq!(dump(&found), expected),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Interrupted), "{}: {error}", kind.name)
                }
            }
            store.settle();
        }
    }
}

/// The caller's memory is complete, and not written any more, when the read calls back.
#[test]
fn a_detached_read_into_memory_of_the_callers() {
    let kind = kinds().into_iter().find(|kind| kind.name == "zstd").unwrap();
    let values = written(&kind, 0);
    let store = SimulatedStore::new(single(&values), manner(8));
    let expected =
        local(&values).read(..).unwrap().into_tensor().unwrap().as_slice::<u32>().unwrap().to_vec();
    for array in [open(Arc::new(RemoteAdapter::new(store)), 0), local(&values)] {
        let mut memory = vec![0u32; expected.len()];
        let strides = vec![SHAPE[1] as isize * 4, 4];
        let out = zarrow::Strided::new(memory.as_mut_ptr().cast(), memory.len() * 4, 0, strides);
        let (sender, receiver) = std::sync::mpsc::channel();
        let done = move |read: zarrow::Result<()>| sender.send(read).unwrap();
        // SAFETY: the memory is not used until the read has called back.
        unsafe { array.request(..).unwrap().out(out) }.detach(done).unwrap();
        receiver.recv().unwrap().unwrap();
        assert_eq!(memory, expected);
    }
}
