//! A request to a Python store, with the methods that answer it.
//!
//! 1. A request is answered once, from any thread: the first answer counts, and later ones have no effect.
//!    Cancelling counts as an answer.
//! 2. Bytes are delivered without the GIL; they are copied first if the buffer is writable.
//! 3. Dropping an unanswered request is an error.

use crate::python::failure::PythonFailure;
use crate::python::gil::Kept;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow::ErrorKind;
use zarrow::store::check_key;
use zarrow::store::remote::{
    ByteRange, Condition, Head, ListedValue, Listing, ObjectVersion, OnDone, Outcome, Put, Receiver, Request,
    RequestHandle,
};
use zarrow_array::fork::{Mutex, generation};

/// The operation.
pub enum Operation {
    Get(Request),
    List { prefix: String, recursive: bool },
    Put { key: String, body: Vec<Vec<u8>>, condition: Condition },
    Delete(Vec<String>),
}

/// The receiver of the answer.
pub enum Teller {
    Get(Box<dyn Receiver>),
    List(OnDone<Listing>),
    Put(OnDone<Put>),
    Delete(OnDone<()>),
}

impl Teller {
    fn fail(self, error: zarrow::Error) {
        match self {
            Teller::Get(receiver) => receiver.done(Err(error)),
            Teller::List(done) => done(Err(error)),
            Teller::Put(done) => done(Err(error)),
            Teller::Delete(done) => done(Err(error)),
        }
    }

    /// Returns the error of a store that failed in this operation.
    fn error(&self, error: io::Error) -> zarrow::Error {
        match self {
            Teller::Get(_) | Teller::List(_) => ErrorKind::Io(error).into(),
            Teller::Put(_) | Teller::Delete(_) => ErrorKind::Write(error).into(),
        }
    }
}

/// The receiver, until it gets the answer (step 1).
pub struct Slot {
    teller: Mutex<Option<Teller>>,
    /// Request to another store that answers this one.
    followed: Mutex<Option<RequestHandle>>,
    generation: u64,
}

impl Slot {
    pub fn new(teller: Teller) -> Arc<Slot> {
        Arc::new(Slot {
            teller: Mutex::new(Some(teller)),
            followed: Mutex::new(None),
            generation: generation(),
        })
    }

    /// Cancels another request when this one is cancelled.
    pub(super) fn follow(&self, handle: RequestHandle) {
        *self.followed.lock() = Some(handle);
    }

    pub(super) fn take(&self) -> Option<Teller> {
        self.teller.lock().take()
    }

    /// Reports an error.
    pub fn fail(&self, error: zarrow::Error) {
        if let Some(teller) = self.take() {
            teller.fail(error);
        }
    }

    /// Reports an error of the store, unless already answered.
    pub fn fail_io(&self, error: io::Error) {
        if let Some(teller) = self.take() {
            let error = teller.error(error);
            teller.fail(error);
        }
    }

    /// Reports that the request was stopped; returns false if it was answered before.
    pub fn stop(&self) -> bool {
        match self.take() {
            Some(Teller::Get(receiver)) => receiver.done(Ok(Outcome::Stopped)),
            Some(teller) => teller.fail(ErrorKind::Interrupted.into()),
            None => {
                let followed = self.followed.lock().take();
                followed.iter().for_each(RequestHandle::cancel);
                return false;
            }
        }
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(teller) = self.take() else { return };
        if self.generation != generation() {
            // The receiver belongs to the parent, and is never called here.
            std::mem::forget(teller);
            return;
        }
        // Step 3.
        let error = teller.error(io::Error::other("the store did not answer"));
        teller.fail(error);
    }
}

/// A request, as the adapter uses it.
#[pyclass(frozen, name = "_StoreRequest", module = "zarrow")]
pub struct StoreRequest {
    pub adapter: Arc<Kept<Py<PyAny>>>,
    pub number: u64,
    pub operation: Operation,
    pub slot: Arc<Slot>,
}

