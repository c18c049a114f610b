//! Fetches the bytes of one request, if necessary with several answers.
//!
//! 1. An answer is requested: for the whole range, or for the rest after an interrupted body, if the value still has the
//!    same version.
//! 2. Its frames go to the receiver. All frames since the last head have one version: if the value has changed, or if
//!    this is unknown, the request is restarted with another head.
//! 3. It is complete when all bytes announced by the answer's head have arrived; any other number is a fault.

use crate::answer_body::broken;
use crate::connection::Connection;
use crate::failure::{Failure, innermost};
use crate::retry::{Attempts, Fault};
use crate::transport::{Streamed, UnknownSize};
use crate::version;
use futures_util::StreamExt;
use object_store::{Error as ClientError, GetOptions, GetRange, GetResult, ObjectStore};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use zarrow::Result;
use zarrow::store::remote::{ByteRange, Head, ObjectVersion, Outcome, Receiver, Request};

/// The missing rest of an interrupted body.
struct MissingBytes {
    range: Range<u64>,
    version: ObjectVersion,
}

/// Result of one answer.
enum AnswerResult {
    End(Outcome),
    /// The body was interrupted; with the rest, if the request can be resumed.
    Broken(Fault, Box<Failure>, Option<MissingBytes>),
    /// The value has changed.
    Anew,
}

/// Passes the bytes of `request` to `receiver`.
///
/// # Errors
/// The last failure, when `attempts` gives up.
pub async fn fetch(
    connection: &Connection,
    request: &Request,
    attempts: &Arc<Attempts>,
    receiver: &mut dyn Receiver,
) -> Result<Outcome> {
    let path = connection.path(&request.key)?;
    let mut rest = None;
    // An empty range requests only the head, but some servers answer only requests for bytes.
    let mut head_only = matches!(&request.range, ByteRange::Range(range) if range.start >= range.end);
    loop {
        // An earlier failure has been recovered from, or reported.
        attempts.take_failure();
        attempts.take_sent();
        let options = options(request, rest.as_ref(), head_only, attempts);
        let (fault, failure) = match connection.client.store.get_opts(&path, options).await {
            Ok(answer) => match take(connection, request, rest.take(), answer, receiver).await {
                AnswerResult::End(outcome) => return Ok(outcome),
                AnswerResult::Anew => (Fault::Server, changed()),
                AnswerResult::Broken(fault, failure, left) => {
                    rest = left;
                    (fault, *failure)
                }
            },
            Err(error) => {
                let (failure, is_answer) = (attempts.take_failure(), attempts.take_sent());
                let status = failure.as_ref().and_then(|failure| failure.status);
                match status {
                    Some(404 | 410) if failure.as_ref().is_some_and(Failure::is_missing) => {
                        return Ok(Outcome::Missing);
                    }
                    Some(412) if request.if_version.is_none() && rest.take().is_some() => {
                        (Fault::Server, changed())
                    }
                    Some(412) => return Ok(Outcome::Changed),
                    Some(405 | 501) if head_only => {
                        head_only = false;
                        continue;
                    }
                    // The value ends before its announced size.
                    Some(416) if rest.take().is_some() => (Fault::Server, changed()),
                    Some(416) if request.range != ByteRange::Whole => {
                        return Ok(beyond(request, failure.and_then(|failure| failure.nbytes), receiver));
                    }
                    // The answer is invalid: it has a length or a range that was not requested.
                    None if is_answer
                        && failure.is_none()
                        && matches!(error, ClientError::Generic { .. }) =>
                    {
                        let text = format!("the server's answer is invalid: {}", innermost(&error));
                        (Fault::Server, Failure::new(io::ErrorKind::InvalidData, text))
                    }
                    _ => {
                        let failure = failure.unwrap_or_else(|| crate::connection::client_failure(&error));
                        attempts.fail(failure.clone());
                        return Err(connection.failure_error(failure, false));
                    }
                }
            }
        };
        match attempts.again(fault, failure.clone()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(connection.failure_error(failure, false)),
        }
    }
}

