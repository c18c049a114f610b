//! Checks the documents that answer lists and changes.
//!
//! 1. A server or a proxy may answer 200 with an error, a web page or nothing. `object_store` would take any of them for an
//!    empty list, and some for a change that was made.
//! 2. S3 tells an error of a long request in a body after a head of 200: such an error is tried again like one of a status.
//! 3. An answer to a deletion of many keys may name some that failed. `object_store` panics if it does not know a name, so the
//!    failures are read here.

use crate::answer_body::broken;
use crate::failure::{Failure, element};
use crate::retry::Fault;
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, StatusCode, header};
use object_store::client::{HttpErrorKind, HttpRequest, HttpResponse};
use std::io;

/// The required form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A document with this root.
    Document(&'static str),
    /// Anything but an error or a web page.
    Anything,
}

/// The failure of an unusable answer, and whether to try again.
pub type Refused = Box<(Option<Fault>, Failure)>;

/// Returns the answer to a list or to a change, with all of its body.
pub async fn checked(request: &HttpRequest, answer: HttpResponse) -> Result<HttpResponse, Refused> {
    let Some(expected) = expected(request) else { return Ok(answer) };
    let (parts, body) = answer.into_parts();
    let is_empty = parts.status == StatusCode::NO_CONTENT
        || parts.headers.get(header::CONTENT_LENGTH).is_some_and(|nbytes| nbytes == "0");
    if expected == Expected::Anything && is_empty {
        return Ok(HttpResponse::from_parts(parts, body));
    }
    let mut bytes = Vec::new();
    let mut frames = body.bytes_stream();
    while let Some(frame) = frames.next().await {
        bytes.extend_from_slice(&frame.map_err(|error| {
            let (fault, failure) = broken(&error);
            // It is too long.
            Box::new((Some(fault).filter(|_| error.kind() != HttpErrorKind::Decode), failure))
        })?);
    }
    drop(frames);
    let text = String::from_utf8_lossy(&bytes);
    check(expected, parts.status, &text)?;
    let body = if expected == Expected::Document(DELETED) { deleted(&text)? } else { Bytes::from(bytes) };
    Ok(HttpResponse::from_parts(parts, body.into()))
}

const DELETED: &str = "DeleteResult";

fn expected(request: &HttpRequest) -> Option<Expected> {
    let query = request.uri().query().unwrap_or_default();
    let has =
        |wanted: &str| query.split('&').any(|pair| pair == wanted || pair.split('=').next() == Some(wanted));
    Some(match *request.method() {
        Method::GET if has("list-type") => Expected::Document("ListBucketResult"),
        Method::GET if has("comp=list") => Expected::Document("EnumerationResults"),
        Method::POST if has("delete") => Expected::Document(DELETED),
        Method::POST if has("uploads") => Expected::Document("InitiateMultipartUploadResult"),
        Method::POST if has("uploadId") => Expected::Document("CompleteMultipartUploadResult"),
        Method::PUT | Method::DELETE => Expected::Anything,
        _ => return None,
    })
}

fn check(expected: Expected, status: StatusCode, text: &str) -> Result<(), Refused> {
    let found = root(text);
    let is_page = found.is_some_and(|root| root.eq_ignore_ascii_case("html") || root.starts_with('!'));
    match (expected, found) {
        // Step 2.
        (_, Some("Error")) => {
            let mut failure = Failure::from_status(status.as_u16(), text);
            let fault = fault_of(failure.code.as_deref().unwrap_or_default());
            if failure.code.as_deref() == Some("AccessDenied") {
                failure.kind = io::ErrorKind::PermissionDenied;
            }
            Err(Box::new((fault, failure)))
        }
        (Expected::Document(wanted), Some(found)) if found == wanted => {
            if wanted == "ListBucketResult" && text.contains("<EncodingType>") {
                return Err(invalid("the server encoded the keys of a list, which was not requested"));
            }
            // Entries on later pages would be taken for missing.
            let is_cut = wanted == "ListBucketResult"
                && text.contains("<IsTruncated>true</IsTruncated>")
                && !text.contains("<NextContinuationToken>");
            if is_cut {
                Err(invalid("the server sent an incomplete list without a token for its next page"))
            } else {
                Ok(())
            }
        }
        (Expected::Anything, _) if !is_page => Ok(()),
        _ => {
            let found = match found {
                _ if is_page => "a web page".to_owned(),
                Some(found) => format!("a document <{found:.40}>"),
                None => "no document".to_owned(),
            };
            let wanted = match expected {
                Expected::Document(wanted) => format!("<{wanted}>"),
                Expected::Anything => "nothing".to_owned(),
            };
            Err(invalid(format!("the server answered {} with {found}, expected {wanted}", status.as_u16())))
        }
    }
}

