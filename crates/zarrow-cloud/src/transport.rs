//! Sends requests and receives answers, below `object_store`, which makes and signs the requests.
//!
//! 1. A request waits for a permit of its host. A late read is sent again (`hedge`) if a permit is free.
//! 2. The head of an answer must arrive in time; for its body see `answer_body`.
//! 3. A redirect of a read is followed, but never from TLS to plain text. Another host gets only headers that describe
//!    the requested data, and none that identify the caller.
//! 4. A fault is tried again (`retry`). The last one is noted in the request's [`Attempts`], because `object_store`
//!    keeps no header of it; its body is not passed on.
//! 5. A full answer to a range request is cut to the range, unless too much of it would be skipped.
//! 6. Answers to lists and changes are checked before `object_store` sees them (`answer_document`).
//! 7. Compressed bytes are requested of no server. A server that sends them all the same in place of a range is refused:
//!    its bytes have other positions.

use crate::answer_body::{AnswerBody, silent};
use crate::answer_document::{self, Refused, fault_of};
use crate::body_range::BodyRange;
use crate::cancelled_changes::attempts_of_task;
use crate::diagnosis::{Proxy, answer_diagnosis, connection_failure};
use crate::failure::Failure;
use crate::hedge::race;
use crate::http_call::call;
use crate::http_date::{seconds_of_date, seconds_of_now};
use crate::list_body::{is_list, without_foreign_keys};
use crate::process::{Host, Process, THREADS, thread_number};
use crate::range_header::{RangeHeader, partial_nbytes, partial_range, unsatisfied_nbytes};
use crate::request_limit::Permit;
use crate::retry::{Attempts, Fault, retry_after};
use crate::secret::Secrets;
use crate::time_outs_and_retries::TransportPolicy;
use crate::tls_failure::TlsFailure;
use crate::trusted_certificates::TrustedCertificates;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderValue};
use http::uri::InvalidUri;
use http::{Method, StatusCode, Uri};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;
use zarrow_array::fork::OnceCell;

/// The most bytes to skip of an answer that has more than the requested range.
const MOST_SKIPPED_NBYTES: u64 = 8 << 20;

/// The most bytes to read of an error's body.
const ERROR_BODY_NBYTES: usize = 64 << 10;

/// Time limit for reading an error's body.
const ERROR_BODY_TIME: Duration = Duration::from_secs(1);

const MOST_REDIRECTS: usize = 10;

/// The credentials service of a machine in the cloud answers at once or is unreachable, which is remembered for a
/// while.
const MACHINE_PATIENCE: Duration = Duration::from_secs(1);

/// Headers that describe the requested data, and do not identify the caller.
const HARMLESS: [header::HeaderName; 5] =
    [header::RANGE, header::IF_MATCH, header::IF_NONE_MATCH, header::ACCEPT, header::USER_AGENT];

/// Marks the answer of a server that does not send the size of a value.
#[derive(Debug, Clone, Copy)]
pub struct UnknownSize;

/// Marks a request that streams its answer to a receiver, which limits the size itself.
#[derive(Debug, Clone, Copy)]
pub struct Streamed;

/// Sends the requests of one store.
#[derive(Debug, Clone)]
pub struct Transport(Arc<Clients>);

#[derive(Debug)]
struct Clients {
    process: &'static Process,
    /// The client of the first thread, and of each later one, made by that thread's first request.
    client: reqwest::Client,
    other_clients: [OnceCell<reqwest::Client>; THREADS - 1],
    trust: TrustedCertificates,
    policy: TransportPolicy,
    /// Headers for this host alone.
    headers: HeaderMap,
    origin: Option<Url>,
    /// Whether the server is an object store, not a plain web server.
    is_service: bool,
}

impl Transport {
    pub fn new(
        process: &'static Process,
        client: reqwest::Client,
        trust: TrustedCertificates,
        policy: TransportPolicy,
        headers: HeaderMap,
        origin: Option<Url>,
        is_service: bool,
    ) -> Transport {
        let other_clients = Default::default();
        Transport(Arc::new(Clients {
            process,
            client,
            other_clients,
            trust,
            policy,
            headers,
            origin,
            is_service,
        }))
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Transport {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(self.0.send(request))
    }
}

impl Clients {
    /// Returns this thread's client.
    fn client(&self) -> &reqwest::Client {
        let Some(own) = thread_number().checked_sub(1).and_then(|other| self.other_clients.get(other)) else {
            return &self.client;
        };
        own.get_or_make(|| {
            self.process.client(&self.policy, &self.trust).unwrap_or_else(|_| self.client.clone())
        })
    }

