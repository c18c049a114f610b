//! Opening a node without blocking, for event loops.
//!
//! 1. The node's likely documents are requested. No thread waits for them.
//! 2. On their arrival a thread of the pool parses them, and requests further documents if needed.
//! 3. A cancelled open cancels its requests.

use crate::error::{Error, ErrorKind, Result};
use crate::node::any::{Node, node_with_document};
use crate::node::array::detached::Detached;
use crate::node::node_documents::Search;
use crate::node::open::open_with;
use crate::node::open_options::OpenOptions;
use crate::pool::{OpenJob, OwnedTask};
use crate::store::remote::{RequestHandle, documents};
use crate::store::{Got, Store, normalize_path};
use std::sync::Arc;
use zarrow_array::fork::Mutex;

/// Opens a node as [`open_with`] does, on the engine's threads: returns at once, and calls `done` on one of the
/// threads.
///
/// A remote store needs no thread per open, so thousands of nodes can be opened concurrently. Its errors have no
/// [hint](Error::hint) about nearby nodes.
///
/// # Errors
/// [`ErrorKind::BadKey`] for a path that leaves the store, [`ErrorKind::Io`] if no thread can start. `done` is not
/// called after an error.
///
/// ```
/// use std::sync::{Arc, mpsc};
/// use zarrow::{OpenOptions, store::MemoryStore};
/// let root = br#"{"zarr_format": 3, "node_type": "group"}"#;
/// let store = Arc::new(MemoryStore::new([("zarr.json", root.to_vec())])?);
/// let (sender, receiver) = mpsc::channel();
/// zarrow::open_detached(store, "", &OpenOptions::default(), move |node| sender.send(node).unwrap())?;
/// assert_eq!(receiver.recv()??.into_group()?.path(), "");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_detached(
    store: Arc<dyn Store>,
    path: &str,
    options: &OpenOptions,
    done: impl FnOnce(Result<Node>) + Send + 'static,
) -> Result<Detached> {
    let path = normalize_path(path).map_err(|error| error.in_array(store.name(), path))?;
    let options = *options;
    if store.remote().is_none() {
        return Detached::spawn(move |_| open_with(store, &path, &options), done);
    }
    let search = Search::new(&*store, &path, &options.limits.metadata);
    let state =
        Mutex::new(State { search: Some(search), documents: None, handles: Vec::new(), opened: None });
    let job = OpenJob::new();
    let opening = Arc::new(Opening { store, path, options, job: job.clone(), state });
    let own = Arc::clone(&opening);
    let task: OwnedTask = Arc::new(move |_, _, _| {
        own.step();
        Ok(())
    });
    let ended = Arc::clone(&opening);
    let on_end = move |result: Result<()>| {
        let (handles, opened) = {
            let mut state = ended.state.lock();
            (std::mem::take(&mut state.handles), state.opened.take())
        };
        handles.iter().for_each(RequestHandle::cancel);
        let lost = || Err(ErrorKind::Internal("the open ended without a result".into()).into());
        let opened = result.and_then(|()| opened.unwrap_or_else(lost));
        done(opened.map_err(|error| ended.place(error)));
    };
    job.spawn(task, Box::new(on_end))?;
    opening.request();
    Ok(Detached::new(job))
}

/// An open under way.
struct Opening {
    store: Arc<dyn Store>,
    path: String,
    options: OpenOptions,
    job: OpenJob,
    state: Mutex<State>,
}

struct State {
    /// `None` while a thread parses the documents.
    search: Option<Search>,
    /// Documents that have arrived.
    documents: Option<Result<Vec<Got>>>,
    /// Requests of each round.
    handles: Vec<RequestHandle>,
    opened: Option<Result<Node>>,
}

impl Opening {
    /// Step 1.
    fn request(self: &Arc<Self>) {
        let Some(remote) = self.store.remote() else { return };
        let keys = self.state.lock().search.as_ref().map(Search::keys).unwrap_or_default();
        let answer = Answer(Some(Arc::clone(self)));
        let handle = documents(remote, &keys, Box::new(move |found| answer.answer(found)));
        self.state.lock().handles.push(handle);
    }

    /// Step 2.
    fn step(self: &Arc<Self>) {
        let (documents, search) = {
            let mut state = self.state.lock();
            (state.documents.take(), state.search.take())
        };
        let (Some(documents), Some(mut search)) = (documents, search) else { return };
        let metadata = match documents {
            Ok(found) => search.answered(&*self.store, found),
            Err(error) => Some(Err(error)),
        };
        let Some(metadata) = metadata else {
            self.state.lock().search = Some(search);
            return self.request();
        };
        let opened = metadata
            .and_then(|metadata| node_with_document(&self.store, self.path.clone(), metadata, &self.options));
        self.state.lock().opened = Some(opened);
        self.job.finish();
    }

    fn place(&self, error: Error) -> Error {
        error.in_array(self.store.name(), &self.path)
    }
}

/// Passes a response on to a thread of the pool, even if the store drops it.
struct Answer(Option<Arc<Opening>>);

impl Answer {
    fn answer(mut self, documents: Result<Vec<Got>>) {
        if let Some(opening) = self.0.take() {
            opening.state.lock().documents = Some(documents);
            opening.job.add(1);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(opening) = self.0.take() {
            let lost = ErrorKind::Internal("the store did not answer a request".into());
            opening.state.lock().documents = Some(Err(lost.into()));
            opening.job.add(1);
        }
    }
}
