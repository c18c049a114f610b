//! Changes to a store: values are put whole, under a condition if requested, and deleted many at a time.
//!
//! 1. A value of up to 16 MiB is one put, and so is any with a condition. A larger value is sent in parts, eight at a
//!    time, which are invisible until the last; if a part fails, the upload is aborted.
//! 2. Each conditional put and each put in parts carries a [`WriteMark`]. If an answer was lost and the next attempt is
//!    refused, the mark of the stored value tells whether the first one was applied. If it does not, that is an error.
//! 3. A change that is cancelled after it was sent continues until it is answered (`cancelled_changes`).
//! 4. A server that is not the service's own may ignore conditions, which loses writes of others. So the first put with a
//!    condition there is preceded by puts that must be refused (`conditional_put_check`).

use crate::answer_body::broken;
use crate::borrowed_payload::BorrowedPayload;
use crate::conditional_put_check;
use crate::connection::Connection;
use crate::failure::{Failure, causes};
use crate::retry::{Attempts, Fault};
use crate::sent_change;
use crate::version;
use bytes::Bytes;
use futures_util::future::join;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    Error as ClientError, GetOptions, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult,
};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use zarrow::ErrorKind;
use zarrow::Result;
use zarrow::store::remote::{
    Applied, BorrowedBytes, Condition, ObjectVersion, Put, PutBody, WriteMark, uncertain,
};

/// Larger values are sent in parts of this size.
const PART_NBYTES: usize = 16 << 20;

/// Number of parts sent at once.
const PARTS_AT_ONCE: usize = 8;

/// The bytes of a put.
#[derive(Clone)]
pub enum Payload {
    Owned(Vec<Bytes>),
    /// Memory of the writer, for a put that may be sent from there.
    Borrowed(Arc<dyn BorrowedBytes>),
}

impl Payload {
    pub fn new(body: PutBody) -> Payload {
        match body {
            PutBody::Owned(parts) => {
                Payload::Owned(parts.into_iter().filter(|part| !part.is_empty()).map(Bytes::from).collect())
            }
            PutBody::Borrowed(borrowed) => Payload::Borrowed(borrowed),
        }
    }

    fn into_owned(self) -> Result<Vec<Bytes>> {
        match self {
            Payload::Owned(parts) => Ok(parts),
            Payload::Borrowed(borrowed) => {
                let parts = PutBody::Borrowed(borrowed).into_parts()?;
                Ok(parts.into_iter().map(Bytes::from).collect())
            }
        }
    }
}

/// Puts a value.
///
/// # Errors
/// [`ErrorKind::Write`](zarrow::ErrorKind::Write); [`ErrorKind::Uncertain`](zarrow::ErrorKind::Uncertain);
/// [`ErrorKind::Unsupported`](zarrow::ErrorKind::Unsupported) for a condition that the server ignores.
pub async fn put(
    connection: &Connection,
    key: &str,
    body: Payload,
    condition: Condition,
    attempts: &Arc<Attempts>,
) -> Result<Put> {
    let path = connection.path(key)?;
    connection.process.cancelled_changes.wait(|| connection.place(), |other| *other == path).await;
    if let Payload::Borrowed(borrowed) = &body
        && condition == Condition::Always
        && borrowed.nbytes() <= PART_NBYTES
        && !connection.settings.examines_bodies(&connection.location)
    {
        return put_borrowed(connection, &path, Arc::clone(borrowed), attempts).await;
    }
    let body = body.into_owned()?;
    let nbytes: usize = body.iter().map(Bytes::len).sum();
    match condition {
        Condition::Always if nbytes > PART_NBYTES => put_parts(connection, &path, body).await,
        Condition::Always => {
            let put = send(connection, &path, &body, PutMode::Overwrite, None, attempts).await;
            put.map(|put| Put::Done(version_of(connection, &put, None)))
                .map_err(|error| connection.error(&error, attempts, true))
        }
        condition => {
            let probes = conditional_put_check::check(connection, &path).await?;
            join(put_if(connection, &path, &body, &condition, attempts), probes.delete(connection)).await.0
        }
    }
}