    /// Step 4.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let attempts = match request.extensions().get::<Arc<Attempts>>() {
            Some(attempts) => Arc::clone(attempts),
            None => attempts_of_task().unwrap_or_else(|| Arc::new(Attempts::new(self.policy))),
        };
        attempts.send();
        loop {
            let (fault, failure, answer) = match self.follow(&request, &attempts).await {
                Ok(answer) if is_answer(&request, answer.status()) => {
                    match self.checked(&request, answer).await {
                        Ok(answer) => {
                            // An earlier failure no longer matters to the caller.
                            attempts.take_failure();
                            return self.fit(&request, answer, &attempts).await;
                        }
                        Err(refused) => {
                            let (fault, failure) = *refused;
                            let error = invalid(failure.brief());
                            (fault, failure, Err(error))
                        }
                    }
                }
                Ok(answer) => self.failed(&request, answer).await,
                Err(failed) => {
                    let (uri, error) = *failed;
                    let failure = connection_failure(&uri, &error);
                    (is_worth_a_retry(&error).then_some(Fault::Connection), failure, Err(error))
                }
            };
            let Some(fault) = fault.filter(|_| !is_of_this_machine(&request)) else {
                attempts.fail(failure);
                return answer;
            };
            match attempts.again(fault, failure) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return answer,
            }
        }
    }

    /// Step 6.
    async fn checked(&self, request: &HttpRequest, answer: HttpResponse) -> Result<HttpResponse, Refused> {
        check_length(request, &answer)?;
        if !self.is_service || is_of_this_machine(request) {
            return Ok(answer);
        }
        let header = |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if is_read(request)
            && header(header::ETAG).is_none()
            && header(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html"))
        {
            let text = "the server answered with a web page, expected a value or a list";
            return Err(Box::new((None, Failure::new(io::ErrorKind::InvalidData, text))));
        }
        answer_document::checked(request, answer).await
    }

    /// Converts an unsuccessful answer to a failure. Reads its body, so that the connection can be used again.
    async fn failed(
        &self,
        request: &HttpRequest,
        answer: HttpResponse,
    ) -> (Option<Fault>, Failure, Result<HttpResponse, HttpError>) {
        let uri = request.uri();
        let (parts, body) = answer.into_parts();
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let body = read_some(body, ERROR_BODY_NBYTES).await;
        let status = parts.status.as_u16();
        let body = String::from_utf8_lossy(&body);
        let mut failure = Failure::from_status(status, &body);
        let mut sent = Secrets::default();
        for name in [header::AUTHORIZATION, header::PROXY_AUTHORIZATION] {
            let values = request.headers().get_all(&name).iter().chain(self.headers.get_all(&name));
            values.filter_map(|value| value.to_str().ok()).for_each(|value| sent.add_authorization(value));
        }
        failure.hide(&sent);
        failure.advice = answer_diagnosis(uri, status, &body);
        if let Some(proxy) = Proxy::from_uri(uri).filter(|_| matches!(status, 407 | 502..=504)) {
            failure.went_through(&proxy.to_string());
        }
        failure.nbytes = text("content-range").and_then(unsatisfied_nbytes);
        failure.region = text("x-amz-bucket-region").map(str::to_owned);
        let fault = match status {
            429 | 503 => {
                // Compared with the server's own clock if it sends one.
                let now = text("date").and_then(seconds_of_date).unwrap_or_else(seconds_of_now);
                Some(Fault::Throttled(text("retry-after").and_then(|text| retry_after(text, now))))
            }
            408 | 500 | 502 | 504 => Some(Fault::Server),
            _ => failure.code.as_deref().and_then(fault_of),
        };
        (fault, failure, Ok(HttpResponse::from_parts(parts, Vec::new().into())))
    }

    /// Step 3.
    async fn follow(&self, request: &HttpRequest, attempts: &Attempts) -> Result<HttpResponse, FailedAt> {
        let is_read = is_read(request);
        // Copied only if something changes.
        let mut request = Cow::Borrowed(request);
        // An anonymous put of Google's client has the header without a token.
        if request
            .headers()
            .get(header::AUTHORIZATION)
            .is_some_and(|value| value.as_bytes().trim_ascii() == b"Bearer")
        {
            request.to_mut().headers_mut().remove(header::AUTHORIZATION);
        }
        if !self.headers.is_empty() && self.is_own(&request) {
            request.to_mut().headers_mut().extend(self.headers.clone());
        }
        for _ in 0..MOST_REDIRECTS {
            let at = |error: HttpError, request: &HttpRequest| Box::new((request.uri().clone(), error));
            let answer = self.late(&request, attempts).await.map_err(|error| at(error, &request))?;
            let place = answer.headers().get(header::LOCATION).and_then(|place| place.to_str().ok());
            let (Some(place), true, true) = (place, answer.status().is_redirection(), is_read) else {
                return Ok(answer);
            };
            let parsed = Url::parse(&request.uri().to_string()).map_err(invalid);
            let from = parsed.map_err(|error| at(error, &request))?;
            let to = from.join(place).map_err(|error| at(invalid(error), &request))?;
            if !matches!(to.scheme(), "https" | "http") || from.scheme() == "https" && to.scheme() == "http" {
                let (from, to) = (from.scheme(), to.scheme());
                let text =
                    format!("the server redirects from {from} to {to:.20}, which zarrow does not follow");
                return Err(at(invalid(text), &request));
            }
            let uri = to.as_str().parse().map_err(|error: InvalidUri| at(invalid(error), &request))?;
            let request = request.to_mut();
            *request.uri_mut() = uri;
            if from.origin() != to.origin() {
                let all = std::mem::take(request.headers_mut());
                let kept =
                    HARMLESS.into_iter().filter_map(|name| Some((name.clone(), all.get(name)?.clone())));
                request.headers_mut().extend(kept);
            }
        }
        Err(Box::new((request.uri().clone(), invalid("the server redirects in a circle"))))
    }

    fn is_own(&self, request: &HttpRequest) -> bool {
        let port = |scheme: &str| if scheme == "https" { 443 } else { 80 };
        let uri = request.uri();
        self.origin.as_ref().is_some_and(|origin| {
            uri.scheme_str() == Some(origin.scheme())
                && uri.host() == origin.host_str()
                && uri.port_u16().unwrap_or_else(|| port(origin.scheme()))
                    == origin.port().unwrap_or_else(|| port(origin.scheme()))
        })
    }

    /// Step 1.
    async fn late(&self, request: &HttpRequest, attempts: &Attempts) -> Result<HttpResponse, HttpError> {
        let authority = request.uri().authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let host = self.process.host(authority);
        let permit = host.request_limit.acquire().await;
        let times = attempts.patience();
        if !is_read(request) {
            if !attempts.begin_change() {
                return Err(invalid("the caller stopped waiting"));
            }
            let answer = self.once(&host, request, permit, times).await;
            attempts.end_change();
            return answer;
        }
        if !self.policy.hedging {
            return self.once(&host, request, permit, times).await;
        }
        let again =
            || host.request_limit.try_acquire().map(|permit| self.once(&host, request, permit, times));
        race(&host.first_bytes, self.once(&host, request, permit, times), again).await
    }

    /// Step 2. The time limit for the head is `times` the policy's.
    async fn once(
        &self,
        host: &Host,
        request: &HttpRequest,
        permit: Permit,
        times: u32,
    ) -> Result<HttpResponse, HttpError> {
        let begun = Instant::now();
        let is_machine = is_of_this_machine(request);
        if is_machine && host.is_known_gone() {
            return Err(silent(MACHINE_PATIENCE));
        }
        let patience = if is_machine {
            MACHINE_PATIENCE
        } else {
            self.policy
                .patience(is_read(request), request.body().content_length() as u64)
                .saturating_mul(if is_read(request) { times } else { 1 })
        };
        let answer = match tokio::time::timeout(patience, call(self.client(), request)).await {
            Ok(answer) => answer,
            Err(_) => Err(silent(patience)),
        };
        if is_machine && answer.is_err() {
            host.is_gone();
        }
        let answer = answer.inspect_err(|_| host.request_limit.failed())?;
        match answer.status() {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                host.request_limit.throttled(Instant::now());
            }
            _ => host.request_limit.answered(begun.elapsed()),
        }
        if is_read(request) {
            host.first_bytes.record(begun.elapsed());
        }
        let is_streamed = request.extensions().get::<Streamed>().is_some();
        Ok(answer.map(|body| HttpResponseBody::new(AnswerBody::new(body, self.policy, is_streamed, permit))))
    }

    /// Step 5, and headers that `object_store` needs but a server may omit.
    async fn fit(
        &self,
        request: &HttpRequest,
        answer: HttpResponse,
        attempts: &Attempts,
    ) -> Result<HttpResponse, HttpError> {
        if !is_read(request) {
            return Ok(answer);
        }
        let (mut parts, mut body) = answer.into_parts();
        if request.uri().query().is_some_and(is_list) {
            // `AnswerBody` ends a page that is too long.
            if let Some(page) = read_whole(body, u64::MAX).await? {
                let page = without_foreign_keys(page);
                parts.headers.insert(header::CONTENT_LENGTH, page.len().into());
                return Ok(HttpResponse::from_parts(parts, page.into()));
            }
            return Err(invalid("a list without an end"));
        }
        // The time of the last write is not used, and servers write dates in many ways.
        if parts.headers.get(header::LAST_MODIFIED).is_some_and(|value| !is_date(value)) {
            parts.headers.remove(header::LAST_MODIFIED);
        }
        let nbytes = parts.headers.get(header::CONTENT_LENGTH);
        let nbytes: Option<u64> = nbytes.and_then(|value| value.to_str().ok()?.parse().ok());
        let requested =
            request.headers().get(header::RANGE).and_then(|value| RangeHeader::parse(value.to_str().ok()?));
        match (requested, nbytes) {
            (Some(requested), Some(nbytes)) if parts.status == StatusCode::OK => {
                let Some(range) = requested.of(nbytes) else {
                    return Ok(unsatisfied(parts, nbytes, attempts));
                };
                if range.start > MOST_SKIPPED_NBYTES {
                    return Err(no_ranges(attempts));
                }
                set_range(&mut parts, &range, nbytes)?;
                body = HttpResponseBody::new(BodyRange::new(body, &range));
            }
            // The size of the value shows only at its end.
            (Some(requested), None) if parts.status == StatusCode::OK => {
                let Some(all) = read_whole(body, 2 * MOST_SKIPPED_NBYTES).await? else {
                    return Err(no_ranges(attempts));
                };
                let nbytes = all.len() as u64;
                let Some(range) = requested.of(nbytes) else {
                    return Ok(unsatisfied(parts, nbytes, attempts));
                };
                set_range(&mut parts, &range, nbytes)?;
                // Both ends are within the bytes.
                body = all.slice(range.start as usize..range.end as usize).into();
            }
            // Sent in pieces, or until the connection closes.
            (Some(_), None) if parts.status == StatusCode::PARTIAL_CONTENT => {
                let answered = parts.headers.get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
                if let Some(length) = answered.and_then(partial_nbytes) {
                    parts.headers.insert(header::CONTENT_LENGTH, length.into());
                }
            }
            (None, None) => {
                parts.headers.insert(header::CONTENT_LENGTH, 0_u64.into());
                parts.extensions.insert(UnknownSize);
            }
            _ => {}
        }
        // The announced range is compared here, because the errors of `object_store` name its own types.
        if let Some(requested) = requested.filter(|_| parts.status == StatusCode::PARTIAL_CONTENT) {
            let answered = parts.headers.get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
            if !answered
                .and_then(partial_range)
                .is_some_and(|(range, nbytes)| requested.is_met_by(&range, nbytes))
            {
                let (answered, requested) = (answered.unwrap_or("no range"), requested.to_string());
                return Err(invalid(format!(
                    "the request was for {requested}, but the server answered with {answered:.100}"
                )));
            }
        }
        Ok(HttpResponse::from_parts(parts, body))
    }
}

