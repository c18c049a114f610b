//! Receiver of a response to a request, frame by frame.

use crate::error::Result;
use crate::store::remote::ObjectVersion;
use std::ops::ControlFlow;

/// Properties of a value, received before its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Offset in the value of the first byte of the next frame.
    pub start: u64,
    /// Size of the value, if the store reports it.
    pub nbytes: Option<u64>,
    /// Version of the value; `None` if the store cannot tell versions apart.
    pub version: Option<ObjectVersion>,
}

/// How a request ended, unless it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All bytes were delivered.
    Complete,
    /// The key has no value.
    Missing,
    /// The value has another version than the request requires.
    Changed,
    /// The request was cancelled, or stopped by its receiver.
    Stopped,
}

/// Receiver of a response. Its methods run on a thread of the store: they copy, and never wait.
pub trait Receiver: Send {
    /// Starts the response, or starts it again: all earlier frames are void. Return [`ControlFlow::Break`] to stop the
    /// request.
    fn head(&mut self, head: &Head) -> ControlFlow<()>;

    /// Receives the next bytes. Return [`ControlFlow::Break`] to stop the request.
    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()>;

    /// Ends the response: with [`Outcome::Complete`] only if all requested bytes of the value were delivered.
    fn done(self: Box<Self>, result: Result<Outcome>);
}
