//! A run of bytes of a remote value, collected from the frames of one request.

use crate::error::{Error, ErrorKind, Result};
use crate::store::remote::{Head, ObjectVersion, OnDone, Outcome, Receiver, RemoteStore, Request, wait};
use std::ops::ControlFlow;
use zarrow_array::allocation::Grow;

/// Bytes of one version of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Where the first of them lies in the value.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many bytes the value has, where that is known.
    pub nbytes: Option<u64>,
    /// The version, where the store tells versions apart.
    pub version: Option<ObjectVersion>,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// These bytes.
    Body(Body),
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

/// Collects frames to a [`Body`].
pub(crate) struct Collector {
    limit: u64,
    head: Option<Head>,
    bytes: Vec<u8>,
    stopped: Option<Stopped>,
    done: OnDone<Fetched>,
}

/// Why a collector wanted no more.
enum Stopped {
    TooLarge(u64),
    Error(Error),
}

impl Collector {
    /// Collects `limit` bytes at most, and tells `done`.
    pub fn new(limit: u64, done: OnDone<Fetched>) -> Collector {
        Collector { limit, head: None, bytes: Vec::new(), stopped: None, done }
    }

    fn stop(&mut self, stopped: Stopped) -> ControlFlow<()> {
        self.bytes = Vec::new();
        self.stopped = Some(stopped);
        ControlFlow::Break(())
    }
}

impl Receiver for Collector {
    fn head(&mut self, head: &Head) -> ControlFlow<()> {
        self.bytes.clear();
        self.head = Some(head.clone());
        ControlFlow::Continue(())
    }

    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let collected = (self.bytes.len() as u64).saturating_add(bytes.len() as u64);
        if collected > self.limit {
            let start = self.head.as_ref().map_or(0, |head| head.start);
            let told = self.head.as_ref().and_then(|head| head.nbytes);
            return self.stop(Stopped::TooLarge(told.unwrap_or(start.saturating_add(collected))));
        }
        if let Err(error) = self.bytes.make_room(bytes.len()) {
            return self.stop(Stopped::Error(error.into()));
        }
        self.bytes.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }

    fn done(self: Box<Self>, result: Result<Outcome>) {
        let Collector { head, bytes, stopped, done, .. } = *self;
        done(match (stopped, result) {
            (Some(Stopped::TooLarge(nbytes)), _) => Ok(Fetched::TooLarge(nbytes)),
            (Some(Stopped::Error(error)), _) | (None, Err(error)) => Err(error),
            (None, Ok(Outcome::Missing)) => Ok(Fetched::Missing),
            (None, Ok(Outcome::Changed)) => Ok(Fetched::Changed),
            (None, Ok(Outcome::Stopped)) => Err(ErrorKind::Interrupted.into()),
            (None, Ok(Outcome::Complete)) => match head {
                Some(head) => {
                    let Head { start, nbytes, version } = head;
                    Ok(Fetched::Body(Body { start, bytes, nbytes, version }))
                }
                None => {
                    Err(ErrorKind::Internal("the store told the end of an answer without its head".into())
                        .into())
                }
            },
        });
    }
}