/// A failed request, and the URL that it was last sent to.
type FailedAt = Box<(Uri, HttpError)>;

/// Step 7. Another attempt may be answered by another server.
fn check_length(request: &HttpRequest, answer: &HttpResponse) -> Result<(), Refused> {
    if !is_read(request) {
        return Ok(());
    }
    let text = |name: header::HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let coding =
        [header::CONTENT_ENCODING, header::TRANSFER_ENCODING].into_iter().filter_map(text).find(|coding| {
            let mut codings = coding.split(',').map(str::trim);
            codings.any(|coding| !["", "identity", "chunked", "aws-chunked"].contains(&coding))
        });
    let nbytes: Option<u64> = text(header::CONTENT_LENGTH).and_then(|nbytes| nbytes.parse().ok());
    let announced = text(header::CONTENT_RANGE).and_then(partial_nbytes);
    let is_partial = answer.status() == StatusCode::PARTIAL_CONTENT;
    let is_other = is_partial && nbytes.zip(announced).is_some_and(|(nbytes, announced)| nbytes != announced);
    let is_compressed =
        coding.is_some() && (is_partial || text(header::TRANSFER_ENCODING).is_some()) && nbytes.is_none();
    if is_other || is_compressed {
        let how = coding.map_or_else(String::new, |coding| format!(", compressed by {coding:.40}"));
        let text = format!("the server sent other bytes than the requested ones{how}");
        return Err(Box::new((Some(Fault::Server), Failure::new(io::ErrorKind::InvalidData, text))));
    }
    Ok(())
}

