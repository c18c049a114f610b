//! Chunk references: chunks that are parts of objects in other stores, read without Python.
//!
//! 1. The adapter of a store adds columns of references, array by array (`columns`).
//! 2. A request for a chunk with a reference is answered by the store of the object, on the thread that submits it
//!    (`target`).
//! 3. Any other request goes to the adapter. It may add references, and then pass the request back.

mod columns;
mod merge;
mod part;
mod target;

pub use columns::ChunkReferences;
pub use target::ReferenceTarget;

use crate::python_store::request::{Operation, StoreRequest, Teller};
use columns::{Columns, Found};
use part::ObjectPart;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use target::Target;
use zarrow::Result;
use zarrow::store::remote::{Head, Outcome, Receiver, Request, RequestHandle};
use zarrow_array::fork::Mutex;

/// The references of a store, by the paths of arrays.
#[derive(Default)]
struct Arrays(Mutex<HashMap<String, Arc<Columns>>>);

/// The references of a store.
#[pyclass(frozen, name = "_References", module = "zarrow")]
pub struct References(Arc<Arrays>);

#[pymethods]
impl References {
    #[new]
    fn new() -> References {
        References(Arc::default())
    }

    /// Set the references of the array at a path.
    fn set_array(&self, path: String, references: &ChunkReferences) {
        let replaced = self.0.0.lock().insert(path, Arc::clone(&references.0));
        drop(replaced);
    }

    /// Answer a request, and return whether there is a reference for it.
    fn answer(&self, py: Python<'_>, request: &StoreRequest) -> bool {
        let Operation::Get(get) = &request.operation else { return false };
        py.detach(|| {
            let Some(source) = self.find(&get.key) else { return false };
            let Some(Teller::Get(receiver)) = request.slot.take() else { return true };
            request.slot.follow(source.answer(get, receiver));
            true
        })
    }
}

impl Clone for References {
    fn clone(&self) -> References {
        References(Arc::clone(&self.0))
    }
}

impl References {
    /// Answers a request, or returns the receiver: there is no reference (step 3).
    pub fn submit(
        &self,
        request: &Request,
        receiver: Box<dyn Receiver>,
    ) -> std::result::Result<RequestHandle, Box<dyn Receiver>> {
        match self.find(&request.key) {
            Some(source) => Ok(source.answer(request, receiver)),
            None => Err(receiver),
        }
    }

    fn find(&self, key: &str) -> Option<Source> {
        let arrays = self.0.0.lock();
        if arrays.is_empty() {
            return None;
        }
        let parts = key.rmatch_indices('/').map(|(at, _)| (&key[..at], &key[at + 1..]));
        let (columns, rest) = parts
            .chain([("", key)])
            .find_map(|(path, rest)| arrays.get(path).map(|columns| (Arc::clone(columns), rest)))?;
        drop(arrays);
        match columns.find(rest) {
            Found::Unknown => None,
            Found::Missing => Some(Source::Missing),
            Found::Bytes(bytes) => Some(Source::Bytes(bytes)),
            Found::ObjectPart { target, name, offset, nbytes } => {
                let part = target.part(&name, offset, nbytes);
                Some(Source::ObjectPart(target, part))
            }
        }
    }
}

/// Where the bytes of a chunk are.
enum Source {
    ObjectPart(Arc<Target>, Result<ObjectPart>),
    Bytes(Arc<[u8]>),
    Missing,
}

impl Source {
    fn answer(self, request: &Request, mut receiver: Box<dyn Receiver>) -> RequestHandle {
        let outcome = match self {
            Source::ObjectPart(target, Ok(part)) => return target.answer(part, request, receiver),
            Source::ObjectPart(_, Err(error)) => Err(error),
            Source::Missing => Ok(Outcome::Missing),
            Source::Bytes(bytes) => {
                let nbytes = bytes.len() as u64;
                let part = ObjectPart { key: String::new(), offset: 0, nbytes, version: None };
                let range = request.range.within(part.nbytes);
                let head = Head { start: range.start, nbytes: Some(nbytes), version: None };
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let bytes = bytes.get(place(range.start)..place(range.end)).unwrap_or_default();
                let goes_on = receiver.head(&head).is_continue()
                    && (bytes.is_empty() || receiver.frame(bytes).is_continue());
                Ok(if goes_on { Outcome::Complete } else { Outcome::Stopped })
            }
        };
        receiver.done(outcome);
        RequestHandle::ended()
    }
}
