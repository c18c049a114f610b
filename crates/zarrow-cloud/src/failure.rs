//! Why a request failed, and as which error a caller sees it.

use crate::secret::Secrets;
use std::io;
use std::time::Duration;
use zarrow::{Error, ErrorKind};

/// A request that failed. A server may repeat in its answer what it was sent, secrets included: of the answer only the code
/// and the message are kept.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: io::ErrorKind,
    pub status: Option<u16>,
    /// The server's own code, such as `NoSuchKey`.
    pub code: Option<String>,
    pub text: String,
    /// The size of the value, if the requested range lies beyond its end.
    pub nbytes: Option<u64>,
    /// Whether the server's certificate is not one that is trusted.
    pub is_certificate_refused: bool,
    /// Whether the request never left, since there was no connection.
    pub is_unsent: bool,
    /// The region that the bucket is in, where it is not the one that was asked.
    pub region: Option<String>,
    /// Whether the server asks for a longer pause than the policy allows.
    pub asks_too_long: bool,
}

impl Failure {
    pub fn new(kind: io::ErrorKind, text: impl Into<String>) -> Failure {
        let text = text.into();
        Failure {
            kind,
            status: None,
            code: None,
            text,
            nbytes: None,
            is_certificate_refused: false,
            is_unsent: false,
            region: None,
            asks_too_long: false,
        }
    }

    /// Notes that the server asks for a pause that is too long.
    pub fn asked_too_long(&mut self, asked: Duration, most: Duration) {
        let (asked, most) = (asked.as_secs(), most.as_secs_f64());
        self.text = format!(
            "{}: it asks for a pause of {asked} s, and max_retry_after allows {most} s in all",
            self.text
        );
        self.asks_too_long = true;
    }

    /// An answer whose status is an error.
    pub fn of_status(status: u16, body: &str) -> Failure {
        let code = element(body, "Code").or_else(|| json_string(body, "code"));
        let message = element(body, "Message").or_else(|| json_string(body, "message"));
        let kind = match status {
            401 | 403 => io::ErrorKind::PermissionDenied,
            404 | 410 => io::ErrorKind::NotFound,
            408 | 504 => io::ErrorKind::TimedOut,
            429 | 503 => io::ErrorKind::ResourceBusy,
            _ => io::ErrorKind::Other,
        };
        let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let mut text = format!("the server answered {status}");
        if let Some(word) = code.as_deref().or(reason) {
            text = format!("{text} {word}");
        }
        if let Some(message) = message {
            text = format!("{text}: {message}");
        }
        Failure { status: Some(status), code, ..Failure::new(kind, text) }
    }

    /// Whether the key has no value, so that its chunk is filled. A bucket that does not exist is an error instead.
    pub fn is_missing(&self) -> bool {
        let no_bucket = ["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"];
        matches!(self.status, Some(404 | 410))
            && !self.code.as_deref().is_some_and(|code| no_bucket.contains(&code))
            && !self.text.contains("bucket does not exist")
    }

    /// Whether the request certainly changed nothing: it never left, or the server refused it.
    pub fn is_refusal(&self) -> bool {
        let is_slow_down = self.code.as_deref() == Some("SlowDown");
        self.is_unsent
            || is_slow_down
            || self.status.is_some_and(|status| (400..500).contains(&status) && status != 408)
    }

    /// The error of a caller who reads, or of one who writes.
    pub fn into_error(self, writes: bool, anonymous: bool, secrets: &Secrets) -> Error {
        let hint = self.hint(anonymous);
        let text = if self.is_of_machine() { "no credentials were found" } else { &self.text };
        let error = io::Error::new(self.kind, secrets.hide(text));
        let kind = if writes { ErrorKind::Write(error) } else { ErrorKind::Io(error) };
        match hint {
            Some(hint) => Error::from(kind).with_hint(hint),
            None => kind.into(),
        }
    }

    fn hint(&self, anonymous: bool) -> Option<&'static str> {
        if self.is_certificate_refused {
            return Some(
                "where the server has an authority of its own, pass the file of its certificate: storage_options={\"verify\": \
                 \"authority.pem\"}, or SSL_CERT_FILE in the environment",
            );
        }
        if self.asks_too_long {
            return Some(
                "try again after that time, or let each request wait longer: storage_options={\"max_retry_after\": SECONDS}",
            );
        }
        match self.status {
            Some(401 | 403) if anonymous => Some(
                "without credentials a server does not tell what is missing from what is private: check the name, or \
                 pass credentials in storage_options",
            ),
            Some(401 | 403) => Some("the credentials may not do this: check them, and what they are allowed"),
            Some(400) if self.code.as_deref() == Some("ExpiredToken") => {
                Some("the credentials have expired: get new ones")
            }
            Some(429 | 503) => {
                Some("the server asks for fewer requests, and was given time: try again later")
            }
            None if self.is_of_machine() => Some(
                "storage_options, the environment and the profile have none, and this machine has none of its own: for \
                 public data pass storage_options={\"anon\": True}",
            ),
            _ => None,
        }
    }

    /// Whether it is the machine that was asked for credentials, and had none.
    fn is_of_machine(&self) -> bool {
        self.status.is_none()
            && (self.text.contains("169.254.169.254") || self.text.contains("metadata.google.internal"))
    }
}

/// The text of the first element of this name in an XML document.
fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    shown(text)
}

/// The first string of this name in a JSON document.
fn json_string(body: &str, name: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(body).ok()?;
    let inside = document.get("error").unwrap_or(&document);
    shown(inside.get(name)?.as_str()?)
}

/// The first line, cut where it is long.
fn shown(text: &str) -> Option<String> {
    const MOST_CHARS: usize = 200;
    let line: String = text.trim().lines().next()?.chars().take(MOST_CHARS).collect();
    (!line.is_empty()).then_some(line)
}

/// Returns an error and its causes, including the error inside an `io::Error`.
pub fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        // The source of an `io::Error` is the source of the error inside, not the error itself.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        held.map(|held| held as &(dyn std::error::Error + 'static)).or_else(|| error.source())
    })
}

/// The text of what caused an error first.
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    last.to_string()
}

/// The texts of an error and of what caused it, without those that the outer ones repeat.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let own = inner.to_string();
        if !text.contains(&own) {
            text = format!("{text}: {own}");
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_body_only_code_and_message_are_kept() {
        let body = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>It differs.</Message>\
                    <AWSAccessKeyId>AKID</AWSAccessKeyId><StringToSign>secret</StringToSign></Error>";
        let failure = Failure::of_status(403, body);
        assert_eq!(failure.text, "the server answered 403 SignatureDoesNotMatch: It differs.");
        let error = failure.into_error(false, false, &Secrets::default());
        assert_eq!(error.kind().code(), "permission");
        assert!(!Failure::of_status(404, "<Code>NoSuchBucket</Code>").is_missing());
        assert!(Failure::of_status(404, "").is_missing());
        assert_eq!(Failure::of_status(404, "").text, "the server answered 404 Not Found");
        let google = Failure::of_status(403, r#"{"error": {"code": 403, "message": "no access"}}"#);
        assert_eq!(google.text, "the server answered 403 Forbidden: no access");
    }

    #[test]
    fn what_is_private_is_never_missing() {
        let failure = Failure::of_status(403, "<Code>AccessDenied</Code><Message>Access Denied</Message>");
        assert!(!failure.is_missing());
        let text = failure.into_error(false, true, &Secrets::default()).to_string();
        assert!(text.contains("missing from what is private"), "{text}");
    }
}
