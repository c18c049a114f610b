//! The client of one service, in one process.

use crate::failure::{Failure, chain};
use crate::location::{Location, Service, unsupported};
use crate::options::Settings;
use crate::process::Process;
use crate::retry::Attempts;
use crate::transport::Transport;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{Extensions, ObjectStore, RetryConfig};
use std::error::Error as _;
use std::io;
use std::sync::Arc;
use url::Url;
use zarrow::store::join;
use zarrow::{Error, Result};
use zarrow_array::fork::generation;

/// A client. A forked child never drops the client of its parent.
#[derive(Debug)]
pub struct Connection {
    pub generation: u64,
    pub process: &'static Process,
    pub settings: Settings,
    pub location: Location,
    pub client: Arc<Client>,
}

/// The traits of a service's client.
#[derive(Debug)]
pub struct Client {
    pub store: Arc<dyn ObjectStore>,
    pub lister: Option<Lister>,
}

/// Lists page by page.
pub struct Lister(pub Arc<dyn PaginatedListStore>);

impl std::fmt::Debug for Lister {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Lister")
    }
}

impl Client {
    fn new<S: ObjectStore + PaginatedListStore>(store: S) -> Client {
        let store = Arc::new(store);
        let lister = Some(Lister(Arc::clone(&store) as _));
        Client { store, lister }
    }
}

impl Connection {
    /// Makes the client: no request is sent.
    ///
    /// # Errors
    /// [`Unsupported`](zarrow::ErrorKind::Unsupported) for contradictory settings; [`Io`](zarrow::ErrorKind::Io)
    /// if no thread can be started.
    pub fn new(location: &Location, settings: &Settings) -> Result<Connection> {
        let process = Process::current()?;
        let failed = |error: &(dyn std::error::Error + 'static)| {
            let text = settings.secrets.hide(&chain(error));
            unsupported(format!(
                "cannot create a client for {} from the storage options: {text}",
                location.service_name()
            ))
        };
        let client = process.client(&settings.policy, &settings.trust).map_err(|error| failed(&error))?;
        let origin = match &location.service {
            Service::Http { url, .. } => Some(url.clone()),
            Service::Gcs { .. } => {
                let names = ["google_base_url", "base_url"];
                let own = names.iter().find_map(|name| settings.config.get(*name));
                Url::parse(own.map_or("https://storage.googleapis.com", String::as_str)).ok()
            }
            _ => None,
        };
        let headers = settings.headers.clone();
        let is_service = !matches!(location.service, Service::Http { .. });
        let transport = Transport::new(
            process,
            client,
            settings.trust.clone(),
            settings.policy,
            headers,
            origin,
            is_service,
        );
        settings.check_complete(location)?;
        let client = build(location, settings, transport)
            .map_err(|error| error.source().map_or_else(|| failed(&error), failed))?;
        let (settings, location) = (settings.clone(), location.clone());
        Ok(Connection { generation: generation(), process, settings, location, client: Arc::new(client) })
    }

    /// Returns the path in the bucket of the value under a key.
    ///
    /// # Errors
    /// [`BadKey`](zarrow::ErrorKind::BadKey) for keys that the service does not allow.
    pub fn path(&self, key: &str) -> Result<Path> {
        let full = if key.is_empty() { self.location.root.clone() } else { join(&self.location.root, key) };
        Path::parse(full).map_err(|_| zarrow::ErrorKind::BadKey(key.to_owned()).into())
    }

    /// The service and the bucket.
    pub fn place(&self) -> String {
        format!("{:?}", self.location.service)
    }

    /// Extensions that carry a request's count of attempts to the transport.
    pub fn extensions(attempts: &Arc<Attempts>) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(Arc::clone(attempts));
        extensions
    }

    pub fn attempts(&self) -> Arc<Attempts> {
        Arc::new(Attempts::new(self.settings.policy))
    }

    /// Returns the caller's error for a failed request.
    pub fn error(&self, error: &object_store::Error, attempts: &Attempts, writes: bool) -> Error {
        let failure = attempts.take_failure().unwrap_or_else(|| client_failure(error));
        self.failure_error(failure, writes)
    }

    /// As [`error`](Connection::error), for a known failure.
    pub fn failure_error(&self, failure: Failure, writes: bool) -> Error {
        failure.into_error(writes, self.settings.anonymous, &self.settings.secrets)
    }

    pub fn has_generations(&self) -> bool {
        matches!(self.location.service, Service::Gcs { .. })
    }
}

/// Failure of a request unknown to the transport: credentials could not be fetched, or an answer made no sense.
pub fn client_failure(error: &object_store::Error) -> Failure {
    let kind = match error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            io::ErrorKind::Unsupported
        }
        _ => io::ErrorKind::Other,
    };
    Failure::new(kind, plain(error))
}

/// Returns the texts of an error without the client's name for the service.
fn plain(error: &object_store::Error) -> String {
    match error {
        object_store::Error::Generic { source, .. } => chain(&**source),
        other => chain(other),
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.generation != generation() {
            // One reference too many, so that the client is never dropped in this process.
            std::mem::forget(Arc::clone(&self.client));
        }
    }
}

fn build(location: &Location, settings: &Settings, transport: Transport) -> object_store::Result<Client> {
    let no_retries = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    // The builders have no common trait.
    macro_rules! client {
        ($builder:expr) => {{
            let builder =
                settings.config.iter().fold($builder, |builder, (name, value)| match name.parse() {
                    Ok(key) => builder.with_config(key, value),
                    Err(_) => builder,
                });
            Client::new(builder.with_retry(no_retries).with_http_connector(transport).build()?)
        }};
    }
    Ok(match &location.service {
        Service::S3 { bucket } => client!(AmazonS3Builder::new().with_bucket_name(bucket)),
        Service::Gcs { bucket } => {
            let builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket);
            // Without a token the client would ask this machine for one at each put, anonymous or not.
            client!(if settings.anonymous { builder.with_bearer_token("") } else { builder })
        }
        Service::Azure { container, .. } => {
            client!(MicrosoftAzureBuilder::new().with_container_name(container))
        }
        Service::Http { url, .. } => {
            let builder = HttpBuilder::new().with_url(url.as_str()).with_retry(no_retries);
            let store = Arc::new(builder.with_http_connector(transport).build()?);
            Client { store, lister: None }
        }
    })
}