/// Puts a value that is copied from the writer's memory while it is sent.
async fn put_borrowed(
    connection: &Connection,
    path: &Path,
    borrowed: Arc<dyn BorrowedBytes>,
    attempts: &Arc<Attempts>,
) -> Result<Put> {
    let borrowed = BorrowedPayload::new(borrowed);
    let mut options = PutOptions { extensions: Connection::extensions(attempts), ..PutOptions::default() };
    options.extensions.insert(borrowed.clone());
    let put = send_payload(connection, path, borrowed.placeholder(), options, attempts).await;
    let put = put.map_err(|error| connection.error(&error, attempts, true))?;
    if !borrowed.is_sent() {
        return Err(ErrorKind::Internal("a put was sent without its bytes".into()).into());
    }
    Ok(Put::Done(version_of(connection, &put, None)))
}

async fn send(
    connection: &Connection,
    path: &Path,
    body: &[Bytes],
    mode: PutMode,
    mark: Option<&WriteMark>,
    attempts: &Arc<Attempts>,
) -> object_store::Result<PutResult> {
    let attributes = mark.map(version::attributes).unwrap_or_default();
    let extensions = Connection::extensions(attempts);
    let options = PutOptions { mode, attributes, extensions, ..PutOptions::default() };
    send_payload(connection, path, PutPayload::from_iter(body.iter().cloned()), options, attempts).await
}

async fn send_payload(
    connection: &Connection,
    path: &Path,
    payload: PutPayload,
    options: PutOptions,
    attempts: &Arc<Attempts>,
) -> object_store::Result<PutResult> {
    let (client, own) = (Arc::clone(&connection.client), path.clone());
    let put = async move { client.store.put_opts(&own, payload, options).await };
    sent_change::finish(connection, vec![path.clone()], attempts, put).await
}

/// Step 2.
async fn put_if(
    connection: &Connection,
    path: &Path,
    body: &[Bytes],
    condition: &Condition,
    attempts: &Arc<Attempts>,
) -> Result<Put> {
    let mark = WriteMark::new(condition);
    loop {
        let mode = match condition {
            Condition::IfVersion(version) => PutMode::Update(version::to_update(version)),
            _ => PutMode::Create,
        };
        let error = match send(connection, path, body, mode, Some(&mark), attempts).await {
            Ok(put) => return Ok(Put::Done(version_of(connection, &put, Some(&mark)))),
            Err(error) => error,
        };
        let failure = attempts.take_failure().unwrap_or_else(|| crate::connection::client_failure(&error));
        let is_refused = matches!(failure.status, Some(409 | 412))
            || failure.is_missing() && matches!(condition, Condition::IfVersion(_));
        if !attempts.is_uncertain() {
            if is_refused {
                return Ok(Put::Conflict);
            }
            attempts.fail(failure.clone());
            return Err(connection.failure_error(failure, true));
        }
        let found = if is_refused { stored(connection, path).await } else { None };
        let applied = found.as_ref().map_or(Applied::Unknown, |found| mark.is_applied(found.as_ref()));
        match applied {
            Applied::Yes => return Ok(Put::Done(found.flatten().filter(|found| mark.is_newest_of(found)))),
            Applied::No => return Ok(Put::Conflict),
            Applied::NotYet => {
                if let Some(pause) = attempts.again(Fault::Server, failure.clone()) {
                    tokio::time::sleep(pause).await;
                    continue;
                }
            }
            Applied::Unknown => {}
        }
        return Err(uncertain(failure.shown(&connection.settings.secrets)));
    }
}

/// Returns the version of the stored value, if any; the outer `None` if the server does not report it.
async fn stored(connection: &Connection, path: &Path) -> Option<Option<ObjectVersion>> {
    let attempts = connection.attempts();
    let extensions = Connection::extensions(&attempts);
    let options = GetOptions { head: true, extensions, ..GetOptions::default() };
    match connection.client.store.get_opts(path, options).await {
        Ok(answer) => version::from_answer(&answer, connection.has_generations()).map(Some),
        Err(_) => attempts.take_failure().filter(Failure::is_missing).map(|_| None),
    }
}

fn version_of(connection: &Connection, put: &PutResult, mark: Option<&WriteMark>) -> Option<ObjectVersion> {
    let version =
        version::from_parts(put.e_tag.as_deref(), put.version.as_deref(), connection.has_generations());
    version.map(|version| version.written_by(mark.map(WriteMark::as_str)))
}

