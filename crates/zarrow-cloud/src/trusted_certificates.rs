//! The certificates that a TLS connection accepts.
//!
//! As in requests and botocore, a file replaces the system's authorities: only the file's authorities are trusted.
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` say where the system's authorities are, as for other libraries.

use crate::location::unsupported;
use reqwest::{Certificate, ClientBuilder};
use std::fmt;
use std::sync::Arc;
use zarrow::Result;

/// The accepted certificates.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum TrustedCertificates {
    /// Certificates signed by the system's authorities.
    #[default]
    System,
    /// Certificates signed by the authorities of a file, given by its text.
    Only(Arc<[u8]>),
    /// Any certificate: servers are not authenticated.
    Anyone,
}

impl TrustedCertificates {
    /// Parses the option: `true`, `false`, or the path of a file of certificates.
    ///
    /// # Errors
    /// [`Unsupported`](zarrow::ErrorKind::Unsupported) if the file cannot be read, or has no certificate.
    pub fn parse(text: &str) -> Result<TrustedCertificates> {
        match text {
            "true" => Ok(TrustedCertificates::System),
            "false" => Ok(TrustedCertificates::Anyone),
            path => TrustedCertificates::from_file(path),
        }
    }

    /// Trusts only the authorities of a file.
    pub fn from_file(path: &str) -> Result<TrustedCertificates> {
        let wrong = |why: &str| {
            unsupported(format!(
                "the file of certificates {path:?} {why}: expected authorities in the format PEM"
            ))
        };
        let text = std::fs::read(path).map_err(|error| wrong(&format!("cannot be read ({error})")))?;
        match Certificate::from_pem_bundle(&text) {
            Ok(found) if !found.is_empty() => Ok(TrustedCertificates::Only(text.into())),
            _ => Err(wrong("has no certificate")),
        }
    }

    /// Configures a client with this trust.
    ///
    /// # Errors
    /// If a certificate cannot be parsed.
    pub fn apply(&self, client: ClientBuilder) -> reqwest::Result<ClientBuilder> {
        Ok(match self {
            TrustedCertificates::System => client,
            TrustedCertificates::Only(text) => client.tls_certs_only(Certificate::from_pem_bundle(text)?),
            TrustedCertificates::Anyone => client.tls_danger_accept_invalid_certs(true),
        })
    }
}

impl fmt::Debug for TrustedCertificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            TrustedCertificates::System => "System",
            TrustedCertificates::Only(_) => "Only",
            TrustedCertificates::Anyone => "Anyone",
        })
    }
}
