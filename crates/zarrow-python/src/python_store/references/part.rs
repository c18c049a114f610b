//! Reads of a part of an object, as of a separate value.
//!
//! 1. The requested range is shifted to its place in the object, and is clipped to the part.
//! 2. The store of the object answers, and its answer is shifted back.
//! 3. A missing or shorter object is an error: it does not mean that the chunk is empty.

use std::io;
use std::ops::{ControlFlow, Range};
use zarrow::store::remote::{Head, ObjectVersion, Outcome, Receiver};
use zarrow::{ErrorKind, Result};

/// A part of an object.
#[derive(Debug, Clone)]
pub struct ObjectPart {
    /// The object's key in its store.
    pub key: String,
    /// Offset of the part in the object, in bytes.
    pub offset: u64,
    /// Size of the part in bytes. The sum with `offset` fits in 64 bits.
    pub nbytes: u64,
    /// Version of the part, if the object never changes.
    pub version: Option<ObjectVersion>,
}

impl ObjectPart {
    /// Returns the place of `range` in the object (step 1).
    pub fn shifted(&self, range: &Range<u64>) -> Range<u64> {
        self.offset.saturating_add(range.start)..self.offset.saturating_add(range.end)
    }
}

/// Receiver of the object's bytes (step 2).
pub struct PartReceiver {
    part: ObjectPart,
    /// The requested bytes, relative to the part.
    range: Range<u64>,
    received: u64,
    receiver: Box<dyn Receiver>,
}

impl PartReceiver {
    pub fn new(part: ObjectPart, range: Range<u64>, receiver: Box<dyn Receiver>) -> PartReceiver {
        PartReceiver { part, range, received: 0, receiver }
    }
}

impl Receiver for PartReceiver {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        self.received = 0;
        let start = head.start.checked_sub(self.part.offset).unwrap_or(self.range.start);
        let version = self.part.version.clone().or_else(|| head.version.clone());
        self.receiver.head(&Head { start, nbytes: Some(self.part.nbytes), version })
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.received = self.received.saturating_add(bytes.len() as u64);
        self.receiver.frame(bytes)
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        let expected = self.range.end.saturating_sub(self.range.start);
        self.receiver.done(match result {
            // Step 3.
            Ok(Outcome::Missing) => Err(missing_object(&self.part.key)),
            Ok(Outcome::Complete) if self.received != expected => Err(short_object(&self.part.key)),
            other => other,
        });
    }
}

/// Returns the error of a part in an object that does not exist.
pub fn missing_object(key: &str) -> zarrow::Error {
    ErrorKind::Io(io::Error::other(format!("a reference points to a missing object, {key:?}"))).into()
}

/// Returns the error of a part that ends after its object.
pub fn short_object(key: &str) -> zarrow::Error {
    ErrorKind::Io(io::Error::other(format!("a reference points beyond the end of an object, {key:?}"))).into()
}
