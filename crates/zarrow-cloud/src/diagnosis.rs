//! Explains missing answers, and names what to change: the address, https or http, a proxy, a certificate.

use crate::failure::{Failure, causes, innermost};
use crate::tls_failure::TlsFailure;
use http::Uri;
use object_store::client::{HttpError, HttpErrorKind};
use std::fmt;
use std::io;

const PLAIN_SERVER: &str =
    "the server may not speak TLS on this port: write http:// for https:// in the URL or the endpoint";

const TLS_SERVER: &str =
    "the server may expect TLS on this port: write https:// for http:// in the URL or the endpoint";

const NO_LISTENER: &str = "no server listens on this port: check host and port in the URL or the endpoint";

const NO_HOST: &str = "the host's name is unknown: check it in the URL or the endpoint, and the network";

const NO_PROXY: &str = "check the proxy, or name this host in NO_PROXY";

/// Returns the failure of a request without an answer.
pub fn connection_failure(uri: &Uri, error: &HttpError) -> Failure {
    let kind = io_kind(error);
    let refused = TlsFailure::from_error(error);
    let text = refused.as_ref().map_or_else(|| innermost(error), |refused| refused.text.clone());
    let mut failure = Failure::new(kind, format!("{}: {text}", address(uri)));
    failure.is_unsent = error.kind() == HttpErrorKind::Connect;
    let is_tls = uri.scheme_str() == Some("https");
    failure.advice = if let Some(refused) = refused {
        Some(refused.advice)
    } else if is_tls && causes(error).any(is_without_tls) {
        Some(PLAIN_SERVER)
    } else if let Some(proxy) = Proxy::from_uri(uri) {
        failure.went_through(&proxy.to_string());
        Some(NO_PROXY)
    } else if kind == io::ErrorKind::ConnectionRefused {
        Some(NO_LISTENER)
    } else if causes(error).any(is_unknown_host) {
        Some(NO_HOST)
    } else if !is_tls && causes(error).any(is_no_http) {
        Some(TLS_SERVER)
    } else {
        None
    };
    failure
}

/// Returns the hint for an answer that is a connection error.
pub fn answer_diagnosis(uri: &Uri, status: u16, body: &str) -> Option<&'static str> {
    let is_of_tls_port = status == 400
        && uri.scheme_str() == Some("http")
        && body.to_ascii_lowercase().contains("http request")
        && body.to_ascii_lowercase().contains("https");
    is_of_tls_port.then_some(TLS_SERVER)
}

/// The host and the port of a request.
fn address(uri: &Uri) -> String {
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    format!("{}:{port}", uri.host().unwrap_or_default())
}

fn is_without_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(rustls::Error::InvalidMessage(_)))
        || error.to_string() == "tls handshake eof"
}

fn is_unknown_host(error: &(dyn std::error::Error + 'static)) -> bool {
    // The resolver's error type is private, so its text is compared.
    error.to_string().starts_with("failed to lookup address")
}

/// Whether an answer was not HTTP: the alert of a TLS server. A closed connection says nothing of TLS.
fn is_no_http(error: &(dyn std::error::Error + 'static)) -> bool {
    let text = error.to_string();
    ["invalid HTTP version", "invalid HTTP status"].iter().any(|start| text.starts_with(start))
}

/// Returns the kind of the system's error, if any.
fn io_kind(error: &HttpError) -> io::ErrorKind {
    if error.kind() == HttpErrorKind::Timeout {
        return io::ErrorKind::TimedOut;
    }
    let own = causes(error).filter_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind);
    own.into_iter().find(|kind| *kind != io::ErrorKind::Other).unwrap_or(match error.kind() {
        HttpErrorKind::Connect => io::ErrorKind::NotConnected,
        HttpErrorKind::Request | HttpErrorKind::Interrupted => io::ErrorKind::ConnectionReset,
        HttpErrorKind::Decode => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    })
}

/// Returns the environment's proxy for a host.
#[derive(Debug, PartialEq, Eq)]
pub struct Proxy {
    variable: String,
    url: String,
}

impl Proxy {
    pub fn from_uri(uri: &Uri) -> Option<Proxy> {
        Proxy::from_environment(uri, |name| std::env::var(name).ok())
    }

    fn from_environment(uri: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<Proxy> {
        let either = |name: &str| {
            [name.to_ascii_lowercase(), name.to_owned()].into_iter().find_map(|name| {
                let url = variable(&name).filter(|url| !url.is_empty())?;
                Some(Proxy { variable: name, url })
            })
        };
        let host = uri.host()?.trim_matches(['[', ']']);
        let is_excepted = either("NO_PROXY").is_some_and(|list| {
            list.url.split(',').map(|name| name.trim().trim_start_matches('.')).any(|name| {
                name == "*"
                    || !name.is_empty()
                        && host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            })
        });
        let own = if uri.scheme_str() == Some("https") { "HTTPS_PROXY" } else { "HTTP_PROXY" };
        either(own).or_else(|| either("ALL_PROXY")).filter(|_| !is_excepted)
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} that {} names", self.url, self.variable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_of_a_host_is_named() {
        let proxy = |url: &str| {
            Proxy::from_environment(&url.parse().unwrap(), |name| match name {
                "https_proxy" => Some("http://me:pw@proxy:3128".to_owned()),
                "ALL_PROXY" => Some("http://other:1".to_owned()),
                "NO_PROXY" => Some("localhost, .own.org,127.0.0.1".to_owned()),
                _ => None,
            })
        };
        assert_eq!(
            proxy("https://bucket.org/a").unwrap().to_string(),
            "http://me:pw@proxy:3128 that https_proxy names"
        );
        assert_eq!(proxy("http://bucket.org/a").unwrap().variable, "ALL_PROXY");
        for url in
            ["http://localhost:9000/", "https://a.own.org/", "https://own.org/", "http://127.0.0.1:80/"]
        {
            assert_eq!(proxy(url), None, "{url}");
        }
        assert!(proxy("https://notown.org/").is_some());
    }
}
