//! Contiguous bytes of a remote value, collected from the frames of one request.

use crate::error::{Error, ErrorKind, Result};
use crate::store::remote::{Head, ObjectVersion, OnDone, Outcome, Receiver, RemoteStore, Request, wait};
use std::ops::ControlFlow;
use zarrow_array::allocation::Grow;

/// Bytes of one version of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body<B = Vec<u8>> {
    /// Offset of the first byte in the value.
    pub start: u64,
    /// The bytes.
    pub bytes: B,
    /// Size of the value, if known.
    pub nbytes: Option<u64>,
    /// Version of the value, if the store has versions.
    pub version: Option<ObjectVersion>,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched<B = Vec<u8>> {
    /// The requested bytes.
    Body(Body<B>),
    /// The key has no value.
    Missing,
    /// The value has another version than the request requires.
    Changed,
    /// The value has this many bytes, more than the limit; none were kept.
    TooLarge(u64),
}

/// Fetches the bytes of `request`, at most `limit`, and waits for them; calls `pass` while waiting.
///
/// # Errors
/// Errors of the store, [`zarrow_array::Error::OutOfMemory`], and errors of `pass`.
pub fn fetch(
    store: &dyn RemoteStore,
    request: Request,
    limit: u64,
    pass: &dyn Fn() -> Result<()>,
) -> Result<Fetched> {
    wait(|done| store.submit(request, Box::new(Collector::new(limit, done))), pass)
}

/// Destination of the frames of an answer.
pub(crate) trait Frames: Send {
    /// The collected bytes.
    type Bytes;

    /// Starts the answer, or starts it again, at byte `start` of the value; at most `expected` bytes follow.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    fn begin(&mut self, start: u64, expected: u64) -> Result<()>;

    /// Adds the next bytes.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`]; [`ErrorKind::Interrupted`] to stop the request.
    fn add(&mut self, bytes: &[u8]) -> Result<()>;

    /// Returns the bytes, if they were collected.
    fn into_bytes(self) -> Self::Bytes;
}

impl Frames for Vec<u8> {
    type Bytes = Vec<u8>;

    fn begin(&mut self, _start: u64, expected: u64) -> Result<()> {
        self.clear();
        // Allocate all at once, so that later frames move nothing.
        Ok(self.make_room(usize::try_from(expected).unwrap_or(usize::MAX))?)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.make_room(bytes.len())?;
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn into_bytes(self) -> Vec<u8> {
        self
    }
}

/// Passes frames on, and makes a [`Body`] of the collected bytes.
pub(crate) struct Collector<F: Frames> {
    limit: u64,
    head: Option<Head>,
    frames: F,
    /// Bytes received since the head.
    received: u64,
    stopped: Option<Stopped>,
    done: OnDone<Fetched<F::Bytes>>,
}

/// Why a collector stopped its request.
enum Stopped {
    TooLarge(u64),
    Error(Error),
}

impl Collector<Vec<u8>> {
    /// Collects at most `limit` bytes, and calls `done`.
    pub fn new(limit: u64, done: OnDone<Fetched>) -> Collector<Vec<u8>> {
        Collector::to(Vec::new(), limit, done)
    }
}

impl<F: Frames> Collector<F> {
    /// Passes at most `limit` bytes to `frames`, and calls `done`.
    pub fn to(frames: F, limit: u64, done: OnDone<Fetched<F::Bytes>>) -> Collector<F> {
        Collector { limit, head: None, frames, received: 0, stopped: None, done }
    }

    fn flow(&mut self, result: Result<()>) -> ControlFlow<()> {
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.stop(Stopped::Error(error)),
        }
    }

    fn stop(&mut self, stopped: Stopped) -> ControlFlow<()> {
        self.stopped = Some(stopped);
        ControlFlow::Break(())
    }
}

impl<F: Frames> Receiver for Collector<F> {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        self.head = Some(head.clone());
        self.received = 0;
        let left = head.nbytes.map_or(0, |nbytes| nbytes.saturating_sub(head.start));
        let begun = self.frames.begin(head.start, left.min(self.limit));
        self.flow(begun)
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.received = self.received.saturating_add(bytes.len() as u64);
        if self.received > self.limit {
            let start = self.head.as_ref().map_or(0, |head| head.start);
            let nbytes = self.head.as_ref().and_then(|head| head.nbytes);
            return self.stop(Stopped::TooLarge(nbytes.unwrap_or(start.saturating_add(self.received))));
        }
        let added = self.frames.add(bytes);
        self.flow(added)
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        let Collector { head, frames, stopped, done, .. } = *self;
        done(match (stopped, result) {
            (Some(Stopped::TooLarge(nbytes)), _) => Ok(Fetched::TooLarge(nbytes)),
            (Some(Stopped::Error(error)), _) | (None, Err(error)) => Err(error),
            (None, Ok(Outcome::Missing)) => Ok(Fetched::Missing),
            (None, Ok(Outcome::Changed)) => Ok(Fetched::Changed),
            (None, Ok(Outcome::Stopped)) => Err(ErrorKind::Interrupted.into()),
            (None, Ok(Outcome::Complete)) => match head {
                Some(head) => {
                    let Head { start, nbytes, version } = head;
                    Ok(Fetched::Body(Body { start, bytes: frames.into_bytes(), nbytes, version }))
                }
                None => {
                    Err(ErrorKind::Internal("the store ended an answer that it had not begun".into()).into())
                }
            },
        });
    }
}