/// Step 3. Returns an answer without failures; its keys do not matter.
fn deleted(text: &str) -> Result<Bytes, Refused> {
    for entry in text.split("<Error>").skip(1) {
        let entry = entry.split("</Error>").next().unwrap_or_default();
        let code = element(entry, "Code").unwrap_or_default();
        // The key was to be deleted anyway.
        if matches!(code.as_str(), "NoSuchKey" | "NoSuchVersion") {
            continue;
        }
        let key = element(entry, "Key").unwrap_or_default();
        let text = format!("the server did not delete {key:?}: {code}");
        let mut failure = Failure::new(io::ErrorKind::Other, text);
        if code == "AccessDenied" {
            failure.kind = io::ErrorKind::PermissionDenied;
        }
        let fault = fault_of(&code);
        failure.code = Some(code);
        return Err(Box::new((fault, failure)));
    }
    Ok(Bytes::from_static(b"<DeleteResult><Deleted><Key>-</Key></Deleted></DeleteResult>"))
}

/// Returns how an error of this code is tried again, if it may pass.
pub fn fault_of(code: &str) -> Option<Fault> {
    match code {
        "SlowDown" | "TooManyRequests" | "ServerBusy" => Some(Fault::Throttled(None)),
        "InternalError"
        | "OperationAborted"
        | "ConditionalRequestConflict"
        | "RequestTimeout"
        | "ServiceUnavailable" => Some(Fault::Server),
        _ => None,
    }
}

fn invalid(text: impl Into<String>) -> Refused {
    Box::new((None, Failure::new(io::ErrorKind::InvalidData, text)))
}

/// Returns the name of the first element, without its namespace, or the declaration of a web page.
fn root(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match () {
            () if rest.starts_with("<?") => "?>",
            () if rest.starts_with("<!--") => "-->",
            () => break,
        };
        rest = rest.split_once(end)?.1.trim_start();
    }
    let name = rest.strip_prefix('<')?.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next()?;
    name.rsplit(':').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_list(text: &str) -> Result<(), Refused> {
        check(Expected::Document("ListBucketResult"), StatusCode::OK, text)
    }

    #[test]
    fn a_list_is_a_list() {
        for text in [
            "<ListBucketResult/>",
            "\u{feff} <?xml version=\"1.0\"?>\n<!-- x --><s3:ListBucketResult xmlns:s3=\"y\"></s3:ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>",
        ] {
            assert!(check_list(text).is_ok(), "{text}");
        }
        for (text, message) in [
            ("", "no document"),
            ("{}", "no document"),
            ("<!DOCTYPE html><html></html>", "a web page"),
            ("<HTML><head>", "a web page"),
            ("<Other/>", "a document <Other>"),
            ("<ListBucketResult><IsTruncated>true</IsTruncated>", "an incomplete list"),
            ("<Error><Code>AccessDenied</Code></Error>", "200 AccessDenied"),
        ] {
            let (fault, failure) = *check_list(text).unwrap_err();
            assert!(fault.is_none() && failure.brief().contains(message), "{}", failure.brief());
        }
        let (fault, _) = *check_list("<Error><Code>InternalError</Code></Error>").unwrap_err();
        assert_eq!(fault, Some(Fault::Server));
    }

    #[test]
    fn a_change_has_an_answer_that_is_no_error() {
        let of = |text: &str| check(Expected::Anything, StatusCode::OK, text);
        assert!(of("").is_ok() && of("done").is_ok() && of("<CopyObjectResult/>").is_ok());
        assert!(of("<html>").is_err() && of("<?xml version=\"1.0\"?><Error/>").is_err());
    }

    #[test]
    fn keys_that_were_not_deleted_are_reported() {
        let none = "<DeleteResult><Error><Key>a</Key><Code>NoSuchKey</Code></Error></DeleteResult>";
        assert!(deleted(none).is_ok() && deleted("<DeleteResult/>").is_ok());
        let (fault, failure) =
            *deleted("<Error><Key>a%20b</Key><Code>AccessDenied</Code><Message>no</Message></Error>")
                .unwrap_err();
        assert_eq!((fault, failure.brief()), (None, "the server did not delete \"a%20b\": AccessDenied"));
    }
}
