//! A store in the cloud, as the engine asks it.
//!
//! 1. A request becomes a task on the threads of the transport, which ends by telling its receiver, whatever happens: it
//!    answers, fails, is cancelled or panics.
//! 2. Where S3 says that the bucket is in another region than was asked, and nobody named one, the client is made anew for that region.
//! 3. In a forked child the store makes a client of its own; a handle of its parent's does nothing there.

use crate::connection::Connection;
use crate::fetch::fetch;
use crate::heeding;
use crate::listing;
use crate::location::{Location, Service};
use crate::looks::{self, Looks, Sender};
use crate::options::{Settings, StorageOptions};
use crate::policy::TransportPolicy;
use crate::retry::Attempts;
use crate::writer::{delete, put};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use zarrow::store::Store;
use zarrow::store::remote::{
    Condition, FetchPolicy, Listing, OnDone, Outcome, Put, Receiver, RemoteAdapter, RemoteStore,
    RemoteWriter, Request, RequestHandle,
};
use zarrow::{ErrorKind, Result};
use zarrow_array::fork::{Mutex, generation};

/// A bucket, a container or a web server, or a folder in one.
///
/// Its requests run on threads that all stores of the process share, made at the first one. Opening it sends nothing. A forked
/// child uses it with connections of its own. Neither its name nor its errors show what its options keep secret.
///
/// ```
/// use zarrow::store::remote::RemoteStore;
/// use zarrow_cloud::{CloudStore, StorageOptions};
///
/// let options = StorageOptions::from_json(r#"{"headers": {"Authorization": "Bearer 1234"}}"#)?;
/// let store = CloudStore::new("https://example.org/data.zarr", options)?;
/// assert_eq!(store.name(), "https://example.org/data.zarr");
/// assert!(!format!("{store:?}").contains("1234"));
/// # Ok::<(), zarrow::Error>(())
/// ```
pub struct CloudStore {
    shared: Arc<Shared>,
    url: String,
    options: StorageOptions,
}

pub(crate) struct Shared {
    location: Location,
    settings: Mutex<Settings>,
    connection: Mutex<Option<Arc<Connection>>>,
    looks: Looks,
}

impl CloudStore {
    /// The store at `url`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for URLs and options that make no store, [`ErrorKind::BadKey`] for a path that no store
    /// has.
    pub fn new(url: &str, options: StorageOptions) -> Result<CloudStore> {
        let location = Location::parse(url)?;
        let settings = Mutex::new(Settings::new(&location, &options)?);
        let shared = Shared { location, settings, connection: Mutex::new(None), looks: Looks::default() };
        Ok(CloudStore { shared: Arc::new(shared), url: url.to_owned(), options })
    }

    /// Returns the store as `zarrow::open` takes it.
    #[must_use]
    pub fn into_store(self) -> Arc<dyn Store> {
        Arc::new(RemoteAdapter::new(Arc::new(self)))
    }

    /// The same store under another policy.
    #[must_use]
    pub fn with_policy(self, policy: TransportPolicy) -> CloudStore {
        self.shared.settings.lock().policy = policy;
        self.shared.forget_connection();
        self
    }

    /// The policy of its requests.
    #[must_use]
    pub fn transport_policy(&self) -> TransportPolicy {
        self.shared.settings.lock().policy
    }

    /// The URL that it was opened with, secrets included.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The options that it was opened with, secrets included.
    #[must_use]
    pub fn options(&self) -> &StorageOptions {
        &self.options
    }
}

/// Runs `task` on the threads of the transport. What tells the caller is in `task` alone: it is dropped with it.
fn spawn(connection: &Connection, task: impl Future<Output = ()> + Send + 'static) -> RequestHandle {
    let handle = connection.process.runtime.spawn(task).abort_handle();
    let abort = Abort { handle, generation: generation() };
    RequestHandle::new(move || abort.abort())
}

impl Shared {
    /// The client of this process (step 3).
    fn connection(&self) -> Result<Arc<Connection>> {
        let own = generation();
        let known = |connection: &Option<Arc<Connection>>| {
            connection.as_ref().filter(|connection| connection.generation == own).cloned()
        };
        if let Some(connection) = known(&self.connection.lock()) {
            return Ok(connection);
        }
        let settings = self.settings.lock().clone();
        let made = Arc::new(Connection::new(&self.location, &settings)?);
        let mut connection = self.connection.lock();
        if let Some(first) = known(&connection) {
            return Ok(first);
        }
        let old = connection.replace(Arc::clone(&made));
        drop(connection);
        drop(old);
        Ok(made)
    }

    fn forget_connection(&self) {
        let old = self.connection.lock().take();
        drop(old);
    }

    /// Step 2: the client for the region that the last failure named; `None` where it is no other.
    pub(crate) fn moved(&self, connection: &Connection, attempts: &Attempts) -> Option<Arc<Connection>> {
        let failure = attempts.take_failure()?;
        let region = failure.region.clone();
        attempts.fail(failure);
        let region = region.filter(|_| matches!(self.location.service, Service::S3 { .. }))?;
        let known = &connection.settings.config;
        let is_named =
            ["aws_region", "region", "aws_endpoint_url", "endpoint_url", "aws_endpoint", "endpoint"];
        if is_named.iter().any(|name| known.contains_key(*name)) {
            return None;
        }
        self.settings.lock().config.insert("aws_region".to_owned(), region);
        self.forget_connection();
        attempts.take_failure();
        self.connection().ok()
    }
}

