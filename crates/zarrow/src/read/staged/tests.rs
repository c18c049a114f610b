//! The order of steps that only a busy machine takes.

use super::{Next, Ready, Staged};
use crate::codec::Worker;
use crate::place::result::ResultMemory;
use crate::pool::job::Checkpoint;
use crate::read::chunk_list::ChunkList;
use crate::read::item::Item;
use crate::store::remote::{
    FetchPolicy, Head, Listing, OnDone, Outcome, Receiver, RemoteAdapter, RemoteStore, Request, RequestHandle,
};
use crate::{Result, Selection};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zarrow_array::DecodedArray;

/// An array with one missing chunk; its store answers before `submit` returns.
#[derive(Debug)]
struct Missing;

const DOCUMENT: &[u8] = br#"{"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "uint8",
    "fill_value": 7, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}"#;

impl RemoteStore for Missing {
    fn name(&self) -> &str {
        "missing"
    }

    fn policy(&self) -> FetchPolicy {
        FetchPolicy::default()
    }

    fn submit(&self, request: Request, mut receiver: Box<dyn Receiver>) -> RequestHandle {
        let outcome = if request.key == "zarr.json" {
            let head = Head { start: 0, nbytes: Some(DOCUMENT.len() as u64), version: None };
            let _ = receiver.head(&head);
            let _ = receiver.frame(DOCUMENT);
            Outcome::Complete
        } else {
            Outcome::Missing
        };
        receiver.done(Ok(outcome));
        RequestHandle::ended()
    }

    fn list(&self, _: &str, _: bool, done: OnDone<Listing>) -> RequestHandle {
        done(Ok(Listing::default()));
        RequestHandle::ended()
    }
}

impl Staged<'_, '_> {
    /// Begins the first object, and receives its answer before that work ends, as another thread may.
    fn answered_while_begun(&self, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let Next::Open(number) = self.next()? else { panic!("there is one chunk") };
        self.open(number)?;
        let begin = self.state.lock().take();
        let Some(Ready { object, attempt, plan, .. }) = begin else { panic!("it begins") };
        self.begin(object, attempt, &plan, checkpoint)?;
        self.advance(checkpoint)?;
        let arrival = self.inbox.arrivals.lock().pop_front();
        arrival.into_iter().try_for_each(|arrival| self.receive(arrival))?;
        let mut state = self.state.lock();
        state.end_work(object, attempt);
        state.settle(object);
        Ok(())
    }
}

/// One thread has requested the chunk and is stopped there; another gets the answer; then the first one continues.
#[test]
fn missing_chunks_are_set_even_if_the_answer_precedes_the_end_of_the_requesting_work() {
    let array = crate::open(Arc::new(RemoteAdapter::new(Arc::new(Missing))), "").unwrap();
    let array = array.into_array().unwrap();
    let (reader, selection) = (array.reader(), Selection::all(&[1]));
    let mut memory = ResultMemory::new(&reader.metadata.data_type, selection.shape(), None).unwrap();
    let missed = AtomicBool::new(false);
    {
        let sinks: Vec<_> = memory.sinks(&[selection.flat_shape()]).collect();
        let item = Item { array: 0, reader, selection: &selection };
        let items = [(item, &sinks[0])];
        let list = ChunkList::new(&items).unwrap();
        let (staged, is_begun) = (Staged::new(&items, &list, &missed), AtomicBool::new(false));
        let task = |_, worker: &mut Worker, checkpoint: &Checkpoint<'_>| -> Result<()> {
            if !is_begun.swap(true, Ordering::SeqCst) {
                staged.answered_while_begun(checkpoint)?;
            }
            staged.step(worker, checkpoint)
        };
        staged.job().add(1);
        staged.job().run(1, &|| false, &task).unwrap();
    }
    assert!(missed.load(Ordering::SeqCst));
    // SAFETY: the only chunk was set.
    let read = unsafe { memory.finish(&reader.metadata.fill_value, &|| false) }.unwrap();
    let DecodedArray::Tensor(tensor) = read else { panic!("numbers are a tensor") };
    assert_eq!(tensor.bytes(), [7]);
}