/// Rewrites the head of an answer as that of a byte range.
fn set_range(parts: &mut http::response::Parts, range: &Range<u64>, nbytes: u64) -> Result<(), HttpError> {
    let answered = format!("bytes {}-{}/{nbytes}", range.start, range.end - 1);
    parts.status = StatusCode::PARTIAL_CONTENT;
    parts.headers.insert(header::CONTENT_RANGE, HeaderValue::try_from(answered).map_err(invalid)?);
    parts.headers.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
    Ok(())
}

/// Returns the answer to a range that starts beyond the end of the value.
fn unsatisfied(mut parts: http::response::Parts, nbytes: u64, attempts: &Attempts) -> HttpResponse {
    let mut failure = Failure::from_status(416, "");
    failure.nbytes = Some(nbytes);
    attempts.fail(failure);
    parts.status = StatusCode::RANGE_NOT_SATISFIABLE;
    HttpResponse::from_parts(parts, Vec::new().into())
}

/// Reads a whole body; returns `None` if it is longer than `most`.
async fn read_whole(body: HttpResponseBody, most: u64) -> Result<Option<Bytes>, HttpError> {
    let mut read = BytesMut::new();
    let mut frames = body.bytes_stream();
    while let Some(frame) = frames.next().await {
        let frame = frame?;
        if (read.len() + frame.len()) as u64 > most {
            return Ok(None);
        }
        read.extend_from_slice(&frame);
    }
    Ok(Some(read.freeze()))
}