/// Steps 1 and 2.
async fn put_parts(connection: &Connection, path: &Path, body: Vec<Bytes>) -> Result<Put> {
    let mark = WriteMark::new(&Condition::Always);
    let failed =
        |error: &ClientError| connection.failure_error(crate::connection::client_failure(error), true);
    let options =
        PutMultipartOptions { attributes: version::attributes(&mark), ..PutMultipartOptions::default() };
    let upload = connection.client.store.put_multipart_opts(path, options).await;
    let mut upload = upload.map_err(|error| failed(&error))?;
    let parts = stream::iter(cut(body)).map(|part| upload.put_part(part));
    let sent = parts.buffered(PARTS_AT_ONCE).try_collect::<Vec<()>>().await;
    let error = match sent {
        Ok(_) => {
            let end = async move {
                let ended = upload.complete().await;
                (upload, ended)
            };
            let attempts = connection.attempts();
            let (returned, ended) = sent_change::finish(connection, vec![path.clone()], &attempts, end).await;
            upload = returned;
            match ended {
                Ok(put) => return Ok(Put::Done(version_of(connection, &put, Some(&mark)))),
                Err(error) => {
                    // The answer to an earlier attempt may have been lost: then the upload has ended, and the value is
                    // stored.
                    let found = stored(connection, path).await.flatten();
                    if mark.is_applied(found.as_ref()) == Applied::Yes {
                        return Ok(Put::Done(found.filter(|found| mark.is_newest_of(found))));
                    }
                    error
                }
            }
        }
        Err(error) => error,
    };
    // If this fails too, the parts stay invisible until the service's own rules remove them.
    let _ = upload.abort().await;
    Err(failed(&error))
}

/// Splits the body into parts of one size, except for the last.
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

/// Deletes values; missing ones are not an error.
pub async fn delete(connection: &Connection, keys: Vec<String>, attempts: &Arc<Attempts>) -> Result<()> {
    /// Maximum number of keys in one request to S3.
    const KEYS_AT_ONCE: usize = 1000;
    let paths: Vec<Path> = keys.iter().map(|key| connection.path(key)).collect::<Result<_>>()?;
    let sorted: HashSet<&Path> = paths.iter().collect();
    connection.process.cancelled_changes.wait(|| connection.place(), |other| sorted.contains(other)).await;
    let mut first = None;
    for some in paths.chunks(KEYS_AT_ONCE) {
        let (client, own) = (Arc::clone(&connection.client), some.to_vec());
        let counted = Arc::clone(attempts);
        let deleted = async move {
            loop {
                let mut first = None;
                let paths = own.clone().into_iter().map(Ok);
                let mut deleted = client.store.delete_stream(stream::iter(paths).boxed());
                while let Some(path) = deleted.next().await {
                    match path {
                        Ok(_) | Err(ClientError::NotFound { .. }) => {}
                        Err(error) => {
                            first.get_or_insert(error);
                        }
                    }
                }
                // The client reads the answer to a batch after the transport has passed it on.
                let cut = first.as_ref().and_then(cut_answer);
                match cut.and_then(|(fault, failure)| counted.again(fault, failure)) {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return first,
                }
            }
        };
        let failed = sent_change::finish(connection, some.to_vec(), attempts, deleted).await;
        first = first.or(failed);
    }
    match first {
        None => Ok(()),
        Some(error) => {
            let mut failure = crate::connection::client_failure(&error);
            if failure.kind == io::ErrorKind::NotFound {
                failure.kind = io::ErrorKind::Other;
            }
            attempts.fail(failure);
            Err(connection.error(&error, attempts, true))
        }
    }
}

/// Returns the fault of an answer whose body was cut off, if `error` is that.
fn cut_answer(error: &ClientError) -> Option<(Fault, Failure)> {
    let kinds = causes(error).filter_map(|cause| cause.downcast_ref::<HttpError>()).map(HttpError::kind);
    let is_cut = |kind| matches!(kind, HttpErrorKind::Interrupted | HttpErrorKind::Timeout);
    kinds.into_iter().any(is_cut).then(|| broken(error))
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