/// Step 1.
fn options(
    request: &Request,
    rest: Option<&MissingBytes>,
    head_only: bool,
    attempts: &Arc<Attempts>,
) -> GetOptions {
    let range = match (rest, &request.range) {
        (Some(rest), _) => Some(GetRange::Bounded(rest.range.clone())),
        (None, ByteRange::Whole) => None,
        (None, _) if head_only => None,
        (None, ByteRange::Range(range)) => {
            Some(GetRange::Bounded(range.start..range.end.max(range.start + 1)))
        }
        (None, ByteRange::Suffix(nbytes)) => Some(GetRange::Suffix(*nbytes)),
    };
    let wanted = rest.map(|rest| &rest.version).or(request.if_version.as_ref());
    let mut extensions = Connection::extensions(attempts);
    extensions.insert(Streamed);
    GetOptions {
        range,
        head: head_only,
        if_match: wanted.map(|version| version::e_tag(version).to_owned()),
        extensions,
        ..GetOptions::default()
    }
}

/// Step 2, for one answer.
async fn take(
    connection: &Connection,
    request: &Request,
    rest: Option<MissingBytes>,
    answer: GetResult,
    receiver: &mut dyn Receiver,
) -> AnswerResult {
    let found = version::from_answer(&answer, connection.has_generations());
    // A server may not know `If-Match`: compare the version in its answer.
    if let Some(wanted) = &request.if_version
        && found.as_ref().map(version::e_tag) != Some(version::e_tag(wanted))
    {
        return AnswerResult::End(Outcome::Changed);
    }
    let no_size = answer.extensions.get::<UnknownSize>().is_some();
    let mut range = answer.range.clone();
    match &rest {
        Some(rest) if found.as_ref() != Some(&rest.version) || rest.range != range => {
            return AnswerResult::Anew;
        }
        Some(_) => {}
        None => {
            let nbytes = (!no_size).then_some(answer.meta.size);
            let head = Head { start: range.start, nbytes, version: found.clone() };
            if receiver.head(&head).is_break() {
                return AnswerResult::End(Outcome::Stopped);
            }
        }
    }
    if matches!(&request.range, ByteRange::Range(range) if range.start >= range.end) {
        return AnswerResult::End(Outcome::Complete);
    }
    let left = |range: Range<u64>| {
        let version = found.clone().filter(|_| !no_size)?;
        Some(MissingBytes { range, version })
    };
    let mut frames = answer.into_stream();
    while let Some(frame) = frames.next().await {
        let frame = match frame {
            Ok(frame) => frame,
            // All bytes have arrived: only the end of the message is wrong.
            Err(_) if !no_size && range.start == range.end => break,
            Err(error) => {
                let (fault, failure) = broken(&error);
                return AnswerResult::Broken(fault, failure.into(), left(range));
            }
        };
        let nbytes = frame.len() as u64;
        if !no_size && nbytes > range.end - range.start {
            let text = "the server sent more bytes than it announced";
            let failure = Failure::new(io::ErrorKind::InvalidData, text);
            return AnswerResult::Broken(Fault::Connection, failure.into(), None);
        }
        range.start = range.start.saturating_add(nbytes);
        if receiver.frame(&frame).is_break() {
            return AnswerResult::End(Outcome::Stopped);
        }
    }
    // Step 3.
    if !no_size && range.start < range.end {
        let text = "the server sent fewer bytes than it announced";
        let failure = Failure::new(io::ErrorKind::UnexpectedEof, text);
        return AnswerResult::Broken(Fault::Connection, failure.into(), left(range));
    }
    AnswerResult::End(Outcome::Complete)
}

/// A range that begins after the end of the value, and is empty.
fn beyond(request: &Request, nbytes: Option<u64>, receiver: &mut dyn Receiver) -> Outcome {
    let nbytes = nbytes.or(match request.range {
        ByteRange::Range(ref range) if range.start > 0 => None,
        _ => Some(0),
    });
    let requested = match request.range {
        ByteRange::Range(ref range) => range.start,
        ByteRange::Whole | ByteRange::Suffix(_) => 0,
    };
    let head =
        Head { start: nbytes.map_or(requested, |nbytes| nbytes.min(requested)), nbytes, version: None };
    match receiver.head(&head) {
        std::ops::ControlFlow::Continue(()) => Outcome::Complete,
        std::ops::ControlFlow::Break(()) => Outcome::Stopped,
    }
}

fn changed() -> Failure {
    Failure::new(io::ErrorKind::Other, "the value was replaced repeatedly during the read")
}
