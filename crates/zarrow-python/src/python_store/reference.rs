//! Requests answered by a part of a value in another store: references of a manifest.
//!
//! 1. The requested range is shifted to its place in the other value, and is clipped to the part.
//! 2. The other store answers, without Python, and its answer is shifted back.
//! 3. A reference to a missing or shorter value is an error: it does not mean that the chunk is empty.

use super::request::{Operation, Slot, StoreRequest, Teller};
use crate::node::store::StoreLocation;
use crate::python::error::Raise;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use zarrow::store::remote::{ByteRange, Head, Outcome, Receiver, Request};
use zarrow::store::{Store, check_key};
use zarrow::{ErrorKind, Result};

/// The target store of references.
#[pyclass(frozen, name = "_ReferenceTarget", module = "zarrow")]
pub struct ReferenceTarget(Arc<dyn Store>);

#[pymethods]
impl ReferenceTarget {
    #[new]
    fn new(py: Python<'_>, store: &Bound<'_, PyAny>) -> PyResult<ReferenceTarget> {
        let store = StoreLocation::from_python(store)?.open().raise(py)?;
        match store.remote() {
            Some(_) => Ok(ReferenceTarget(store)),
            None => Err(PyTypeError::new_err("the target of references must be a remote store")),
        }
    }

    /// Answer a request with a part of a value, `length` bytes long.
    fn answer(
        &self,
        py: Python<'_>,
        request: &StoreRequest,
        key: &str,
        offset: u64,
        length: u64,
    ) -> PyResult<()> {
        check_key(key).raise(py)?;
        let end =
            offset.checked_add(length).ok_or_else(|| PyValueError::new_err("a reference is too long"))?;
        let Operation::Get(requested) = &request.operation else {
            return Err(PyValueError::new_err("only reads can be answered by a reference"));
        };
        let range = within(&requested.span, length);
        let start = range.start;
        // Step 1: clip to the part's end.
        let shifted = offset.saturating_add(range.start).min(end)..offset.saturating_add(range.end).min(end);
        let (slot, expected) = (&request.slot, shifted.end - shifted.start);
        let inner = Request::new(key, ByteRange::Range(shifted))
            .if_version(requested.if_version.clone())
            .with_class(requested.class);
        py.detach(|| {
            let (Some(Teller::Get(receiver)), Some(remote)) = (slot.take(), self.0.remote()) else { return };
            let receiver = Part { receiver: Some(receiver), offset, start, length, expected, came: 0 };
            slot.follow(remote.submit(inner, Box::new(receiver)));
        });
        Ok(())
    }
}

/// Returns the byte range of a span in a value of `length` bytes.
fn within(span: &ByteRange, length: u64) -> Range<u64> {
    match span {
        ByteRange::Whole => 0..length,
        ByteRange::Range(range) => {
            let start = range.start.min(length);
            start..range.end.clamp(start, length)
        }
        ByteRange::Suffix(nbytes) => length.saturating_sub(*nbytes)..length,
    }
}

/// Receiver of the other store's answer (step 2).
struct Part {
    receiver: Option<Box<dyn Receiver>>,
    offset: u64,
    /// Offset of the requested bytes within the part.
    start: u64,
    length: u64,
    expected: u64,
    came: u64,
}

impl Receiver for Part {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        self.came = 0;
        let start = head.start.checked_sub(self.offset).unwrap_or(self.start);
        let head = Head { start, nbytes: Some(self.length), version: head.version.clone() };
        self.receiver.as_mut().map_or(ControlFlow::Break(()), |receiver| receiver.head(&head))
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.came = self.came.saturating_add(bytes.len() as u64);
        self.receiver.as_mut().map_or(ControlFlow::Break(()), |receiver| receiver.frame(bytes))
    }

    fn done(mut self: Box<Self>, result: Result<Outcome>) {
        let Some(receiver) = self.receiver.take() else { return };
        let error = |text: &str| ErrorKind::Io(io::Error::other(text)).into();
        receiver.done(match result {
            // Step 3.
            Ok(Outcome::Missing) => Err(error("a reference points to a missing object")),
            Ok(Outcome::Complete) if self.came != self.expected => {
                Err(error("a reference points beyond the end of an object"))
            }
            other => other,
        });
    }
}

impl Slot {
    /// Cancels another request when this one is cancelled.
    fn follow(&self, handle: zarrow::store::remote::RequestHandle) {
        *self.followed.lock() = Some(handle);
    }
}
