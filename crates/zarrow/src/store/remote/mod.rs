//! Stores with slow answers and therefore many requests in flight at once: object stores, HTTP, stores written in
//! Python.
//!
//! 1. A request is [submitted](RemoteStore::submit), which returns at once. Its receiver gets the response on a thread
//!    of the store: a head, then frames, then the end.
//! 2. The store owns its transport: connections, retries, time-outs, hedging, and the number of concurrent requests to
//!    a host. The engine decides which ranges to request, how to merge or split them, and how many bytes may be in
//!    flight.
//! 3. If a retry cannot continue where the last attempt broke off, the response starts again with a head. All frames
//!    since the last head belong to one version of the value.
//!
//! [`RemoteAdapter`] makes a [`Store`](crate::store::Store) of a remote store. Its calls wait for their answers.

mod adapter;
mod ahead;
pub(crate) mod bodies;
mod body;
pub(crate) mod body_memory;
mod concurrent_puts;
mod documents;
pub(crate) mod in_flight;
mod interrupt;
mod listing;
mod put_body;
mod put_documents;
mod receiver;
mod waiter;
mod write_mark;
mod writer;

pub use crate::store::call_mark::{CallMark, call_mark};
pub use adapter::RemoteAdapter;
pub(crate) use ahead::{AheadStore, PendingRequests};
pub use body::{Body, Fetched, fetch};
pub(crate) use body::{Collector, Frames};
pub use body_memory::{BodyAlloc, BodyMemory};
pub(crate) use concurrent_puts::{BegunPut, DocumentPut, PutIf, wait_each};
pub(crate) use documents::documents;
pub use documents::fetch_each;
pub use interrupt::{interrupted_by, set_signal_check};
pub(crate) use interrupt::{pass_here, pass_now_and_then, pass_signal};
pub use listing::{ListedValue, Listing};
pub use put_body::{BorrowedBytes, PutBody};
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

/// Version of a value, in the store's own words: a strong ETag, a generation.
///
/// Two versions are the same if their texts are equal.
#[derive(Debug, Clone)]
pub struct ObjectVersion {
    text: Arc<str>,
    /// The value's [`WriteMark`], which is not part of the version.
    writers: Option<Arc<str>>,
}

impl ObjectVersion {
    /// Creates a version from the text that the store gave.
    pub fn new(text: &str) -> ObjectVersion {
        ObjectVersion { text: text.into(), writers: None }
    }

    /// Returns the same version, for a value stored with the text of this [`WriteMark`].
    #[must_use]
    pub fn written_by(self, mark: Option<&str>) -> ObjectVersion {
        ObjectVersion { writers: mark.map(Arc::from), ..self }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text of the value's [`WriteMark`].
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

/// Returns the version as the numbers that caches use: a hash wide enough that two versions of one value never share it
/// by chance.
pub(crate) fn version_number(version: &ObjectVersion) -> [u64; 4] {
    let part = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, version).hash(&mut hasher);
        hasher.finish()
    };
    [part(1), part(2), part(3), part(4)]
}

/// Requested bytes of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ByteRange {
    /// All bytes.
    Whole,
    /// The bytes in a range, cut at the end of the value.
    Range(Range<u64>),
    /// This many bytes before the end, or the whole value if it is shorter.
    Suffix(u64),
}

impl ByteRange {
    /// Returns the positions of the bytes in a value of `nbytes` bytes.
    #[must_use]
    pub fn within(&self, nbytes: u64) -> Range<u64> {
        match self {
            ByteRange::Whole => 0..nbytes,
            ByteRange::Range(range) => {
                let start = range.start.min(nbytes);
                start..range.end.clamp(start, nbytes)
            }
            ByteRange::Suffix(count) => nbytes.saturating_sub(*count)..nbytes,
        }
    }
}

/// Purpose of a request, for the store's scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestClass {
    /// A document or the index of a shard: other requests wait for it.
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
    /// The requested bytes.
    pub range: ByteRange,
    /// Required version of the value; any other version is [`Outcome::Changed`].
    pub if_version: Option<ObjectVersion>,
    /// Purpose of the request.
    pub class: RequestClass,
}

impl Request {
    /// Creates a request for bytes of a chunk, of any version.
    pub fn new(key: impl Into<String>, range: ByteRange) -> Request {
        Request { key: key.into(), range, if_version: None, class: RequestClass::Chunk }
    }

    /// Returns the same request, restricted to this version.
    #[must_use]
    pub fn if_version(self, version: Option<ObjectVersion>) -> Request {
        Request { if_version: version, ..self }
    }

    /// Returns the same request with this class.
    #[must_use]
    pub fn with_class(self, class: RequestClass) -> Request {
        Request { class, ..self }
    }
}

/// How near ranges of one value become one request, such as inner chunks of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coalescing {
    /// Two ranges with fewer bytes than this between them become one request.
    pub gap_nbytes: u64,
    /// Maximum size of a merged request in bytes, unless a single range is larger.
    pub merged_nbytes: u64,
}

