//! Locations of stores, parsed from URLs.

use crate::secret::{redact, without_secrets};
use percent_encoding::percent_decode_str;
use url::Url;
use zarrow::{ErrorKind, Result};

/// The schemes, and their services.
const SCHEMES: [(&str, Scheme); 11] = [
    ("s3", Scheme::S3),
    ("s3a", Scheme::S3),
    ("gs", Scheme::Gcs),
    ("gcs", Scheme::Gcs),
    ("az", Scheme::Azure),
    ("azure", Scheme::Azure),
    ("abfs", Scheme::Azure),
    ("abfss", Scheme::Azure),
    ("adl", Scheme::Azure),
    ("http", Scheme::Http),
    ("https", Scheme::Http),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    S3,
    Gcs,
    Azure,
    Http,
}

/// Whether a text is the URL of a store that this crate opens, by its scheme.
///
/// ```
/// assert!(zarrow_cloud::is_cloud_url("s3://bucket/data.zarr"));
/// assert!(!zarrow_cloud::is_cloud_url("/data/s3://bucket"));
/// ```
#[must_use]
pub fn is_cloud_url(text: &str) -> bool {
    split(text).is_some()
}

fn split(text: &str) -> Option<(Scheme, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let (_, kind) = SCHEMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme))?;
    Some((*kind, rest))
}

/// A service, and the bucket, container or server with the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Service {
    /// A bucket of S3.
    S3 {
        /// The bucket.
        bucket: String,
    },
    /// A bucket of Google Cloud Storage.
    Gcs {
        /// The bucket.
        bucket: String,
    },
    /// A container of Azure Blob Storage.
    Azure {
        /// The container.
        container: String,
        /// The account, if the URL names it.
        account: Option<String>,
    },
    /// A web server, by the URL of the store's root, with its query, without user and password.
    Http {
        /// The URL.
        url: Url,
        /// User and password, if the URL has them.
        login: Option<(String, String)>,
    },
}

/// The location of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The service.
    pub service: Service,
    /// The path of the store's root in the bucket, without slashes at its ends; `""` for a web server.
    pub root: String,
    /// The URL without secrets.
    pub name: String,
}

impl Location {
    /// Parses a URL. Paths in buckets are not decoded, as in other libraries: `%20` is three characters there.
    pub fn parse(text: &str) -> Result<Location> {
        let Some((scheme, rest)) = split(text) else {
            let schemes = SCHEMES.map(|(name, _)| format!("{name}://")).join(", ");
            return Err(unsupported(format!(
                "expected the URL of a cloud store, beginning with one of {schemes}"
            )));
        };
        if scheme == Scheme::Http {
            return Location::http(text);
        }
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (bucket, account) = match bucket.split_once('@') {
            Some((container, host)) if scheme == Scheme::Azure => {
                (container, Some(host.split('.').next().unwrap_or(host).to_owned()))
            }
            _ => (bucket, None),
        };
        let is_name = |name: &str| {
            let is_valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && name.chars().all(is_valid)
        };
        if !is_name(bucket) || account.as_deref().is_some_and(|account| !is_name(account)) {
            let scheme = text.split("://").next().unwrap_or_default();
            let what = if scheme == "s3" { "bucket" } else { "bucket or container" };
            return Err(unsupported(format!(
                "the URL has no valid name of a {what}: expected {scheme}://BUCKET/PATH"
            )));
        }
        let root = zarrow::store::normalize_path(path)?;
        let name = text.split_once("://").map_or(text, |(scheme, _)| scheme).to_ascii_lowercase();
        let host = if account.is_some() { rest.split('/').next().unwrap_or(bucket) } else { bucket };
        let slash = if root.is_empty() { "" } else { "/" };
        // A `?` is a character of a key, but the rest may be a signature.
        let shown = root.split_once('?').map_or(root.clone(), |(root, _)| format!("{root}?***"));
        let name = format!("{name}://{host}{slash}{shown}");
        let bucket = bucket.to_owned();
        let service = match scheme {
            Scheme::S3 => Service::S3 { bucket },
            Scheme::Gcs => Service::Gcs { bucket },
            _ => Service::Azure { container: bucket, account },
        };
        Ok(Location { service, root, name })
    }

    fn http(text: &str) -> Result<Location> {
        // A text that cannot be parsed may hold a password, and is not shown.
        let mut url = Url::parse(text)
            .map_err(|error| unsupported(format!("the URL of the store is invalid: {error}")))?;
        let login = (!url.username().is_empty() || url.password().is_some()).then(|| {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            (decoded(url.username()), decoded(url.password().unwrap_or_default()))
        });
        let name = without_secrets(&url);
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
        }
        let name = name.trim_end_matches('/').to_owned();
        Ok(Location { service: Service::Http { url, login }, root: String::new(), name })
    }

    /// The name of the service in messages.
    pub fn service_name(&self) -> &'static str {
        match self.service {
            Service::S3 { .. } => "S3",
            Service::Gcs { .. } => "Google Cloud Storage",
            Service::Azure { .. } => "Azure Blob Storage",
            Service::Http { .. } => "HTTP",
        }
    }
}

/// An error of a URL or an option.
pub fn unsupported(text: impl AsRef<str>) -> zarrow::Error {
    ErrorKind::Unsupported(redact(text.as_ref())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_every_service() {
        let of = |text: &str| Location::parse(text).unwrap();
        let s3 = of("s3://bucket/a/b%20c/");
        assert_eq!((s3.root.as_str(), s3.name.as_str()), ("a/b%20c", "s3://bucket/a/b%20c"));
        assert_eq!(of("gs://bucket/a?X-Goog-Signature=hush").name, "gs://bucket/a?***");
        assert_eq!(of("S3A://b").service, Service::S3 { bucket: "b".into() });
        assert_eq!(of("gcs://b/x").service, Service::Gcs { bucket: "b".into() });
        let azure = of("abfss://files@account.dfs.core.windows.net/a/b");
        let expected = Service::Azure { container: "files".into(), account: Some("account".into()) };
        assert_eq!((azure.service, azure.root.as_str()), (expected, "a/b"));
        assert_eq!(azure.name, "abfss://files@account.dfs.core.windows.net/a/b");
        assert_eq!(of("az://files/a").service, Service::Azure { container: "files".into(), account: None });
        let http = of("https://me:p%40w@host/data.zarr/?sig=secret#x");
        assert_eq!(http.name, "https://host/data.zarr");
        let Service::Http { url, login } = http.service else { panic!("it is a web server") };
        assert_eq!(url.as_str(), "https://host/data.zarr?sig=secret");
        assert_eq!(login, Some(("me".into(), "p@w".into())));
    }

    #[test]
    fn what_is_no_url_of_a_store() {
        for text in [
            "", "data.zarr", "ftp://host/a", "s3://", "s3:///a", "s3://key:secret@bucket/a", "http://",
            "s3://b/a//b",
        ] {
            let error = Location::parse(text).unwrap_err();
            assert!(matches!(error.kind().code(), "unsupported" | "bad_key"), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
        assert!(Location::parse("s3://bucket/../a").is_err());
    }
}
