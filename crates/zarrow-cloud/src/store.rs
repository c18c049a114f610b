//! A store in the cloud, in the engine's interface.
//!
//! 1. A request becomes a task on the transport's threads, which always notifies its receiver at the end: it answers,
//!    fails, is cancelled or panics.
//! 2. If S3 reports another region for the bucket, and no option named one, the client is rebuilt for that region.
//! 3. In a forked child the store creates a new client; handles from its parent do nothing there.

use crate::cancelled_changes::CancelledChanges;
use crate::conditional_put_check;
use crate::connection::Connection;
use crate::document_request::{self, DocumentRequests, Sender, is_document_request};
use crate::fetch::fetch;
use crate::listing;
use crate::location::{Location, Service};
use crate::options::{Settings, StorageOptions};
use crate::retry::Attempts;
use crate::time_outs_and_retries::TransportPolicy;
use crate::writer::{Payload, delete, put};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use zarrow::store::Store;
use zarrow::store::remote::{
    Condition, FetchPolicy, Listing, OnDone, Outcome, Put, PutBody, Receiver, RemoteAdapter, RemoteStore,
    RemoteWriter, Request, RequestHandle,
};
use zarrow::{ErrorKind, Result};
use zarrow_array::fork::{Mutex, generation};

/// A bucket, a container or a web server, or a folder in one.
///
/// Its requests run on threads that all stores of the process share, started by the first request. Opening it sends
/// nothing. A forked child uses it with new connections. Neither its name nor its errors show secret options.
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
    shared: Arc<StoreClient>,
    url: String,
    options: StorageOptions,
}

pub(crate) struct StoreClient {
    location: Location,
    settings: Mutex<Settings>,
    connection: Mutex<Option<Arc<Connection>>>,
    document_requests: DocumentRequests,
}

/// Lets [`Array::open`](zarrow::Array::open), [`Group::open`](zarrow::Group::open) and
/// [`Group::create`](zarrow::Group::create) take URLs for the rest of the process, with options from the environment.
///
/// ```
/// zarrow_cloud::open_urls();
/// // Nothing listens at port 1, so this request is refused.
/// let error = zarrow::Array::open("http://127.0.0.1:1/data.zarr").unwrap_err();
/// assert_eq!(error.kind().code(), "io");
/// ```
pub fn open_urls() {
    zarrow::store::open_urls_by(|url| {
        CloudStore::new(url, StorageOptions::default()).map(CloudStore::into_store)
    });
}

impl CloudStore {
    /// Opens the store at `url`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for invalid URLs and options, [`ErrorKind::BadKey`] for an invalid path.
    pub fn new(url: &str, options: StorageOptions) -> Result<CloudStore> {
        let location = Location::parse(url)?;
        let settings = Mutex::new(Settings::new(&location, &options)?);
        let (connection, document_requests) = (Mutex::new(None), DocumentRequests::default());
        let shared = StoreClient { location, settings, connection, document_requests };
        Ok(CloudStore { shared: Arc::new(shared), url: url.to_owned(), options })
    }

    /// Returns the store in the form for `zarrow::open`.
    #[must_use]
    pub fn into_store(self) -> Arc<dyn Store> {
        Arc::new(RemoteAdapter::new(Arc::new(self)))
    }

    /// Returns the same store under another policy.
    #[must_use]
    pub fn with_policy(self, policy: TransportPolicy) -> CloudStore {
        self.shared.settings.lock().policy = policy;
        self.shared.forget_connection();
        self
    }

    /// Returns the policy of its requests.
    #[must_use]
    pub fn transport_policy(&self) -> TransportPolicy {
        self.shared.settings.lock().policy
    }

    /// Returns the URL of the call that opened it, secrets included.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the options of the call that opened it, secrets included.
    #[must_use]
    pub fn options(&self) -> &StorageOptions {
        &self.options
    }
}

/// Runs `task` on the transport's threads. Only `task` owns the caller's notification, so dropping it notifies the
/// caller.
fn spawn(connection: &Connection, task: impl Future<Output = ()> + Send + 'static) -> RequestHandle {
    let handle = connection.process.spawn(task);
    let (abort, process) = (Abort { handle, generation: generation() }, connection.process);
    RequestHandle::new(move || abort.abort(&process.cancelled_changes))
}

impl StoreClient {
    /// Returns the client of this process (step 3).
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

    /// Step 2: returns the client for the region in the last failure; `None` if the region is the same.
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

impl Sender for StoreClient {
    fn send(self: Arc<Self>, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        let mut connection = match self.connection() {
            Ok(connection) => connection,
            Err(error) => {
                receiver.done(Err(error));
                return RequestHandle::ended();
            }
        };
        let mut done = DoneGuard(Some(receiver));
        spawn(&Arc::clone(&connection), async move {
            let attempts = connection.attempts();
            loop {
                let Some(receiver) = done.0.as_deref_mut() else { return };
                let result = fetch(&connection, &request, &attempts, receiver).await;
                if result.is_err()
                    && let Some(moved) = self.moved(&connection, &attempts)
                {
                    connection = moved;
                    continue;
                }
                return done.tell(result);
            }
        })
    }

    fn later(&self, delay: Duration, work: Box<dyn FnOnce() + Send>) -> bool {
        let Ok(connection) = self.connection() else { return false };
        connection.process.spawn(async move {
            tokio::time::sleep(delay).await;
            work();
        });
        true
    }

    fn document_requests(&self) -> &DocumentRequests {
        &self.document_requests
    }
}

impl fmt::Debug for CloudStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("CloudStore").field(&self.shared.location.name).finish()
    }
}

/// Stops a task; does nothing in a forked child.
struct Abort {
    handle: AbortHandle,
    generation: u64,
}

impl Abort {
    fn abort(&self, cancelled: &CancelledChanges) {
        if self.generation == generation() {
            cancelled.cancel(&self.handle);
        }
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        if self.generation != generation() {
            // Leak one reference, since the task is the parent's and must not be dropped here.
            std::mem::forget(self.handle.clone());
        }
    }
}

/// Notifies a receiver of the end, also if its task is dropped (step 1).
struct DoneGuard(Option<Box<dyn Receiver>>);

impl DoneGuard {
    fn tell(mut self, result: Result<Outcome>) {
        if let Some(receiver) = self.0.take() {
            receiver.done(result);
        }
    }
}

impl Drop for DoneGuard {
    fn drop(&mut self) {
        if let Some(receiver) = self.0.take() {
            receiver.done(if std::thread::panicking() { Err(panicked()) } else { Ok(Outcome::Stopped) });
        }
    }
}

/// Notifies a caller of the end, also if its task is dropped.
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
        // Azure does not support suffix ranges.
        let has_suffix = !matches!(self.shared.location.service, Service::Azure { .. });
        FetchPolicy { has_suffix, ..FetchPolicy::default() }
    }

    fn submit(&self, request: Request, receiver: Box<dyn Receiver>) -> RequestHandle {
        if is_document_request(&request) {
            return document_request::submit(&self.shared, request, receiver);
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
        // A web server has no lists: the caller's next request reports that.
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
    /// Runs the future from `make`, again for another region, and notifies `answer`.
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
        conditional_put_check::has_conditions(&self.shared.settings.lock(), &self.shared.location)
    }

    fn put(&self, key: &str, body: PutBody, condition: Condition, done: OnDone<Put>) -> RequestHandle {
        let (key, body) = (key.to_owned(), Payload::new(body));
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
