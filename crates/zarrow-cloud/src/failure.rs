//! Why a request failed, and the error that its caller gets.

use crate::secret::Secrets;
use std::io;
use std::time::Duration;
use zarrow::{Error, ErrorKind, visible};

/// A request that failed. A server may repeat the request in its answer, secrets included, so only the code and the
/// message of the answer are kept.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: io::ErrorKind,
    pub status: Option<u16>,
    /// The server's own code, such as `NoSuchKey`.
    pub code: Option<String>,
    text: String,
    /// The server's own message.
    message: Option<String>,
    /// The size of the value, if the requested range is beyond its end.
    pub nbytes: Option<u64>,
    /// What a caller can do, if the cause of a failed connection suggests something.
    pub advice: Option<&'static str>,
    /// Whether the request was never sent, because there was no connection.
    pub is_unsent: bool,
    /// The bucket's region, if it is not the requested one.
    pub region: Option<String>,
    /// The pause that the server asks for, and the longest allowed one, if shorter.
    refused_pause: Option<(Duration, Duration)>,
}

impl Failure {
    pub fn new(kind: io::ErrorKind, text: impl Into<String>) -> Failure {
        let text = text.into();
        Failure {
            kind,
            status: None,
            code: None,
            text,
            message: None,
            nbytes: None,
            advice: None,
            is_unsent: false,
            region: None,
            refused_pause: None,
        }
    }

    /// Adds the proxy that the request went through.
    pub fn went_through(&mut self, proxy: &str) {
        self.text = format!("{} (through the proxy {proxy})", self.text);
    }

    /// Notes that the server asks for too long a pause.
    pub fn pause_too_long(&mut self, pause: Duration, most: Duration) {
        self.refused_pause = Some((pause, most));
    }

    /// Failure of an answer with an error status.
    pub fn from_status(status: u16, body: &str) -> Failure {
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
        Failure { status: Some(status), code, message, ..Failure::new(kind, text) }
    }

    /// Whether the key has no value, so that its chunk is filled. A bucket that does not exist is an error instead.
    pub fn is_missing(&self) -> bool {
        let no_bucket = ["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"];
        matches!(self.status, Some(404 | 410))
            && !self.code.as_deref().is_some_and(|code| no_bucket.contains(&code))
            && !self.message.as_ref().is_some_and(|text| text.contains("bucket does not exist"))
    }

    /// Whether the request certainly changed nothing: it was never sent, or the server refused it. An answer 503 may be
    /// a gateway's, although the server behind it applied the request.
    pub fn is_refusal(&self) -> bool {
        let is_refused = |status| (400..500).contains(&status) && status != 408;
        self.is_unsent
            || self.code.as_deref() != Some("RequestTimeout") && self.status.is_some_and(is_refused)
    }

    /// Hides secrets of the request that the server's message repeats.
    pub fn hide(&mut self, secrets: &Secrets) {
        self.message = self.message.take().map(|message| secrets.hide(&message));
    }

    /// Returns the text without the server's message.
    pub fn brief(&self) -> &str {
        &self.text
    }

    /// Returns the text for a message, without secrets.
    pub fn shown(&self, secrets: &Secrets) -> String {
        if self.is_of_machine() {
            return "no credentials were found".to_owned();
        }
        let mut shown = secrets.hide(&self.text);
        if let Some(message) = &self.message {
            // A secret must be hidden before the text is cut, or it would not be found.
            shown = format!("{shown}: {}", first_line(&secrets.hide(message)));
        }
        if let Some((pause, most)) = self.refused_pause {
            let (pause, most) = (pause.as_secs(), most.as_secs_f64());
            shown = format!(
                "{shown}: the requested pause of {pause} s exceeds max_retry_after, {most} s in total"
            );
        }
        shown
    }

    /// Returns the error for a reading or a writing caller.
    pub fn into_error(self, writes: bool, anonymous: bool, secrets: &Secrets) -> Error {
        let hint = self.hint(anonymous);
        let error = io::Error::new(self.kind, self.shown(secrets));
        let kind = if writes { ErrorKind::Write(error) } else { ErrorKind::Io(error) };
        match hint {
            Some(hint) => Error::from(kind).with_hint(hint),
            None => kind.into(),
        }
    }

