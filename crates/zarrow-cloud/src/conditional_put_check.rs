//! Detects servers that ignore conditional headers.
//!
//! 1. The services themselves honour conditions. Other servers may ignore them, or honour only `If-Match`: then one of
//!    two concurrent writes is lost.
//! 2. The first conditional put there is preceded by three puts to unused keys. A put on the condition of an impossible
//!    version must be refused. Of two simultaneous puts on the condition that the key is absent, exactly one must be
//!    refused. One writer runs this test, and the others wait for its result. The stored probes are deleted during the
//!    put that follows.
//! 3. The answer is remembered for each server and bucket, as long as the process lives. Listings leave these keys out.

use crate::connection::Connection;
use crate::location::{Location, Service};
use crate::options::Settings;
use futures_util::future::join3;
use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::{Error as ClientError, PutMode, PutOptions, PutPayload, UpdateVersion};
use std::sync::Arc;
use tokio::sync::Semaphore;
use zarrow::store::remote::random_number;
use zarrow::{ErrorKind, Result};
use zarrow_array::fork::Mutex;

/// Prefix of the probes' keys.
const PROBE: &str = ".zarrow-probe-";

/// Servers other than the service's own, with the bucket, and whether they honour conditions.
static HEEDED: Mutex<Vec<(String, bool)>> = Mutex::new(Vec::new());

/// Returns whether a key is a probe of step 2.
pub fn is_probe(key: &str) -> bool {
    key.rsplit('/').next().is_some_and(|name| name.starts_with(PROBE))
}

/// Returns whether there are conditions, by the store's options and the server's known behaviour.
pub fn has_conditions(settings: &Settings, location: &Location) -> bool {
    let disabled = ["aws_conditional_put", "conditional_put"];
    let is_disabled =
        disabled.iter().any(|name| settings.config.get(*name).is_some_and(|value| value == "disabled"));
    !is_disabled && own_server(settings, location).is_none_or(|place| heeded(&place) != Some(false))
}

/// The keys of stored probes.
#[must_use]
pub struct Probes(Vec<Path>);

impl Probes {
    /// Deletes the probes. A remaining probe does no harm.
    pub async fn delete(self, connection: &Connection) {
        let paths = stream::iter(self.0.into_iter().map(Ok)).boxed();
        let mut deleted = connection.client.store.delete_stream(paths);
        while deleted.next().await.is_some() {}
    }
}

/// Checks that the server honours conditions (step 2).
///
/// # Errors
/// [`ErrorKind::Unsupported`] if it does not, and errors of the puts.
pub async fn check(connection: &Connection, path: &Path) -> Result<Probes> {
    let Some(place) = own_server(&connection.settings, &connection.location) else {
        return Ok(Probes(Vec::new()));
    };
    if let Some(known) = known(&place) {
        return known;
    }
    let turn = {
        let mut tested = connection.process.tested.lock();
        Arc::clone(tested.entry(place.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    };
    // The semaphore is never closed.
    let _turn = turn.acquire().await.ok();
    if let Some(known) = known(&place) {
        return known;
    }
    let probe = |what: &str| {
        let name = format!("{PROBE}{what}-{:016x}", random_number());
        path.parent().map_or_else(|| Path::from(name.as_str()), |parent| parent.join(name.as_str()))
    };
    let (changed, created) = (probe("change"), probe("create"));
    let update = PutMode::Update(no_version(&connection.location));
    let (first, second, third) = join3(
        is_refused(connection, &changed, update),
        is_refused(connection, &created, PutMode::Create),
        is_refused(connection, &created, PutMode::Create),
    )
    .await;
    let stored = [(&changed, &first), (&created, &second), (&created, &third)];
    let stored = stored.into_iter().filter(|(_, is_refused)| !matches!(is_refused, Ok(true)));
    let mut stored: Vec<Path> = stored.map(|(path, _)| path.clone()).collect();
    stored.dedup();
    let probes = Probes(stored);
    let heeded = match (first, second, third) {
        (Ok(first), Ok(second), Ok(third)) => first && (second || third),
        (first, second, third) => {
            probes.delete(connection).await;
            return first.and(second).and(third).map(|_| Probes(Vec::new()));
        }
    };
    HEEDED.lock().push((place, heeded));
    if heeded {
        return Ok(probes);
    }
    probes.delete(connection).await;
    Err(not_heeded())
}

/// Returns the result of an earlier test, if any.
fn known(place: &str) -> Option<Result<Probes>> {
    heeded(place).map(|heeded| if heeded { Ok(Probes(Vec::new())) } else { Err(not_heeded()) })
}

/// Puts a few bytes, and returns whether the server refused the condition.
async fn is_refused(connection: &Connection, path: &Path, mode: PutMode) -> Result<bool> {
    let attempts = connection.attempts();
    let extensions = Connection::extensions(&attempts);
    let options = PutOptions { mode, extensions, ..PutOptions::default() };
    let put = connection.client.store.put_opts(path, PutPayload::from_static(b"probe"), options).await;
    let failure = attempts.take_failure();
    match (put, failure.as_ref().and_then(|failure| failure.status)) {
        (Err(_), Some(404 | 409 | 412)) => Ok(true),
        (Ok(_), _) | (Err(ClientError::NotImplemented { .. }), _) | (Err(_), Some(501)) => Ok(false),
        (Err(error), _) => Err(connection
            .failure_error(failure.unwrap_or_else(|| crate::connection::client_failure(&error)), true)),
    }
}

/// Returns the server and the bucket, if the server is not the service's own.
fn own_server(settings: &Settings, location: &Location) -> Option<String> {
    let (names, domain, bucket): (&[&str], _, _) = match &location.service {
        Service::S3 { bucket } => {
            (&["endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url"], ".amazonaws.com", bucket)
        }
        Service::Gcs { bucket } => (&["google_base_url", "base_url"], ".googleapis.com", bucket),
        Service::Azure { container, .. } => {
            (&["azure_storage_endpoint", "azure_endpoint", "endpoint"], ".core.windows.net", container)
        }
        Service::Http { .. } => return None,
    };
    let endpoint = names.iter().find_map(|name| settings.config.get(*name))?;
    (!endpoint.contains(domain)).then(|| format!("{endpoint} {bucket}"))
}

/// Returns an impossible version.
fn no_version(location: &Location) -> UpdateVersion {
    let e_tag = match location.service {
        Service::Azure { .. } => "\"0x1\"",
        _ => "\"00000000000000000000000000000000\"",
    };
    let version = matches!(location.service, Service::Gcs { .. }).then(|| "1".to_owned());
    UpdateVersion { e_tag: Some(e_tag.to_owned()), version }
}

fn heeded(place: &str) -> Option<bool> {
    HEEDED.lock().iter().find(|(known, _)| known == place).map(|(_, heeded)| *heeded)
}

fn not_heeded() -> zarrow::Error {
    let text = "this server ignores the conditional headers of a put (If-Match or If-None-Match)";
    zarrow::Error::from(ErrorKind::Unsupported(text.into())).with_hint(
        "so two writers of one chunk could overwrite each other's data: write whole chunks, or use another server",
    )
}
