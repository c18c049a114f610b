//! Sends one request of `object_store` by `reqwest`.

use crate::borrowed_payload::BorrowedPayload;
use object_store::client::{HttpError, HttpErrorKind, HttpRequest};
use url::Url;

const IDENTITY: http::HeaderValue = http::HeaderValue::from_static("identity");

/// Sends a request, with its borrowed body if it has one.
pub async fn call(
    client: &reqwest::Client,
    request: &HttpRequest,
) -> Result<http::Response<reqwest::Body>, HttpError> {
    let url = Url::parse(&request.uri().to_string())
        .map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
    let mut own = reqwest::Request::new(request.method().clone(), url);
    *own.headers_mut() = request.headers().clone();
    if *request.method() == http::Method::GET {
        // The stored bytes, and no compressed form of them.
        own.headers_mut().entry(http::header::ACCEPT_ENCODING).or_insert(IDENTITY);
    }
    *own.body_mut() = Some(match request.extensions().get::<BorrowedPayload>() {
        Some(borrowed) => reqwest::Body::wrap(borrowed.body()),
        None => match request.body().as_bytes() {
            Some(bytes) => bytes.clone().into(),
            None => reqwest::Body::wrap(request.body().clone()),
        },
    });
    client.execute(own).await.map(Into::into).map_err(failed)
}

/// Converts an error. The URL is left out, because it may contain secrets.
pub fn failed(error: reqwest::Error) -> HttpError {
    let kind = match () {
        () if error.is_timeout() => HttpErrorKind::Timeout,
        () if error.is_connect() => HttpErrorKind::Connect,
        () if error.is_decode() => HttpErrorKind::Decode,
        () if error.is_request() => HttpErrorKind::Request,
        () if error.is_body() => HttpErrorKind::Interrupted,
        () => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error.without_url())
}