/// Whether an answer with this status has the requested data. No read sends a condition that 304 answers, and 204 has
/// no bytes.
fn is_answer(request: &HttpRequest, status: StatusCode) -> bool {
    match *request.method() {
        Method::GET => matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT),
        Method::HEAD => status.is_success(),
        _ => status.is_success() || status == StatusCode::NOT_MODIFIED,
    }
}

fn is_read(request: &HttpRequest) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// Whether a request goes to the credentials service of a machine in the cloud.
fn is_of_this_machine(request: &HttpRequest) -> bool {
    matches!(request.uri().host(), Some("169.254.169.254" | "169.254.170.2" | "metadata.google.internal"))
}

fn is_date(value: &HeaderValue) -> bool {
    // As `Sun, 06 Nov 1994 08:49:37 GMT`.
    value.to_str().is_ok_and(|text| text.len() == 29 && text.ends_with("GMT"))
}

/// Reads the first bytes of an error's body, if they come soon. The status already reports the failure.
async fn read_some(body: HttpResponseBody, most: usize) -> Vec<u8> {
    let mut read = Vec::new();
    let mut frames = body.bytes_stream();
    let all = async {
        while read.len() < most
            && let Some(Ok(frame)) = frames.next().await
        {
            read.extend_from_slice(&frame[..frame.len().min(most - read.len())]);
        }
    };
    let _ = tokio::time::timeout(ERROR_BODY_TIME, all).await;
    read
}

/// Failure of an answer or a URL that makes no sense; it is not tried again.
fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> HttpError {
    HttpError::new_boxed(HttpErrorKind::Decode, error.into())
}

fn no_ranges(attempts: &Attempts) -> HttpError {
    let text = "the server does not support range requests";
    attempts.fail(Failure::new(io::ErrorKind::Unsupported, text));
    invalid(text)
}

fn is_worth_a_retry(error: &HttpError) -> bool {
    error.kind() != HttpErrorKind::Decode && TlsFailure::from_error(error).is_none()
}
