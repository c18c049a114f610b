//! Stores whose answers take long, so that many requests are in flight at once: object stores, HTTP, stores written in
//! Python.
//!
//! 1. A request is [submitted](RemoteStore::submit), and returns at once. What arrives is handed to its receiver, on a
//!    thread of the store's: a head, then frames, then that it is done.
//! 2. The store owns its transport: connections, retries, time-outs, hedging, and how many requests a host gets at once.
//!    The engine owns what is asked for: which ranges, merged or split how, and how many bytes may be in flight.
//! 3. A request that is answered anew, by a retry that cannot go on where the last one broke off, starts again with a
//!    head. All frames since the last head are of one version of the value.
//!
//! [`RemoteAdapter`] makes a [`Store`](crate::store::Store) of it, whose calls wait for their answers.

mod adapter;
mod ahead;
pub(crate) mod bodies;
mod body;
pub(crate) mod body_memory;
mod documents;
mod interrupt;
mod listing;
mod put_documents;
mod receiver;
mod waiter;
mod write_mark;
mod writer;

pub use adapter::RemoteAdapter;
pub(crate) use ahead::{AheadStore, Asked};
pub use body::{Body, Fetched, fetch};
pub(crate) use body::{Collector, Frames};
pub use body_memory::{BodyAlloc, BodyMemory};
pub(crate) use documents::documents;
pub use interrupt::interrupted_by;
pub(crate) use interrupt::{pass_here, pass_now_and_then};
pub use listing::{ListedValue, Listing};
pub use receiver::{Head, Outcome, Receiver};
pub(crate) use waiter::Waiting;
pub use waiter::wait;
pub use write_mark::{Applied, WriteMark, random_number, uncertain};

use crate::error::Result;
use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Which version of a value, in the store's own words: a strong ETag, a generation.
///
/// Two versions are the same where their texts are equal.
#[derive(Debug, Clone)]
pub struct ObjectVersion {
    text: Arc<str>,
    /// The value's [`WriteMark`], which is no part of the version.
    writers: Option<Arc<str>>,
}

impl ObjectVersion {
    /// A version by the text that the store gave.
    pub fn new(text: &str) -> ObjectVersion {
        ObjectVersion { text: text.into(), writers: None }
    }

    /// The same version, of a value that was stored with the text of this [`WriteMark`].
    #[must_use]
    pub fn written_by(self, mark: Option<&str>) -> ObjectVersion {
        ObjectVersion { writers: mark.map(Arc::from), ..self }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text of the [`WriteMark`] of the value.
    #[must_use]
    pub fn writers(&self) -> Option<&str> {
        self.writers.as_deref()
    }
}

impl PartialEq for ObjectVersion {
    fn eq(&self, other: &ObjectVersion) -> bool {
        self.text == other.text
    }
}

impl Eq for ObjectVersion {}

impl Hash for ObjectVersion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// A version as the numbers by which caches know it: a hash that is wide enough that two versions of one value never
/// share it by chance.
pub(crate) fn version_number(version: &ObjectVersion) -> [u64; 4] {
    let part = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, version).hash(&mut hasher);
        hasher.finish()
    };
    [part(1), part(2), part(3), part(4)]
}

/// Which bytes of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// All of them.
    Whole,
    /// Those in a range, or what there is of them.
    Range(Range<u64>),
    /// So many before the end, or what there is of them.
    Suffix(u64),
}

/// What a request is for, by which a store may schedule it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestClass {
    /// A document, or the index of a shard: others wait for it.
    Metadata,
    /// Chunks.
    Chunk,
}

/// One request for bytes of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The value's key.
    pub key: String,
    /// Which of its bytes.
    pub span: Span,
    /// The version that it has to be; another one is [`Outcome::Changed`].
    pub if_version: Option<ObjectVersion>,
    /// What it is for.
    pub class: RequestClass,
}

impl Request {
    /// A request for bytes of any version of a chunk.
    pub fn new(key: impl Into<String>, span: Span) -> Request {
        Request { key: key.into(), span, if_version: None, class: RequestClass::Chunk }
    }

    /// The same request, for this version alone.
    #[must_use]
    pub fn if_version(self, version: Option<ObjectVersion>) -> Request {
        Request { if_version: version, ..self }
    }

    /// The same request, for this purpose.
    #[must_use]
    pub fn of_class(self, class: RequestClass) -> Request {
        Request { class, ..self }
    }
}

