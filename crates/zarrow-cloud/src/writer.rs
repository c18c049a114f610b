//! Changing a store: values are put whole, under a condition where one is asked for, and deleted many at a time.
//!
//! 1. A value of up to 16 MiB is one put, and so is any with a condition. A larger one goes in parts, eight at a time, which nobody
//!    sees before the last; where a part fails they are given up.
//! 2. Where a try of a put failed so that nobody knows what became of it, and a later one meets a value that is there, that value may
//!    be our own: it is read, and where it has our bytes the put is done.
//! 3. A server that is not the service's own may take conditions and not heed them, which loses writes of others. So the first put
//!    with a condition there is preceded by one that must be refused.

use crate::connection::{Connection, Multipart};
use crate::failure::Failure;
use crate::location::{Location, Service};
use crate::options::Settings;
use crate::retry::Attempts;
use crate::version;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{
    Error as ClientError, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion,
};
use std::io;
use std::sync::Arc;
use zarrow::store::remote::{Condition, ObjectVersion, Put};
use zarrow::{ErrorKind, Result};
use zarrow_array::fork::Mutex;

/// A larger value is sent in parts of this size.
const PART_NBYTES: usize = 16 << 20;

/// Parts that are sent at once.
const PARTS_AT_ONCE: usize = 8;

/// Whether the servers that are not the service's own, with their buckets, heed conditions.
static HEEDED: Mutex<Vec<(String, bool)>> = Mutex::new(Vec::new());

/// Whether there are conditions, as far as the store's options say, and as is known of its server.
pub fn has_conditions(settings: &Settings, location: &Location) -> bool {
    let disabled = ["aws_conditional_put", "conditional_put"];
    let is_disabled =
        disabled.iter().any(|name| settings.config.get(*name).is_some_and(|value| value == "disabled"));
    !is_disabled && own_server(settings, location).is_none_or(|place| heeded(&place) != Some(false))
}

/// The server and the bucket, where the server is not the service's own.
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

/// A version that no value has.
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

/// Puts a value.
///
/// # Errors
/// [`ErrorKind::Write`]; [`ErrorKind::Unsupported`] for a condition that the server does not heed.
pub async fn put(
    connection: &Connection,
    key: &str,
    body: Vec<Bytes>,
    condition: Condition,
    attempts: &Arc<Attempts>,
) -> Result<Put> {
    let path = connection.path(key)?;
    let body: Vec<Bytes> = body.into_iter().filter(|part| !part.is_empty()).collect();
    let nbytes: usize = body.iter().map(Bytes::len).sum();
    let mode = match &condition {
        Condition::Always => {
            if nbytes > PART_NBYTES
                && let Some(Multipart(store)) = &connection.client.multipart
            {
                let put = put_parts(&**store, &path, body).await;
                return put
                    .map(|put| Put::Done(version_of(connection, &put)))
                    .map_err(|error| connection.error(&error, attempts, true));
            }
            PutMode::Overwrite
        }
        Condition::IfAbsent => PutMode::Create,
        Condition::IfVersion(version) => PutMode::Update(version::of_update(version)),
    };
    if condition != Condition::Always {
        check_conditions(connection, &path, attempts).await?;
    }
    let options = PutOptions { mode, extensions: Connection::extensions(attempts), ..PutOptions::default() };
    let payload = PutPayload::from_iter(body.iter().cloned());
    let error = match connection.client.store.put_opts(&path, payload, options).await {
        Ok(put) => return Ok(Put::Done(version_of(connection, &put))),
        Err(error) => error,
    };
    let failure = attempts.take_failure();
    let status = failure.as_ref().and_then(|failure| failure.status);
    let is_conflict = matches!(status, Some(409 | 412))
        || status == Some(404)
            && matches!(condition, Condition::IfVersion(_))
            && failure.as_ref().is_some_and(Failure::is_missing);
    if condition != Condition::Always && is_conflict {
        // Step 2.
        if attempts.is_uncertain()
            && let Some(version) = own_version(connection, &path, &body, attempts).await
        {
            return Ok(Put::Done(version));
        }
        return Ok(Put::Conflict);
    }
    if let Some(failure) = failure {
        attempts.fail(failure);
    }
    Err(connection.error(&error, attempts, true))
}

fn version_of(connection: &Connection, put: &PutResult) -> Option<ObjectVersion> {
    version::of_parts(put.e_tag.as_deref(), put.version.as_deref(), connection.has_generations())
}

/// The version of what is there, where that has these bytes.
async fn own_version(
    connection: &Connection,
    path: &Path,
    body: &[Bytes],
    attempts: &Arc<Attempts>,
) -> Option<Option<ObjectVersion>> {
    let options = GetOptions { extensions: Connection::extensions(attempts), ..GetOptions::default() };
    let answer = connection.client.store.get_opts(path, options).await.ok()?;
    if answer.meta.size != body.iter().map(|part| part.len() as u64).sum::<u64>() {
        return None;
    }
    let version = version::of_answer(&answer.meta, connection.has_generations());
    let mut expected = body.iter().flat_map(|part| part.iter());
    let mut frames = answer.into_stream();
    while let Some(frame) = frames.next().await {
        if !frame.ok()?.iter().all(|byte| expected.next() == Some(byte)) {
            return None;
        }
    }
    expected.next().is_none().then_some(version)
}

