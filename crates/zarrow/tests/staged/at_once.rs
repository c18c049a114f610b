//! A store that answers before its request returns: nothing of a read may count on the answer being later.

use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use zarrow::Selection;
use zarrow::store::remote::{
    FetchPolicy, Head, Listing, OnDone, Outcome, Receiver, RemoteAdapter, RemoteStore, Request, RequestHandle,
};
use zarrow_array::DecodedArray;

/// An array of which no chunk is stored.
#[derive(Debug)]
struct AtOnce(Vec<u8>);

impl RemoteStore for AtOnce {
    fn name(&self) -> &str {
        "at once"
    }

    fn policy(&self) -> FetchPolicy {
        FetchPolicy { requests: 256, ..FetchPolicy::default() }
    }

    fn submit(&self, request: Request, mut receiver: Box<dyn Receiver>) -> RequestHandle {
        if request.key != "zarr.json" {
            receiver.done(Ok(Outcome::Missing));
            return RequestHandle::ended();
        }
        let head = Head { start: 0, nbytes: Some(self.0.len() as u64), version: None };
        let outcome = match receiver.head(&head) {
            ControlFlow::Continue(()) if receiver.frame(&self.0).is_continue() => Outcome::Complete,
            _ => Outcome::Stopped,
        };
        receiver.done(Ok(outcome));
        RequestHandle::ended()
    }

    fn list(&self, _: &str, _: bool, done: OnDone<Listing>) -> RequestHandle {
        done(Ok(Listing::default()));
        RequestHandle::ended()
    }
}

/// Chunks that are missing are set, though the answer comes while the work that asked for it has not ended. More threads than
/// processors, so that one of them is stopped anywhere.
#[test]
fn missing_chunks_are_set_however_soon_that_is_known() {
    const COUNT: u64 = 20_000;
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [COUNT], "data_type": "uint32", "fill_value": 7,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    let store = Arc::new(RemoteAdapter::new(Arc::new(AtOnce(document.to_string().into_bytes()))));
    let array = zarrow::open(store, "").unwrap().into_array().unwrap();
    let threads = zarrow::num_threads();
    zarrow::set_num_threads(16);
    for round in 0..50 {
        let DecodedArray::Tensor(tensor) = array.read(Selection::all(&[COUNT])).unwrap() else {
            panic!("numbers are a tensor")
        };
        let wrong = tensor.as_slice::<u32>().unwrap().iter().filter(|element| **element != 7).count();
        assert_eq!(wrong, 0, "round {round}");
    }
    zarrow::set_num_threads(threads);
}