impl StoreRequest {
    /// Delivers the bytes of `head` and ends the request.
    fn deliver(&self, py: Python<'_>, head: Head, bytes: &[u8]) {
        let slot = &self.slot;
        py.detach(|| {
            let Some(teller) = slot.take() else { return };
            let Teller::Get(mut receiver) = teller else {
                return teller
                    .fail(ErrorKind::Internal("bytes are not a valid answer to this request".into()).into());
            };
            let goes_on = receiver.head(&head).is_continue()
                && (bytes.is_empty() || receiver.frame(bytes) == ControlFlow::Continue(()));
            receiver.done(Ok(if goes_on { Outcome::Complete } else { Outcome::Stopped }));
        });
    }

    /// Ends the request by `answer`, which returns a teller of another kind.
    fn answer(&self, py: Python<'_>, answer: impl FnOnce(Teller) -> Option<Teller> + Send) {
        py.detach(|| {
            if let Some(teller) = self.slot.take().and_then(answer) {
                teller.fail(ErrorKind::Internal("not a valid answer to this request".into()).into());
            }
        });
    }

    fn end(&self, py: Python<'_>, outcome: Outcome) {
        self.answer(py, |teller| {
            let Teller::Get(receiver) = teller else { return Some(teller) };
            receiver.done(Ok(outcome));
            None
        });
    }

    /// Returns an error unless the answer has the requested bytes.
    fn check(&self, start: u64, found: u64) -> PyResult<()> {
        let Operation::Get(Request { range, .. }) = &self.operation else { return Ok(()) };
        let requested = match range {
            ByteRange::Whole => return Ok(()),
            ByteRange::Range(range) if range.start != start => {
                return Err(PyValueError::new_err(format!(
                    "the store answered from byte {start}, but the request begins at byte {}",
                    range.start
                )));
            }
            ByteRange::Range(range) => range.end.saturating_sub(range.start),
            ByteRange::Suffix(length) => *length,
        };
        if found > requested {
            return Err(PyValueError::new_err(format!(
                "the store answered with {found} bytes, but the request was for {requested}"
            )));
        }
        Ok(())
    }
}

