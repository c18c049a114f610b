//! What a request brings, as it comes.

use crate::error::Result;
use crate::store::remote::ObjectVersion;
use std::ops::ControlFlow;

/// What is known of a value before its bytes come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Where in the value the first byte of the next frame lies.
    pub start: u64,
    /// How many bytes the value has, where the store tells.
    pub nbytes: Option<u64>,
    /// Which version it is; `None` where the store cannot tell versions apart.
    pub version: Option<ObjectVersion>,
}

/// How a request ended that met no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All of its bytes were handed over.
    Complete,
    /// There is no value under the key.
    Missing,
    /// The value is of another version than the request asked for.
    Changed,
    /// It was cancelled, or its receiver wanted no more.
    Stopped,
}

/// Who takes what a request brings. Its methods run on a thread of the store's: they copy, and never wait.
pub trait Receiver: Send {
    /// The answer begins, for the first time or anew: what came before is void. [`ControlFlow::Break`] where it is not
    /// wanted.
    fn head(&mut self, head: &Head) -> ControlFlow<()>;

    /// The next bytes. [`ControlFlow::Break`] where no more are wanted.
    fn frame(&mut self, bytes: &[u8]) -> ControlFlow<()>;

    /// The end: [`Outcome::Complete`] only where all bytes of the span that the value has were handed over.
    fn done(self: Box<Self>, result: Result<Outcome>);
}
