//! Concurrent requests for whole values.

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::ZARR_JSON;
use crate::store::remote::body::Body;
use crate::store::remote::{
    ByteRange, Collector, Fetched, OnDone, RemoteStore, Request, RequestClass, RequestHandle, Waiting,
};
use crate::store::{Got, check_key};
use std::sync::Arc;
use zarrow_array::fork::Mutex;

/// Number of requests that are started before waiting for the first one.
const AT_ONCE: usize = 1024;

pub(super) fn document_request(key: &str) -> Request {
    Request::new(key, ByteRange::Whole).with_class(RequestClass::Metadata)
}

/// Returns all bytes of a value that was requested with this limit.
pub(super) fn whole(fetched: Fetched, limit: u64) -> Got {
    match fetched {
        Fetched::TooLarge(actual) => {
            Err(ErrorKind::Limit { what: "the size of a document", actual, limit }.into())
        }
        other => Ok(body(other)?.map(|body| body.bytes)),
    }
}

/// Returns the body of an answer to a request for any version.
pub(super) fn body(fetched: Fetched) -> Result<Option<Body>> {
    match fetched {
        Fetched::Body(body) => Ok(Some(body)),
        Fetched::Missing => Ok(None),
        Fetched::Changed => Err(changed()),
        Fetched::TooLarge(_) => {
            Err(ErrorKind::Internal("the store sent more bytes than requested".into()).into())
        }
    }
}

/// Returns the error for a value that was replaced after it was opened.
pub(super) fn changed() -> Error {
    let text = "the value was replaced while it was read";
    Error::from(std::io::Error::other(text)).with_hint("read again")
}

/// Requests the whole values under `keys`, each with its limit, at once. Returns an answer for each, with the value's
/// version.
pub fn fetch_each(store: &dyn RemoteStore, keys: &[(String, u64)]) -> Vec<Result<Fetched>> {
    let mut found = Vec::new();
    for some in keys.chunks(AT_ONCE) {
        let begun: Vec<Result<Waiting<Fetched>>> = some
            .iter()
            .map(|(key, limit)| {
                check_key(key)?;
                let submit =
                    |done| store.submit(document_request(key), Box::new(Collector::new(*limit, done)));
                Ok(Waiting::begin(submit))
            })
            .collect();
        found.extend(begun.into_iter().map(|waiting| waiting?.wait(&|| Ok(()))));
    }
    found
}

/// Requests the values under `keys`, each with its limit, and calls `done` with the results in the order of `keys`:
/// when all have arrived, or as soon as the first one exists and is a `zarr.json`, which has precedence. Then the
/// others may be `None`, and their requests end by themselves: cancelling them would close their connections.
pub(crate) fn documents(
    store: &dyn RemoteStore,
    keys: &[(String, u64)],
    done: OnDone<Vec<Got>>,
) -> RequestHandle {
    if let Err(error) = keys.iter().try_for_each(|(key, _)| check_key(key)) {
        done(Err(error));
        return RequestHandle::ended();
    }
    let found = keys.iter().map(|_| Ok(None)).collect();
    let has_first = keys.first().is_some_and(|(key, _)| key.rsplit('/').next() == Some(ZARR_JSON));
    let state = State { found, left: keys.len(), has_first, done: Some(done), handles: Vec::new() };
    let pending = Arc::new(Pending(Mutex::new(state)));
    for (place, (key, limit)) in keys.iter().enumerate() {
        let (own, limit) = (Arc::clone(&pending), *limit);
        let receive = move |fetched: Result<Fetched>| {
            own.receive(place, fetched.and_then(|fetched| whole(fetched, limit)));
        };
        let handle = store.submit(document_request(key), Box::new(Collector::new(limit, Box::new(receive))));
        pending.keep(handle);
    }
    RequestHandle::new(move || pending.cancel())
}

/// Requests in flight.
struct Pending(Mutex<State>);

struct State {
    found: Vec<Got>,
    /// Number of pending answers.
    left: usize,
    /// Whether the first value decides, if it exists.
    has_first: bool,
    /// `None` after the call.
    done: Option<OnDone<Vec<Got>>>,
    handles: Vec<RequestHandle>,
}

impl Pending {
    fn receive(&self, place: usize, got: Got) {
        let mut state = self.0.lock();
        let decides = state.has_first && place == 0 && !matches!(got, Ok(None));
        state.left -= 1;
        let replaced = state.found.get_mut(place).map(|found| std::mem::replace(found, got));
        let is_enough = decides || state.left == 0;
        let done = if is_enough { state.done.take() } else { None };
        let (found, handles) = match &done {
            Some(_) => (std::mem::take(&mut state.found), std::mem::take(&mut state.handles)),
            None => (Vec::new(), Vec::new()),
        };
        drop(state);
        drop((replaced, handles));
        if let Some(done) = done {
            done(Ok(found));
        }
    }

    fn keep(&self, handle: RequestHandle) {
        let mut state = self.0.lock();
        if state.done.is_some() {
            state.handles.push(handle);
        }
    }

    /// Cancels the pending requests.
    fn cancel(&self) {
        let handles = std::mem::take(&mut self.0.lock().handles);
        handles.iter().for_each(RequestHandle::cancel);
    }
}