/// How the engine should split and merge requests to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPolicy {
    /// Maximum number of requests of one read that are useful at once.
    pub requests: usize,
    /// Two ranges with fewer bytes than this between them become one request.
    pub gap_nbytes: u64,
    /// Maximum sum of the gaps inside the merged requests of one value, unless its ranges have more bytes.
    pub gaps_nbytes: u64,
    /// Maximum size of a merged request, unless a single range is larger.
    pub merged_nbytes: u64,
    /// A larger range is split into requests of this size.
    pub split_nbytes: u64,
    /// Whether the store accepts requests for the end of a value of unknown size.
    pub has_suffix: bool,
    /// Whether a range may extend past the end of a value; the response is then cut at the end.
    pub cuts_ranges: bool,
    /// Whether the answer to a range tells the value's size.
    pub tells_size: bool,
}

impl FetchPolicy {
    /// Returns the same policy with these limits for merged requests alone, if there are any.
    #[must_use]
    pub fn with_coalescing(self, coalescing: Option<Coalescing>) -> FetchPolicy {
        let Some(Coalescing { gap_nbytes, merged_nbytes }) = coalescing else { return self };
        FetchPolicy { gap_nbytes, gaps_nbytes: u64::MAX, merged_nbytes, ..self }
    }
}

impl Default for FetchPolicy {
    /// Returns the policy for an object store some milliseconds away.
    fn default() -> FetchPolicy {
        FetchPolicy {
            requests: 256,
            gap_nbytes: 1 << 20,
            gaps_nbytes: 1 << 20,
            merged_nbytes: 16 << 20,
            split_nbytes: 12 << 20,
            has_suffix: true,
            cuts_ranges: true,
            tells_size: true,
        }
    }
}

/// Handle to a request in flight. Dropping it does not affect the request.
pub struct RequestHandle(Option<Box<dyn Fn() + Send + Sync>>);

impl RequestHandle {
    /// Creates a handle that stops its request by calling `cancel`.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> RequestHandle {
        RequestHandle(Some(Box::new(cancel)))
    }

    /// Creates the handle of a request that has already ended.
    #[must_use]
    pub fn ended() -> RequestHandle {
        RequestHandle(None)
    }

    /// Stops the request. Its receiver gets no more frames after [`Outcome::Stopped`], which may arrive before this
    /// returns or soon after. A request that has ended is not affected.
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

/// Callback for the result, called once, on a thread of the store.
pub type OnDone<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// Condition on the stored value for setting a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    Always,
    /// Only if the key has no value.
    IfAbsent,
    /// Only if the value has this version.
    IfVersion(ObjectVersion),
}

/// Result of setting a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// The value was set, with this version if the store returned it.
    Done(Option<ObjectVersion>),
    /// The condition did not hold: nothing was set.
    Conflict,
}

/// A store that answers by completion.
///
/// Keys satisfy [`check_key`](crate::store::check_key). In a forked child of the process that created the store, it
/// either works, with new connections, or returns a typed error; receivers of the parent's requests are never called
/// there. [`Any`] gives access to the concrete store type.
pub trait RemoteStore: Any + Send + Sync + fmt::Debug {
    /// Name of the store in error messages: a URL, without credentials.
    fn name(&self) -> &str;

    /// Returns how the engine should split and merge requests.
    fn policy(&self) -> FetchPolicy;

    /// Requests bytes of a value, and returns before they arrive.
    ///
    /// The receiver's [`done`](Receiver::done) is called exactly once, whatever happens; if the process ends before
    /// that, the receiver is dropped.
    fn submit(&self, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle;

    /// Requests the names directly below `prefix` (a path without a trailing slash), or all values below it.
    fn list(&self, prefix: &str, recursive: bool, done: OnDone<Listing>) -> RequestHandle;

    /// Requests all values below `prefix` if one answer holds them; `None` if it takes several, or if the store cannot
    /// tell.
    fn list_page(&self, prefix: &str, done: OnDone<Option<Listing>>) -> RequestHandle {
        let _ = prefix;
        done(Ok(None));
        RequestHandle::ended()
    }

    /// Returns the interface for changes; `None` if the store is read-only.
    fn writer(&self) -> Option<&dyn RemoteWriter> {
        None
    }
}

/// Write interface of a remote store.
pub trait RemoteWriter: Send + Sync {
    /// Whether the store enforces [`Condition::IfAbsent`] and [`Condition::IfVersion`] against all other writers.
    fn has_conditions(&self) -> bool;

    /// Whether responses to requests for bytes include the value's version, and not only responses to requests for its
    /// size.
    fn tells_versions(&self) -> bool {
        true
    }

    /// Whether chunks can be put only after the document of their array.
    fn needs_documents_first(&self) -> bool {
        false
    }

    /// Sets the value under `key` to the bytes of `body`, in one step. A large value may be sent in
    /// several parts; no reader sees them before the last one.
    ///
    /// [`Put::Done`] and [`Put::Conflict`] are certain. A store that sends a put again after losing the answer checks
    /// with a [`WriteMark`] whether the first one was applied, or fails with
    /// [`ErrorKind::Uncertain`](crate::ErrorKind::Uncertain).
    fn put(&self, key: &str, body: PutBody, condition: Condition, done: OnDone<Put>) -> RequestHandle;

    /// Deletes the values under these keys; missing values are not an error.
    fn delete(&self, keys: Vec<String>, done: OnDone<()>) -> RequestHandle;
}