/// Step 3, once for each place that is not the service's own.
async fn check_conditions(connection: &Connection, path: &Path, attempts: &Arc<Attempts>) -> Result<()> {
    let Some(place) = own_server(&connection.settings, &connection.location) else { return Ok(()) };
    match heeded(&place) {
        Some(true) => return Ok(()),
        Some(false) => return Err(not_heeded()),
        None => {}
    }
    let probe = match path.parent() {
        Some(parent) => parent.join(".zarrow-probe"),
        None => Path::from(".zarrow-probe"),
    };
    let options = PutOptions {
        mode: PutMode::Update(no_version(&connection.location)),
        extensions: Connection::extensions(attempts),
        ..PutOptions::default()
    };
    let put = connection.client.store.put_opts(&probe, PutPayload::from_static(b"probe"), options).await;
    let failure = attempts.take_failure();
    match (put, failure.as_ref().and_then(|failure| failure.status)) {
        (Err(_), Some(404 | 409 | 412)) => {
            HEEDED.lock().push((place, true));
            Ok(())
        }
        (Ok(_), _) | (Err(ClientError::NotImplemented { .. }), _) | (Err(_), Some(501)) => {
            let mut paths = connection.client.store.delete_stream(stream::iter([Ok(probe)]).boxed());
            while paths.next().await.is_some() {}
            HEEDED.lock().push((place, false));
            Err(not_heeded())
        }
        (Err(error), _) => {
            if let Some(failure) = failure {
                attempts.fail(failure);
            }
            Err(connection.error(&error, attempts, true))
        }
    }
}

fn not_heeded() -> zarrow::Error {
    let text = "this server does not heed conditions of a put (If-Match, If-None-Match)";
    zarrow::Error::from(ErrorKind::Unsupported(text.into())).with_hint(
        "so two writers of one chunk would lose what one of them wrote: write whole chunks, or write elsewhere",
    )
}

/// Step 1.
async fn put_parts(
    store: &dyn object_store::multipart::MultipartStore,
    path: &Path,
    body: Vec<Bytes>,
) -> object_store::Result<PutResult> {
    let id = store.create_multipart(path).await?;
    let send = async {
        let parts = stream::iter(cut(body).into_iter().enumerate());
        let parts = parts.map(|(number, part)| store.put_part(path, &id, number, part));
        let parts: Vec<_> = parts.buffered(PARTS_AT_ONCE).try_collect().await?;
        store.complete_multipart(path, &id, parts).await
    };
    match send.await {
        Ok(put) => Ok(put),
        Err(error) => {
            // What was sent stays invisible where this fails too; the service's own rules then remove it.
            let _ = store.abort_multipart(path, &id).await;
            Err(error)
        }
    }
}

/// The body in parts of one size, but for the last.
fn cut(body: Vec<Bytes>) -> Vec<PutPayload> {
    let (mut parts, mut part, mut room) = (Vec::new(), Vec::new(), PART_NBYTES);
    for mut piece in body {
        while piece.len() >= room {
            part.push(piece.split_to(room));
            parts.push(PutPayload::from_iter(std::mem::take(&mut part)));
            room = PART_NBYTES;
        }
        room -= piece.len();
        if !piece.is_empty() {
            part.push(piece);
        }
    }
    if !part.is_empty() {
        parts.push(PutPayload::from_iter(part));
    }
    parts
}

/// Deletes values; those that are not there are no error.
///
/// # Errors
/// [`ErrorKind::Write`].
pub async fn delete(connection: &Connection, keys: Vec<String>, attempts: &Arc<Attempts>) -> Result<()> {
    let paths: Vec<Path> = keys.iter().map(|key| connection.path(key)).collect::<Result<_>>()?;
    let paths = stream::iter(paths.into_iter().map(Ok)).boxed();
    let mut deleted = connection.client.store.delete_stream(paths);
    let mut first = None;
    while let Some(path) = deleted.next().await {
        match path {
            Ok(_) | Err(ClientError::NotFound { .. }) => {}
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    match first {
        None => Ok(()),
        Some(error) => {
            let failure = crate::connection::of_client(&error);
            attempts.fail(Failure {
                kind: if failure.kind == io::ErrorKind::NotFound {
                    io::ErrorKind::Other
                } else {
                    failure.kind
                },
                ..failure
            });
            Err(connection.error(&error, attempts, true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_one_size_but_for_the_last() {
        let body = [PART_NBYTES / 2, PART_NBYTES * 2, 0, 7].map(|nbytes| Bytes::from(vec![1; nbytes]));
        let sizes: Vec<usize> = cut(body.to_vec()).iter().map(PutPayload::content_length).collect();
        assert_eq!(sizes, [PART_NBYTES, PART_NBYTES, PART_NBYTES / 2 + 7]);
    }
}
