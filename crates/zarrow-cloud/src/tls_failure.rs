//! Explains connections that TLS refuses: the certificate of the server, the version of TLS, a certificate of the client.

use crate::failure::causes;
use rustls::{AlertDescription, CertificateError, PeerIncompatible};
use std::error::Error;

const OWN_AUTHORITY: &str = "if the server has its own authority, pass the file of its certificate: \
    storage_options={\"verify\": \"authority.pem\"}, or SSL_CERT_FILE in the environment";

const EXPIRED: &str = "the certificate must be renewed on the server, unless this machine's clock is wrong";

const NOT_YET_VALID: &str = "check this machine's clock, and the certificate of the server";

const OTHER_NAME: &str = "check the host in the URL or the endpoint: the certificate is for other names";

const OLD_TLS: &str = "TLS 1.2 or 1.3 must be enabled on the server";

const CLIENT_CERTIFICATE: &str =
    "certificates of clients are not supported: reach the server through a proxy that has one";

/// Why TLS refused a connection, which a retry does not change.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsFailure {
    pub text: String,
    pub advice: &'static str,
}

impl TlsFailure {
    /// Returns the failure of TLS among the causes of an error.
    pub fn from_error(error: &(dyn Error + 'static)) -> Option<TlsFailure> {
        causes(error).find_map(|error| error.downcast_ref()).and_then(TlsFailure::from_rustls)
    }

    fn from_rustls(error: &rustls::Error) -> Option<TlsFailure> {
        let (text, advice) = match error {
            rustls::Error::InvalidCertificate(refused) => certificate_refused(refused),
            rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
            | rustls::Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            ) => (Some("the server speaks only versions of TLS before 1.2"), OLD_TLS),
            rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
                (Some("the server requires a certificate of the client"), CLIENT_CERTIFICATE)
            }
            _ => return None,
        };
        Some(TlsFailure { text: text.map_or_else(|| error.to_string(), str::to_owned), advice })
    }
}

/// Returns the text in place of the debug form of rustls, and the advice.
fn certificate_refused(refused: &CertificateError) -> (Option<&'static str>, &'static str) {
    match refused {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (None, EXPIRED),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (None, NOT_YET_VALID),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            (None, OTHER_NAME)
        }
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            (Some("no trusted authority signed the certificate of the server"), OWN_AUTHORITY)
        }
        _ => (None, OWN_AUTHORITY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(error: rustls::Error) -> TlsFailure {
        TlsFailure::from_error(&std::io::Error::other(error)).unwrap()
    }

    #[test]
    fn each_refusal_has_its_own_advice() {
        let refused = |error| failure(rustls::Error::InvalidCertificate(error)).advice;
        assert_eq!(refused(CertificateError::UnknownIssuer), OWN_AUTHORITY);
        assert_eq!(refused(CertificateError::Expired), EXPIRED);
        assert_eq!(refused(CertificateError::NotValidYet), NOT_YET_VALID);
        assert_eq!(refused(CertificateError::NotValidForName), OTHER_NAME);
        let alert = |alert| failure(rustls::Error::AlertReceived(alert)).advice;
        assert_eq!(alert(AlertDescription::ProtocolVersion), OLD_TLS);
        assert_eq!(alert(AlertDescription::CertificateRequired), CLIENT_CERTIFICATE);
    }

    #[test]
    fn a_passing_failure_is_none() {
        let error = std::io::Error::other(rustls::Error::AlertReceived(AlertDescription::InternalError));
        assert_eq!(TlsFailure::from_error(&error), None);
        assert_eq!(TlsFailure::from_error(&std::io::Error::other("tls handshake eof")), None);
    }
}
