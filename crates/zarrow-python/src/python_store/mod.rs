//! Stores written in Python, as remote stores of the engine.
//!
//! 1. `zarrow.store_objects` wraps a store without native support in an *adapter*: an object that describes the store
//!    (`name`, `has_conditions`, ...), and takes requests.
//! 2. A request is put in a queue, without the GIL. A Python thread takes it from the queue (`queue`) and passes it
//!    to the adapter. The answer is given by a method of the request (`request`).
//! 3. Exceptions of the store become the cause of the reported error.
//! 4. Chunks with references that the adapter has added are read without Python (`references`).
//! 5. A call on a thread that answers for stores cannot wait for one (`python/serving_thread.rs`).
//! 6. A forked child uses a new thread, unless the adapter says that its store cannot be used there.

pub mod queue;
pub mod references;
pub mod request;

use crate::python::gil::Kept;
use crate::python::serving_thread;
use crate::python_store::references::References;
use pyo3::prelude::*;
use request::{Operation, Slot, StoreRequest, Teller};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use zarrow::ErrorKind;
use zarrow::store::Store;
use zarrow::store::remote::{
    Condition, FetchPolicy, Listing, OnDone, Put, PutBody, Receiver, RemoteAdapter, RemoteStore,
    RemoteWriter, Request, RequestHandle,
};
use zarrow_array::fork::generation;

/// A store written in Python.
pub struct PythonStore {
    adapter: Arc<Kept<Py<PyAny>>>,
    /// Object passed by the user, for pickling.
    source: Kept<Py<PyAny>>,
    name: String,
    policy: FetchPolicy,
    is_writable: bool,
    has_conditions: bool,
    needs_documents_first: bool,
    references: Option<References>,
    /// Whether forked children can use the store.
    forks: bool,
    generation: u64,
}

impl PythonStore {
    /// Creates the store of `adapter` (step 1).
    pub fn from_python(adapter: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Store>> {
        queue::begin(adapter.py())?;
        let get = |name: &str| adapter.getattr(name);
        let policy = FetchPolicy {
            requests: get("requests")?.extract()?,
            has_suffix: get("has_suffix")?.extract()?,
            // Some stores raise an error instead.
            cuts_ranges: false,
            tells_size: get("tells_size")?.extract()?,
            ..FetchPolicy::default()
        };
        let store = PythonStore {
            source: Kept::new(get("source")?.unbind()),
            name: get("name")?.extract()?,
            policy,
            is_writable: get("is_writable")?.extract()?,
            has_conditions: get("has_conditions")?.extract()?,
            needs_documents_first: get("needs_documents_first")?.extract()?,
            references: get("references")?.cast::<References>().ok().map(|found| found.get().clone()),
            forks: get("forks")?.extract()?,
            adapter: Arc::new(Kept::new(adapter.clone().unbind())),
            generation: generation(),
        };
        Ok(Arc::new(RemoteAdapter::new(Arc::new(store))))
    }

    /// Returns the object that the user passed as the store.
    pub fn source<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.source.bind(py).clone()
    }

    /// Returns the address of the user's object, as its identity.
    pub fn address(&self) -> usize {
        self.source.as_ptr().addr()
    }

    /// Submits a request (step 2).
    fn ask(&self, operation: Operation, teller: Teller) -> RequestHandle {
        let request = StoreRequest::new(Arc::clone(&self.adapter), operation, teller);
        let (slot, number) = (Arc::clone(&request.slot), request.number);
        if !self.forks && self.generation != generation() {
            slot.fail(forked());
            return RequestHandle::ended();
        }
        if let Err(error) = serving_thread::check_request(&self.adapter, request.kind()) {
            slot.fail(error);
            return RequestHandle::ended();
        }
        self.queue(request, &slot, number)
    }

    fn queue(&self, request: StoreRequest, slot: &Arc<Slot>, number: u64) -> RequestHandle {
        match queue::submit(request) {
            Ok(queue) => {
                let slot = Arc::clone(slot);
                RequestHandle::new(move || {
                    if slot.stop() {
                        queue.cancel(number);
                    }
                })
            }
            Err(error) => {
                slot.fail_io(error);
                RequestHandle::ended()
            }
        }
    }
}

/// Returns the error of step 6.
fn forked() -> zarrow::Error {
    let text = "this store object was opened before a fork, and its library does not work in the child";
    zarrow::Error::from(ErrorKind::Unsupported(text.into()))
        .with_hint("start workers by \"spawn\" or \"forkserver\", or open the store in the worker")
}

/// Returns the Python store that a store wraps.
pub fn beneath(store: &dyn Store) -> Option<&PythonStore> {
    let remote: &dyn RemoteStore = store.remote()?;
    (remote as &dyn Any).downcast_ref()
}

impl fmt::Debug for PythonStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("PythonStore").field(&self.name).finish()
    }
}

impl RemoteStore for PythonStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn policy(&self) -> FetchPolicy {
        self.policy
    }

    fn submit(&self, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        let receiver = match &self.references {
            None => receiver,
            // Step 4.
            Some(references) => match references.submit(&request, receiver) {
                Ok(handle) => return handle,
                Err(receiver) => receiver,
            },
        };
        self.ask(Operation::Get(request), Teller::Get(receiver))
    }

    fn list(&self, prefix: &str, recursive: bool, done: OnDone<Listing>) -> RequestHandle {
        self.ask(Operation::List { prefix: prefix.to_owned(), recursive }, Teller::List(done))
    }

    fn writer(&self) -> Option<&dyn RemoteWriter> {
        self.is_writable.then_some(self)
    }
}

impl RemoteWriter for PythonStore {
    fn tells_versions(&self) -> bool {
        // Versions are digests of all bytes, only computed for a change.
        false
    }

    fn needs_documents_first(&self) -> bool {
        self.needs_documents_first
    }

    fn has_conditions(&self) -> bool {
        self.has_conditions
    }

    fn put(&self, key: &str, body: PutBody, condition: Condition, done: OnDone<Put>) -> RequestHandle {
        let body = match body.into_parts() {
            Ok(body) => body,
            Err(error) => {
                done(Err(error));
                return RequestHandle::ended();
            }
        };
        self.ask(Operation::Put { key: key.to_owned(), body, condition }, Teller::Put(done))
    }

    fn delete(&self, keys: Vec<String>, done: OnDone<()>) -> RequestHandle {
        self.ask(Operation::Delete(keys), Teller::Delete(done))
    }
}