impl Sender for Shared {
    fn send(self: Arc<Self>, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        let mut connection = match self.connection() {
            Ok(connection) => connection,
            Err(error) => {
                receiver.done(Err(error));
                return RequestHandle::ended();
            }
        };
        let mut told = Told(Some(receiver));
        spawn(&Arc::clone(&connection), async move {
            let attempts = connection.attempts();
            loop {
                let Some(receiver) = told.0.as_deref_mut() else { return };
                let result = fetch(&connection, &request, &attempts, receiver).await;
                if result.is_err()
                    && let Some(moved) = self.moved(&connection, &attempts)
                {
                    connection = moved;
                    continue;
                }
                return told.tell(result);
            }
        })
    }

    fn later(&self, after: Duration, work: Box<dyn FnOnce() + Send>) -> bool {
        let Ok(connection) = self.connection() else { return false };
        connection.process.runtime.spawn(async move {
            tokio::time::sleep(after).await;
            work();
        });
        true
    }

    fn looks(&self) -> &Looks {
        &self.looks
    }
}

impl fmt::Debug for CloudStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("CloudStore").field(&self.shared.location.name).finish()
    }
}

/// Stops a task. In a forked child there is none.
struct Abort {
    handle: AbortHandle,
    generation: u64,
}

impl Abort {
    fn abort(&self) {
        if self.generation == generation() {
            self.handle.abort();
        }
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        if self.generation != generation() {
            // A count that is never given back: what it counts is the parent's.
            std::mem::forget(self.handle.clone());
        }
    }
}

/// Tells a receiver of the end, where its task is dropped too (step 1).
struct Told(Option<Box<dyn Receiver>>);

impl Told {
    fn tell(mut self, result: Result<Outcome>) {
        if let Some(receiver) = self.0.take() {
            receiver.done(result);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(receiver) = self.0.take() {
            receiver.done(if std::thread::panicking() { Err(panicked()) } else { Ok(Outcome::Stopped) });
        }
    }
}

/// Tells a caller of the end, where its task is dropped too.
struct Answer<T>(Option<OnDone<T>>);

impl<T> Answer<T> {
    fn tell(mut self, result: Result<T>) {
        if let Some(done) = self.0.take() {
            done(result);
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            let error = if std::thread::panicking() { panicked() } else { ErrorKind::Interrupted.into() };
            done(Err(error));
        }
    }
}

fn panicked() -> zarrow::Error {
    ErrorKind::Internal("a request to the store panicked".into()).into()
}

impl RemoteStore for CloudStore {
    fn name(&self) -> &str {
        &self.shared.location.name
    }

    fn policy(&self) -> FetchPolicy {
        // Azure has no requests for the end of a blob.
        let has_suffix = !matches!(self.shared.location.service, Service::Azure { .. });
        FetchPolicy { has_suffix, ..FetchPolicy::default() }
    }

    fn submit(&self, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        if looks::is_look(&request) {
            return looks::look(&self.shared, request, receiver);
        }
        Arc::clone(&self.shared).send(request, receiver)
    }

    fn list(&self, prefix: &str, recursive: bool, done: OnDone<Listing>) -> RequestHandle {
        let prefix = prefix.to_owned();
        let answer = Answer(Some(done));
        self.run(answer, move |connection, attempts| {
            let prefix = prefix.clone();
            async move { listing::list(&connection, &prefix, recursive, &attempts).await }
        })
    }

    fn list_page(&self, prefix: &str, done: OnDone<Option<Listing>>) -> RequestHandle {
        // A web server has no lists: the caller's next request tells.
        if matches!(self.shared.location.service, Service::Http { .. }) {
            done(Ok(None));
            return RequestHandle::ended();
        }
        let prefix = prefix.to_owned();
        self.run(Answer(Some(done)), move |connection, attempts| {
            let prefix = prefix.clone();
            async move { listing::list_page(&connection, &prefix, &attempts).await }
        })
    }

    fn writer(&self) -> Option<&dyn RemoteWriter> {
        (!matches!(self.shared.location.service, Service::Http { .. })).then_some(self)
    }
}

impl CloudStore {
    /// Runs what `make` gives, anew for another region, and tells `answer`.
    fn run<T, F>(
        &self,
        answer: Answer<T>,
        make: impl Fn(Arc<Connection>, Arc<Attempts>) -> F + Send + 'static,
    ) -> RequestHandle
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let mut connection = match self.shared.connection() {
            Ok(connection) => connection,
            Err(error) => {
                answer.tell(Err(error));
                return RequestHandle::ended();
            }
        };
        let shared = Arc::clone(&self.shared);
        spawn(&Arc::clone(&connection), async move {
            let attempts = connection.attempts();
            loop {
                let result = make(Arc::clone(&connection), Arc::clone(&attempts)).await;
                if result.is_err()
                    && let Some(moved) = shared.moved(&connection, &attempts)
                {
                    connection = moved;
                    continue;
                }
                return answer.tell(result);
            }
        })
    }
}

impl RemoteWriter for CloudStore {
    fn has_conditions(&self) -> bool {
        heeding::has_conditions(&self.shared.settings.lock(), &self.shared.location)
    }

    fn put(&self, key: &str, body: Vec<Vec<u8>>, condition: Condition, done: OnDone<Put>) -> RequestHandle {
        let key = key.to_owned();
        let body: Vec<bytes::Bytes> = body.into_iter().map(bytes::Bytes::from).collect();
        self.run(Answer(Some(done)), move |connection, attempts| {
            let (key, body, condition) = (key.clone(), body.clone(), condition.clone());
            async move { put(&connection, &key, body, condition, &attempts).await }
        })
    }

    fn delete(&self, keys: Vec<String>, done: OnDone<()>) -> RequestHandle {
        self.run(Answer(Some(done)), move |connection, attempts| {
            let keys = keys.clone();
            async move { delete(&connection, keys, &attempts).await }
        })
    }
}