    fn hint(&self, anonymous: bool) -> Option<&'static str> {
        if self.advice.is_some() {
            return self.advice;
        }
        if self.refused_pause.is_some() {
            return Some(
                "try again after that time, or let each request wait longer: \
                 storage_options={\"max_retry_after\": SECONDS}",
            );
        }
        match self.status {
            Some(401 | 403) if anonymous => Some(
                "without credentials, a server answers alike for missing and for private data: check the name, or \
                 pass credentials in storage_options",
            ),
            Some(401 | 403) => {
                Some("the credentials do not permit this request: check them and their policy")
            }
            Some(400) if self.code.as_deref() == Some("ExpiredToken") => {
                Some("the credentials have expired: get new ones")
            }
            Some(429 | 503) => Some("the server still limits requests after several pauses: try again later"),
            None if self.kind == io::ErrorKind::TimedOut && self.text.contains("the server was silent") => {
                Some("if it is only slow, allow more time: storage_options={\"read_timeout\": 60}")
            }
            None if self.is_of_machine() => Some(
                "there are none in storage_options, in the environment, in the profile, or from this machine's metadata \
                 service: pass credentials in storage_options, or {\"anon\": True} for public data",
            ),
            _ => None,
        }
    }

    /// Whether the failed request asked this machine for credentials, and it had none.
    fn is_of_machine(&self) -> bool {
        self.status.is_none()
            && (self.text.contains("169.254.169.254") || self.text.contains("metadata.google.internal"))
    }
}

/// The text of the first element of this name in an XML document.
pub fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    own_words(text)
}

/// The first string of this name in a JSON document.
fn json_string(body: &str, name: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_str(body).ok()?;
    let inside = document.get("error").unwrap_or(&document);
    own_words(inside.get(name)?.as_str()?)
}

fn own_words(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the first line, at most 200 characters, with control characters escaped.
fn first_line(text: &str) -> String {
    const MOST_CHARS: usize = 200;
    let line: String = text.lines().next().unwrap_or_default().chars().take(MOST_CHARS).collect();
    visible(&line).to_string()
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

/// Returns the text of an error's first cause.
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    last.to_string()
}

/// Returns the texts of an error and its causes, without the causes that an outer text repeats.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = without_time(error.to_string());
    let mut source = error.source();
    while let Some(inner) = source {
        let own = without_time(inner.to_string());
        if !text.contains(&own) {
            text = format!("{text}: {own}");
        }
        source = inner.source();
    }
    text
}

/// Shortens the client's `Error performing GET URL in 431µs - cause` to `GET URL: cause`.
fn without_time(text: String) -> String {
    let request = text.strip_prefix("Error performing ").and_then(|rest| rest.split_once(" in "));
    match request.and_then(|(request, rest)| Some((request, rest.split_once(" - ")?.1))) {
        Some((request, cause)) => format!("{request}: {cause}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_times_are_left_out() {
        let short = |text: &str| without_time(text.to_owned());
        assert_eq!(
            short("Error performing POST http://h/b in 431.2µs - it broke"),
            "POST http://h/b: it broke"
        );
        let repeated =
            "Error performing GET http://h/b in 2s, after 3 retries, max_retries: 3  - no - answer";
        assert_eq!(short(repeated), "GET http://h/b: no - answer");
        assert_eq!(short("Error performing nothing"), "Error performing nothing");
    }

    #[test]
    fn only_code_and_message_of_a_body_are_kept() {
        let body = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>It differs.</Message>\
                    <AWSAccessKeyId>AKID</AWSAccessKeyId><StringToSign>secret</StringToSign></Error>";
        let failure = Failure::from_status(403, body);
        let none = Secrets::default();
        assert_eq!(failure.shown(&none), "the server answered 403 SignatureDoesNotMatch: It differs.");
        let error = failure.into_error(false, false, &Secrets::default());
        assert_eq!(error.kind().code(), "permission");
        assert!(!Failure::from_status(404, "<Code>NoSuchBucket</Code>").is_missing());
        assert!(Failure::from_status(404, "").is_missing());
        assert_eq!(Failure::from_status(404, "").shown(&none), "the server answered 404 Not Found");
        let google = Failure::from_status(403, r#"{"error": {"code": 403, "message": "no access"}}"#);
        assert_eq!(google.shown(&none), "the server answered 403 Forbidden: no access");
    }

    #[test]
    fn a_secret_in_a_long_message_is_hidden_before_the_message_is_cut() {
        let mut secrets = Secrets::default();
        secrets.add("very-secret-indeed");
        let text = format!("{}very-secret-indeed\u{1b}[2J", "x".repeat(190));
        let shown = Failure::from_status(403, &format!("<Message>{text}</Message>")).shown(&secrets);
        assert!(shown.ends_with("x***\\x1b[2J") || !shown.contains("very"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn private_data_is_never_missing() {
        let failure = Failure::from_status(403, "<Code>AccessDenied</Code><Message>Access Denied</Message>");
        assert!(!failure.is_missing());
        let text = failure.into_error(false, true, &Secrets::default()).to_string();
        assert!(text.contains("for missing and for private data"), "{text}");
    }

    #[test]
    fn the_error_of_a_silent_server_names_read_timeout() {
        let failure = Failure::new(io::ErrorKind::TimedOut, "host: the server was silent for 5s");
        let error = failure.into_error(false, false, &Secrets::default());
        assert!(error.hint().is_some_and(|hint| hint.contains("read_timeout")));
    }
}