#[pymethods]
impl StoreRequest {
    /// Object that serves the request.
    #[getter]
    fn adapter<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.adapter.bind(py).clone()
    }

    /// Unique number of the request.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// "get", "measure" (size and version only), "list", "put" or "delete".
    #[getter]
    pub fn kind(&self) -> &'static str {
        match &self.operation {
            Operation::Get(Request { range: ByteRange::Range(range), .. }) if range.start >= range.end => {
                "measure"
            }
            Operation::Get(_) => "get",
            Operation::List { .. } => "list",
            Operation::Put { .. } => "put",
            Operation::Delete(_) => "delete",
        }
    }

    /// Key of the value, or prefix of a listing.
    #[getter]
    fn key(&self) -> &str {
        match &self.operation {
            Operation::Get(request) => &request.key,
            Operation::List { prefix, .. } => prefix,
            Operation::Put { key, .. } => key,
            Operation::Delete(_) => "",
        }
    }

    /// Start and end of the byte range; None for all bytes, and for a suffix.
    #[getter]
    fn range(&self) -> Option<(u64, u64)> {
        match &self.operation {
            Operation::Get(Request { range: ByteRange::Range(range), .. }) => Some((range.start, range.end)),
            _ => None,
        }
    }

    /// Length of the suffix in bytes; None for other requests.
    #[getter]
    fn suffix(&self) -> Option<u64> {
        match &self.operation {
            Operation::Get(Request { range: ByteRange::Suffix(length), .. }) => Some(*length),
            _ => None,
        }
    }

    /// Version that the value must have.
    #[getter]
    fn if_version(&self) -> Option<&str> {
        match &self.operation {
            Operation::Get(request) => request.if_version.as_ref().map(ObjectVersion::as_str),
            Operation::Put { condition: Condition::IfVersion(version), .. } => Some(version.as_str()),
            _ => None,
        }
    }

    /// Whether the value must be missing.
    #[getter]
    fn if_absent(&self) -> bool {
        matches!(&self.operation, Operation::Put { condition: Condition::IfAbsent, .. })
    }

    /// Whether to list all values below the prefix.
    #[getter]
    fn recursive(&self) -> bool {
        matches!(&self.operation, Operation::List { recursive: true, .. })
    }

    /// Value to put.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match &self.operation {
            Operation::Put { body, .. } => {
                PyBytes::new_with(py, body.iter().map(Vec::len).sum(), |mut place| {
                    for part in body {
                        let (own, rest) = place.split_at_mut(part.len());
                        own.copy_from_slice(part);
                        place = rest;
                    }
                    Ok(())
                })
            }
            _ => Err(PyTypeError::new_err("this is not a put request")),
        }
    }

    /// Keys to delete.
    #[getter]
    fn keys(&self) -> Vec<String> {
        match &self.operation {
            Operation::Delete(keys) => keys.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether the answer is still wanted.
    #[getter]
    fn is_wanted(&self) -> bool {
        self.slot.teller.lock().is_some()
    }

    /// Answer with bytes from `start`, of a value with this size and version, if known.
    #[pyo3(signature = (data, start, nbytes = None, version = None))]
    fn found(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        start: u64,
        nbytes: Option<u64>,
        version: Option<&str>,
    ) -> PyResult<()> {
        let head = Head { start, nbytes, version: version.map(ObjectVersion::new) };
        if let Ok(bytes) = data.cast::<PyBytes>() {
            self.check(start, bytes.as_bytes().len() as u64)?;
            self.deliver(py, head, bytes.as_bytes());
            return Ok(());
        }
        let buffer = PyBuffer::<u8>::get(data)?;
        self.check(start, buffer.item_count() as u64)?;
        if !buffer.readonly() || !buffer.is_c_contiguous() || buffer.item_count() == 0 {
            let mut copy = zarrow_array::allocation::filled(0_u8, buffer.item_count())
                .map_err(|error| pyo3::exceptions::PyMemoryError::new_err(error.to_string()))?;
            buffer.copy_to_slice(py, &mut copy)?;
            self.deliver(py, head, &copy);
            return Ok(());
        }
        // SAFETY: the buffer is contiguous, lives until it is dropped below, and its owner prevents writes.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.item_count()) };
        self.deliver(py, head, bytes);
        drop(buffer);
        Ok(())
    }

    /// Answer that the value is missing.
    fn missing(&self, py: Python<'_>) {
        self.end(py, Outcome::Missing);
    }

    /// Answer that the value has another version.
    fn changed(&self, py: Python<'_>) {
        self.end(py, Outcome::Changed);
    }

    /// Answer with the entries below the prefix: keys with their sizes, and prefixes.
    fn listed(&self, py: Python<'_>, values: Vec<(String, u64)>, prefixes: Vec<String>) {
        // Invalid keys (files of other programs) are not part of a store.
        let is_key = |key: &String| check_key(key).is_ok();
        let values = values.into_iter().filter(|(key, _)| is_key(key));
        let values = values.map(|(key, nbytes)| ListedValue { key, nbytes }).collect();
        let listing = Listing { values, prefixes: prefixes.into_iter().filter(is_key).collect() };
        self.answer(py, |teller| {
            let Teller::List(done) = teller else { return Some(teller) };
            done(Ok(listing));
            None
        });
    }

    /// Answer that the value was put, with its version, if known; or that the keys were deleted.
    #[pyo3(signature = (version = None))]
    fn changed_it(&self, py: Python<'_>, version: Option<&str>) {
        let version = version.map(ObjectVersion::new);
        self.answer(py, |teller| {
            match teller {
                Teller::Put(done) => done(Ok(Put::Done(version))),
                Teller::Delete(done) => done(Ok(())),
                teller => return Some(teller),
            }
            None
        });
    }

    /// Answer that the condition failed.
    fn conflict(&self, py: Python<'_>) {
        self.answer(py, |teller| {
            let Teller::Put(done) = teller else { return Some(teller) };
            done(Ok(Put::Conflict));
            None
        });
    }

    /// Answer that the store does not support this.
    fn unsupported(&self, py: Python<'_>, text: String) {
        py.detach(|| self.slot.fail(ErrorKind::Unsupported(text).into()));
    }

    /// Answer with the store's exception.
    pub(super) fn failed(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        let error = PythonFailure::new(PyErr::from_value(error)).into_io(py);
        py.detach(|| self.slot.fail_io(error));
    }
}

impl StoreRequest {
    /// Creates a request to the store of `adapter`.
    pub fn new(adapter: Arc<Kept<Py<PyAny>>>, operation: Operation, teller: Teller) -> StoreRequest {
        StoreRequest { adapter, number: next_number(), operation, slot: Slot::new(teller) }
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