/// How requests to a store are best cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPolicy {
    /// How many requests of one read are useful at once, at most.
    pub requests: usize,
    /// Two ranges with fewer bytes than this between them are one request.
    pub gap_nbytes: u64,
    /// A merged request has at most this many bytes, unless one range alone has more.
    pub merged_nbytes: u64,
    /// A range with more bytes than this is cut into requests of as many.
    pub split_nbytes: u64,
    /// Whether the store takes requests for the end of a value whose size is unknown.
    pub has_suffix: bool,
    /// Whether a range may end behind the end of a value, of which then comes what there is.
    pub cuts_ranges: bool,
}

impl Default for FetchPolicy {
    /// What suits an object store some milliseconds away.
    fn default() -> FetchPolicy {
        FetchPolicy {
            requests: 256,
            gap_nbytes: 1 << 20,
            merged_nbytes: 16 << 20,
            split_nbytes: 12 << 20,
            has_suffix: true,
            cuts_ranges: true,
        }
    }
}

/// A handle on a request in flight. Dropping it leaves the request alone.
pub struct RequestHandle(Option<Box<dyn Fn() + Send + Sync>>);

impl RequestHandle {
    /// A handle that stops its request by calling `cancel`.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> RequestHandle {
        RequestHandle(Some(Box::new(cancel)))
    }

    /// The handle of a request that has ended already.
    #[must_use]
    pub fn ended() -> RequestHandle {
        RequestHandle(None)
    }

    /// Stops the request. Its receiver gets no more frames once it is told [`Outcome::Stopped`], which may be before this
    /// returns or soon after; a request that has ended stays as it is.
    pub fn cancel(&self) {
        if let Some(cancel) = &self.0 {
            cancel();
        }
    }
}

impl fmt::Debug for RequestHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RequestHandle").finish_non_exhaustive()
    }
}

/// Told once, on a thread of the store's.
pub type OnDone<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// Whether a value is to be set, by what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// If nothing is there.
    IfAbsent,
    /// If this version is there.
    IfVersion(ObjectVersion),
}

/// What came of setting a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is set, and this is its version where the store told.
    Done(Option<ObjectVersion>),
    /// The condition did not hold: nothing was set.
    Conflict,
}

/// A store whose answers come by completion.
///
/// Keys are those that [`check_key`](crate::store::check_key) accepts. In a forked child of the process that made it a
/// store either works, with connections of its own, or gives a typed error; its receivers of the parent are never told. As
/// [`Any`] it tells which store it is.
pub trait RemoteStore: Any + Send + Sync + fmt::Debug {
    /// How the store calls itself in errors: a URL, without credentials.
    fn name(&self) -> &str;

    /// How requests are best cut.
    fn policy(&self) -> FetchPolicy;

    /// Asks for bytes of a value, and returns before they are there.
    ///
    /// The receiver is told [`done`](Receiver::done) exactly once, whatever happens; where that cannot be, since the process
    /// ends, it is dropped.
    fn submit(&self, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle;

    /// Asks for the names directly below `prefix` (a path without a slash at its end), or for all values below it.
    fn list(&self, prefix: &str, recursive: bool, done: OnDone<Listing>) -> RequestHandle;

    /// Asks for all values below `prefix`, if one answer holds them; `None` if it takes several, or the store cannot tell.
    fn list_page(&self, prefix: &str, done: OnDone<Option<Listing>>) -> RequestHandle {
        let _ = prefix;
        done(Ok(None));
        RequestHandle::ended()
    }

    /// What changes the store; `None` where it can only be read.
    fn writer(&self) -> Option<&dyn RemoteWriter> {
        None
    }
}

/// What can be changed in a remote store.
pub trait RemoteWriter: Send + Sync {
    /// Whether [`Condition::IfAbsent`] and [`Condition::IfVersion`] hold against all other writers.
    fn has_conditions(&self) -> bool;

    /// Whether the answer to a request for bytes tells the version of the value, and not only one for its size.
    fn tells_versions(&self) -> bool {
        true
    }

    /// Whether chunks can be put only below the document of their array.
    fn needs_documents_first(&self) -> bool {
        false
    }

    /// Makes the value under `key` the parts of `body`, one behind the other, in one step. A large one may be sent in parts,
    /// which no reader sees before the last.
    ///
    /// [`Put::Done`] and [`Put::Conflict`] are certain. A store that sends a put again after an answer was lost tells by a
    /// [`WriteMark`] whether it was applied, or fails with [`ErrorKind::Uncertain`](crate::ErrorKind::Uncertain).
    fn put(&self, key: &str, body: Vec<Vec<u8>>, condition: Condition, done: OnDone<Put>) -> RequestHandle;

    /// Takes the values under these keys away; those that are not there are no error.
    fn delete(&self, keys: Vec<String>, done: OnDone<()>) -> RequestHandle;
}
