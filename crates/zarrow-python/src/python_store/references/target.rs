//! Stores that contain the objects of references.
//!
//! 1. A remote store answers by completion, after its requests were merged (`merge`).
//! 2. A folder is read at once, on the thread that submits the request, in frames of limited size.

use crate::python::error::Raise;
use crate::python_store::references::merge::Merging;
use crate::python_store::references::part::{ObjectPart, PartReceiver, missing_object, short_object};
use pyo3::prelude::*;
use std::io;
use std::mem::MaybeUninit;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use zarrow::store::remote::{
    ByteRange, Head, ObjectVersion, Outcome, Receiver, Request, RequestClass, RequestHandle,
};
use zarrow::store::{Store, check_key, join};
use zarrow::{ErrorKind, Result};
use zarrow_array::allocation;

/// Maximum size of a frame read from a file, in bytes.
const FRAME_NBYTES: u64 = 1 << 20;

/// Target of references, for the columns of arrays.
#[pyclass(frozen, name = "_ReferenceTarget", module = "zarrow")]
pub struct ReferenceTarget(pub(super) Arc<Target>);

impl ReferenceTarget {
    /// Takes the objects of a folder in a store; an immutable object never changes under its name.
    pub fn new(store: Arc<dyn Store>, folder: String, is_immutable: bool) -> ReferenceTarget {
        let merging = Arc::default();
        ReferenceTarget(Arc::new(Target { store, folder, is_immutable, merging }))
    }
}

#[pymethods]
impl ReferenceTarget {
    /// Tell whether there is an object of this name.
    fn contains(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        py.detach(|| self.0.contains(name)).raise(py)
    }
}

/// A folder of objects in a store.
pub struct Target {
    store: Arc<dyn Store>,
    /// Folder of the objects in the store.
    folder: String,
    /// Whether an object never changes under its name.
    is_immutable: bool,
    merging: Arc<Merging>,
}

impl Target {
    /// Returns the part of the object `name` at this offset.
    ///
    /// # Errors
    /// [`ErrorKind::BadKey`], and [`ErrorKind::Io`] if the part ends beyond any object.
    pub fn part(&self, name: &str, offset: u64, nbytes: u64) -> Result<ObjectPart> {
        let key = join(&self.folder, name);
        check_key(&key)?;
        if offset.checked_add(nbytes).is_none() {
            return Err(ErrorKind::Io(io::Error::other("a reference is too long")).into());
        }
        let version = self.is_immutable.then(|| ObjectVersion::new(&format!("{name} {offset} {nbytes}")));
        Ok(ObjectPart { key, offset, nbytes, version })
    }

    fn contains(&self, name: &str) -> Result<bool> {
        let part = self.part(name, 0, 0)?;
        Ok(self.store.version_of(&part.key)? != zarrow::store::Version::Missing)
    }

    /// Answers a request for bytes of `part`.
    pub fn answer(&self, part: ObjectPart, request: &Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        if let (Some(own), Some(expected)) = (&part.version, &request.if_version)
            && own != expected
        {
            receiver.done(Ok(Outcome::Changed));
            return RequestHandle::ended();
        }
        let range = request.range.within(part.nbytes);
        if self.store.remote().is_none() {
            self.read(&part, range, receiver);
            return RequestHandle::ended();
        }
        let if_version = request.if_version.clone().filter(|_| part.version.is_none());
        let inner = Request::new(part.key.as_str(), ByteRange::Range(part.shifted(&range)))
            .if_version(if_version)
            .with_class(request.class);
        let receiver = Box::new(PartReceiver::new(part, range.clone(), receiver));
        let is_plain = inner.if_version.is_none() && inner.class == RequestClass::Chunk;
        if is_plain && range.start < range.end {
            return Merging::submit(&self.merging, &self.store, inner, receiver);
        }
        match self.store.remote() {
            Some(remote) => remote.submit(inner, receiver),
            None => RequestHandle::ended(),
        }
    }

    /// Reads from a file (step 2).
    fn read(&self, part: &ObjectPart, range: Range<u64>, mut receiver: Box<dyn Receiver>) {
        let result = self.read_to(part, range, &mut *receiver);
        receiver.done(result);
    }

    fn read_to(&self, part: &ObjectPart, range: Range<u64>, receiver: &mut dyn Receiver) -> Result<Outcome> {
        let value = self.store.open(&part.key)?.ok_or_else(|| missing_object(&part.key))?;
        let Range { start: mut at, end } = part.shifted(&range);
        let head = Head { start: range.start, nbytes: Some(part.nbytes), version: part.version.clone() };
        if receiver.head(&head).is_break() {
            return Ok(Outcome::Stopped);
        }
        let length = |nbytes: u64| usize::try_from(nbytes.min(FRAME_NBYTES)).unwrap_or(0);
        let mut memory = allocation::filled(MaybeUninit::uninit(), length(end - at))?;
        while at < end {
            let wanted = length(end - at);
            let frame = value.read_at(at, &mut memory[..wanted])?;
            if frame.len() < wanted {
                return Err(short_object(&part.key));
            }
            if receiver.frame(frame) == ControlFlow::Break(()) {
                return Ok(Outcome::Stopped);
            }
            at += wanted as u64;
        }
        Ok(Outcome::Complete)
    }
}
