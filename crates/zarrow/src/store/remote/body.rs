//! A run of bytes of a remote value, collected from the frames of one request.

use crate::error::{Error, ErrorKind, Result};
use crate::store::remote::{Head, ObjectVersion, OnDone, Outcome, Receiver, RemoteStore, Request, wait};
use std::ops::ControlFlow;
use zarrow_array::allocation::Grow;

/// Bytes of one version of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body<B = Vec<u8>> {
    /// Where the first of them lies in the value.
    pub start: u64,
    /// The bytes.
    pub bytes: B,
    /// How many bytes the value has, where that is known.
    pub nbytes: Option<u64>,
    /// The version, where the store tells versions apart.
    pub version: Option<ObjectVersion>,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched<B = Vec<u8>> {
    /// These bytes.
    Body(Body<B>),
    /// Nothing is under the key.
    Missing,
    /// The value is of another version than the request asked for.
    Changed,
    /// The value has so many bytes, which is more than the limit, and none was kept.
    TooLarge(u64),
}

/// Fetches what `request` asks for, `limit` bytes at most, and waits for it; `pass` is asked meanwhile.
///
/// # Errors
/// What the store gives, [`zarrow_array::Error::OutOfMemory`], and what `pass` gives.
pub fn fetch(
    store: &dyn RemoteStore,
    request: Request,
    limit: u64,
    pass: &dyn Fn() -> Result<()>,
) -> Result<Fetched> {
    wait(|done| store.submit(request, Box::new(Collector::new(limit, done))), pass)
}

/// Where the frames of an answer go.
pub(crate) trait Frames: Send {
    /// The bytes that were gathered.
    type Bytes;

    /// The answer begins, for the first time or anew, with the byte at `start` of the value; so many are expected at most.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    fn begin(&mut self, start: u64, expected: u64) -> Result<()>;

    /// The next bytes.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`]; [`ErrorKind::Interrupted`] where no more are wanted.
    fn add(&mut self, bytes: &[u8]) -> Result<()>;

    /// The bytes, where they were gathered.
    fn into_bytes(self) -> Self::Bytes;
}

impl Frames for Vec<u8> {
    type Bytes = Vec<u8>;

    fn begin(&mut self, _start: u64, expected: u64) -> Result<()> {
        self.clear();
        // At once, so that nothing is moved when more comes.
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

/// Hands frames on, and makes a [`Body`] of what was gathered.
pub(crate) struct Collector<F: Frames> {
    limit: u64,
    head: Option<Head>,
    frames: F,
    /// Bytes that came since the head.
    came: u64,
    stopped: Option<Stopped>,
    done: OnDone<Fetched<F::Bytes>>,
}

/// Why a collector wanted no more.
enum Stopped {
    TooLarge(u64),
    Error(Error),
}

impl Collector<Vec<u8>> {
    /// Collects `limit` bytes at most, and tells `done`.
    pub fn new(limit: u64, done: OnDone<Fetched>) -> Collector<Vec<u8>> {
        Collector::to(Vec::new(), limit, done)
    }
}

impl<F: Frames> Collector<F> {
    /// Hands `limit` bytes at most to `frames`, and tells `done`.
    pub fn to(frames: F, limit: u64, done: OnDone<Fetched<F::Bytes>>) -> Collector<F> {
        Collector { limit, head: None, frames, came: 0, stopped: None, done }
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
        self.came = 0;
        let left = head.nbytes.map_or(0, |nbytes| nbytes.saturating_sub(head.start));
        let begun = self.frames.begin(head.start, left.min(self.limit));
        self.flow(begun)
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.came = self.came.saturating_add(bytes.len() as u64);
        if self.came > self.limit {
            let start = self.head.as_ref().map_or(0, |head| head.start);
            let told = self.head.as_ref().and_then(|head| head.nbytes);
            return self.stop(Stopped::TooLarge(told.unwrap_or(start.saturating_add(self.came))));
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
                    Err(ErrorKind::Internal("the store told the end of an answer without its head".into())
                        .into())
                }
            },
        });
    }
}
