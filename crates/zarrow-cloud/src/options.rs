//! `storage_options`: the words of fsspec's file systems and of `object_store`, as settings of a store.
//!
//! 1. Options win over the environment, and the environment over an AWS profile.
//! 2. Secrets are noted from every source, so that no message shows them.
//! 3. An unknown word is an error that lists the known ones: an ignored setting is worse than none.

use crate::credentials::aws_profile;
use crate::location::{Location, Service, unsupported};
use crate::secret::{Secrets, is_secret_name};
use crate::time_outs_and_retries::TransportPolicy;
use crate::trusted_certificates::TrustedCertificates;
use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderMap, HeaderName, HeaderValue};
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use zarrow::{ErrorKind, Result};

/// Names of the S3 endpoint option.
const ENDPOINTS: [&str; 5] =
    ["aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint"];

/// Options that contain other options.
const TABLES: [&str; 5] = ["client_kwargs", "config_kwargs", "s3", "retries", "s3_additional_kwargs"];

/// Options of fsspec for things that this engine does by itself.
const WITHOUT_EFFECT: [&str; 30] = [
    "asynchronous", "loop", "batch_size", "block_size", "default_block_size", "default_fill_cache",
    "default_cache_type", "cache_type", "cache_options", "cache_regions", "cache_timeout",
    "skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths", "max_concurrency",
    "max_pool_connections", "mode", "parameter_validation", "tcp_keepalive", "user_agent",
    "user_agent_extra", "fixed_upload_size", "version_aware", "use_ssl", "simple_links", "consistency",
    "access", "allow_http", "aws_allow_http",
];

/// Options of `object_store` for its own HTTP client, which this engine does not use. Each would be ignored.
const OF_PROXIES: [&str; 3] = ["proxy_url", "proxy_ca_certificate", "proxy_excludes"];

/// A caller's settings of a store besides its URL: credentials, endpoint, region, headers, time-outs.
///
/// The words are fsspec's `storage_options` (`anon`, `key`, `secret`, `token`, `endpoint_url`, `client_kwargs`,
/// `profile`, `requester_pays`, `account_name`, `account_key`, `sas_token`, `connection_string`, `headers`, …) and the
/// settings of `object_store` (`aws_access_key_id`, `skip_signature`, …). The debug view shows names alone.
#[derive(Clone, Default, PartialEq)]
pub struct StorageOptions(Map<String, Value>);

impl StorageOptions {
    /// Parses the options from a JSON object.
    ///
    /// # Errors
    /// [`Unsupported`](zarrow::ErrorKind::Unsupported) if the text is not a JSON object.
    pub fn from_json(text: &str) -> Result<StorageOptions> {
        match serde_json::from_str(text) {
            Ok(Value::Object(options)) => Ok(StorageOptions(options)),
            _ => Err(unsupported("expected storage options as a JSON object of names and values")),
        }
    }

    /// Returns the options as a JSON object, secrets included, for another process to open the same store.
    #[must_use]
    pub fn to_json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }
}

impl fmt::Debug for StorageOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.keys()).finish()
    }
}

/// The combined settings of options, environment and profile.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Settings of `object_store`, by its names.
    pub config: BTreeMap<String, String>,
    /// Headers for requests to the store's own host.
    pub headers: HeaderMap,
    /// Time-outs and retries.
    pub policy: TransportPolicy,
    /// Which certificates are accepted.
    pub trust: TrustedCertificates,
    /// Whether requests go without a signature.
    pub anonymous: bool,
    /// Secrets, which must not be shown.
    pub secrets: Secrets,
}

impl Settings {
    /// Combines the settings of a store at `location`.
    pub fn new(location: &Location, options: &StorageOptions) -> Result<Settings> {
        let mut settings = Settings {
            config: BTreeMap::new(),
            headers: HeaderMap::new(),
            policy: TransportPolicy::default(),
            trust: TrustedCertificates::default(),
            anonymous: false,
            secrets: Secrets::default(),
        };
        settings.take_all(location, options).map_err(|error| match error.kind() {
            ErrorKind::Unsupported(text) => unsupported(settings.secrets.hide(text)),
            _ => error,
        })?;
        let flag = |name: &str| settings.config.get(name).is_some_and(|value| value == "true");
        settings.anonymous |= flag("skip_signature");
        if settings.anonymous {
            settings.set("skip_signature", "true");
        }
        Ok(settings)
    }

    fn take_all(&mut self, location: &Location, options: &StorageOptions) -> Result<()> {
        let mut profile = None;
        for (name, value) in &options.0 {
            self.take(location, name, value, &mut profile)?;
        }
        self.take_location(location)?;
        self.take_environment(location, profile)?;
        self.check_credentials()?;
        self.check_endpoints()
    }

    fn set(&mut self, name: &str, value: &str) {
        if is_secret_name(name) {
            self.secrets.add(value);
        }
        self.secrets.add_login(value);
        self.config.insert(name.to_owned(), value.to_owned());
    }

    fn header(&mut self, name: &str, value: &str) -> Result<()> {
        let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
        let (Ok(key), Ok(mut text)) = parsed else {
            return Err(unsupported(format!("the header {name:?} of the storage options is invalid")));
        };
        text.set_sensitive(true);
        self.secrets.add(value);
        self.headers.insert(key, text);
        Ok(())
    }

    /// Applies one option.
    fn take(
        &mut self,
        location: &Location,
        name: &str,
        value: &Value,
        profile: &mut Option<String>,
    ) -> Result<()> {
        let wrong = || unsupported(format!("the storage option {name:?} has a value of the wrong type"));
        let text = match value {
            Value::Null => return self.check_known(location, name),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) => Some(text.clone()),
            Value::Array(_) | Value::Object(_) => None,
        };
        if let (None, Value::Object(table)) = (&text, value) {
            return match (name, &location.service) {
                (name, _) if TABLES.contains(&name) => {
                    table.iter().try_for_each(|(name, value)| self.take(location, name, value, profile))
                }
                ("headers", Service::Http { .. } | Service::Gcs { .. }) => table
                    .iter()
                    .try_for_each(|(name, value)| self.header(name, value.as_str().ok_or_else(wrong)?)),
                ("token", Service::Gcs { .. }) => {
                    self.set("google_service_account_key", &value.to_string());
                    if let Some(url) = table.get("gcs_base_url").and_then(Value::as_str) {
                        self.config.entry("google_base_url".to_owned()).or_insert_with(|| url.to_owned());
                    }
                    Ok(())
                }
                _ if WITHOUT_EFFECT.contains(&name) => Ok(()),
                _ => self.check_known(location, name).and_then(|()| Err(wrong())),
            };
        }
        let text = text.ok_or_else(wrong)?;
        let seconds = || {
            let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            seconds.filter(|time| !time.is_zero()).ok_or_else(wrong)
        };
        match (name, &location.service) {
            ("anon", Service::Azure { .. } | Service::S3 { .. } | Service::Gcs { .. }) => {
                self.anonymous = text == "true";
            }
            ("verify" | "ssl", _) => self.trust = TrustedCertificates::parse(&text)?,
            ("allow_invalid_certificates", _) => {
                self.trust = TrustedCertificates::parse(if text == "true" { "false" } else { "true" })?;
            }
            (name, _) if OF_PROXIES.contains(&name) => {
                return Err(unsupported(format!(
                    "the storage option {name:?} is not supported: name the proxy by HTTPS_PROXY, and hosts without one by \
                     NO_PROXY, in the environment"
                )));
            }
            ("connect_timeout", _) => self.policy.connect = seconds()?,
            ("read_timeout", _) => self.policy.silence = seconds()?,
            ("low_speed_limit", _) => self.policy.low_speed = text.parse().map_err(|_| wrong())?,
            ("low_speed_time", _) => self.policy.low_speed_time = seconds()?,
            ("max_retry_after", _) => self.policy.max_retry_after = seconds()?,
            ("max_listed", _) => self.policy.listed_names = text.parse().map_err(|_| wrong())?,
            ("max_attempts" | "max_retries", _) => {
                self.policy.retries = text.parse().map_err(|_| wrong())?;
                self.policy.throttled_retries = self.policy.retries;
            }
            ("profile" | "profile_name", Service::S3 { .. }) => *profile = Some(text),
            ("key" | "username", Service::S3 { .. }) => self.set("aws_access_key_id", &text),
            ("secret" | "password", Service::S3 { .. }) => self.set("aws_secret_access_key", &text),
            ("region_name", Service::S3 { .. }) => self.set("aws_region", &text),
            ("requester_pays" | "RequestPayer", Service::S3 { .. }) => {
                self.set("aws_request_payer", if text == "requester" { "true" } else { &text });
            }
            ("ServerSideEncryption", Service::S3 { .. }) => self.set("aws_server_side_encryption", &text),
            ("SSEKMSKeyId", Service::S3 { .. }) => self.set("aws_sse_kms_key_id", &text),
            ("addressing_style", Service::S3 { .. }) => {
                self.set(
                    "aws_virtual_hosted_style_request",
                    if text == "virtual" { "true" } else { "false" },
                );
            }
            ("signature_version", Service::S3 { .. }) => {}
            ("token", Service::Gcs { .. }) => self.gcs_token(location, &text, profile)?,
            ("endpoint_url", Service::Gcs { .. }) => self.set("google_base_url", &text),
            ("requester_pays", Service::Gcs { .. }) => self.header("x-goog-user-project", &text)?,
            ("project", Service::Gcs { .. }) => {}
            ("account_key" | "credential", Service::Azure { .. }) => {
                self.set("azure_storage_account_key", &text)
            }
            ("tenant_id", Service::Azure { .. }) => self.set("azure_storage_tenant_id", &text),
            ("connection_string", Service::Azure { .. }) => self.connection_string(&text)?,
            ("endpoint_url" | "account_host", Service::Azure { .. }) => {
                let scheme = if text.contains("://") { "" } else { "https://" };
                self.set("azure_storage_endpoint", &format!("{scheme}{text}"));
            }
            _ if WITHOUT_EFFECT.contains(&name) => {}
            _ if is_config(&location.service, name) => self.set(&name.to_ascii_lowercase(), &text),
            _ => return Err(unknown(location, name)),
        }
        Ok(())
    }

    /// Refuses an unknown option, for any value.
    fn check_known(&self, location: &Location, name: &str) -> Result<()> {
        let is_table = TABLES.contains(&name)
            || (name == "headers" && matches!(location.service, Service::Http { .. } | Service::Gcs { .. }));
        if is_table || WITHOUT_EFFECT.contains(&name) {
            return Ok(());
        }
        let message = unknown(location, name).to_string();
        match self.clone().take(location, name, &Value::from("true"), &mut None) {
            Err(error) if error.to_string() == message => Err(error),
            _ => Ok(()),
        }
    }

    /// A token in gcsfs's forms: a word, the contents or the path of a key file, an access token.
    fn gcs_token(&mut self, location: &Location, text: &str, profile: &mut Option<String>) -> Result<()> {
        match text.trim() {
            "anon" => self.anonymous = true,
            "google_default" | "cloud" | "cache" => {}
            token if token.starts_with("ya29.") => self.set("google_bearer_token", token),
            table if table.starts_with('{') => {
                self.secrets.add(table);
                let table = serde_json::from_str(table).map_err(|error| {
                    unsupported(format!("the storage option \"token\" is no valid JSON of a key: {error}"))
                })?;
                return self.take(location, "token", &table, profile);
            }
            path if std::fs::exists(path).unwrap_or(false) => {
                self.set("google_application_credentials", path)
            }
            path => {
                // If it is not a file, the text may be a secret.
                let shown = if path.ends_with(".json") { format!(" {path:?}") } else { String::new() };
                return Err(unsupported(format!(
                    "the storage option \"token\" names a file{shown} that does not exist: expected \"anon\", \"google_default\", \
                     the path or the contents of a key file, or an access token (ya29.…)"
                )));
            }
        }
        Ok(())
    }

    /// Parses `AccountName=…;AccountKey=…` and so on.
    fn connection_string(&mut self, text: &str) -> Result<()> {
        self.secrets.add(text);
        let (mut protocol, mut suffix, mut account) = ("https", "core.windows.net", None);
        let mut endpoint = None;
        for part in text.split(';').filter(|part| !part.trim().is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(unsupported("the connection string of the storage options is invalid"));
            };
            match name.trim() {
                "AccountName" => {
                    account = Some(value);
                    self.set("azure_storage_account_name", value);
                }
                "AccountKey" => self.set("azure_storage_account_key", value),
                "SharedAccessSignature" => self.set("azure_storage_sas_token", value),
                "BlobEndpoint" => endpoint = Some(value.to_owned()),
                "DefaultEndpointsProtocol" => protocol = value,
                "EndpointSuffix" => suffix = value,
                "UseDevelopmentStorage" if value == "true" => self.set("azure_storage_use_emulator", "true"),
                _ => {}
            }
        }
        let own = account.map(|account| format!("{protocol}://{account}.blob.{suffix}"));
        if let Some(endpoint) = endpoint.or_else(|| own.filter(|_| suffix != "core.windows.net")) {
            self.set("azure_storage_endpoint", &endpoint);
        }
        Ok(())
    }

    /// Applies the settings in the URL itself.
    fn take_location(&mut self, location: &Location) -> Result<()> {
        match &location.service {
            Service::Azure { account: Some(account), .. } => self.set("azure_storage_account_name", account),
            Service::Http { url, login } => {
                for (_, value) in url.query_pairs() {
                    self.secrets.add(&value);
                }
                if let Some(query) = url.query() {
                    self.secrets.add(query);
                }
                if let Some((user, password)) = login {
                    self.secrets.add(password);
                    self.header(
                        "authorization",
                        &format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))),
                    )?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Steps 1 and 2, for settings without an option.
    fn take_environment(&mut self, location: &Location, profile: Option<String>) -> Result<()> {
        let prefix = match location.service {
            Service::S3 { .. } => "AWS_",
            Service::Gcs { .. } => "GOOGLE_",
            Service::Azure { .. } => "AZURE_",
            Service::Http { .. } => return Ok(()),
        };
        let is_s3 = matches!(location.service, Service::S3 { .. });
        if matches!(location.service, Service::Gcs { .. })
            && !["google_base_url", "base_url"].iter().any(|name| self.config.contains_key(*name))
            && let Ok(place) = std::env::var("STORAGE_EMULATOR_HOST")
        {
            let scheme = if place.contains("://") { "" } else { "http://" };
            self.set("google_base_url", &format!("{scheme}{}", place.trim_end_matches('/')));
        }
        if is_s3
            && self.trust == TrustedCertificates::System
            && let Ok(path) = std::env::var("AWS_CA_BUNDLE")
        {
            self.trust = TrustedCertificates::from_file(&path)?;
        }
        // A token goes with its own key, so keys are never mixed from the options and the environment.
        let key = |settings: &Settings| settings.config.contains_key("aws_access_key_id");
        let (has_key, from_profile) = (key(self), profile.is_some());
        let has_endpoint = ENDPOINTS.iter().any(|name| self.config.contains_key(*name));
        let named_profile = profile.or_else(|| std::env::var("AWS_PROFILE").ok());
        for (name, value) in std::env::vars_os() {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            let config = name.to_ascii_lowercase();
            let is_key =
                matches!(&*config, "aws_access_key_id" | "aws_secret_access_key" | "aws_session_token");
            if !name.starts_with(prefix)
                || value.is_empty()
                || is_key && (has_key || from_profile)
                || self.config.contains_key(&config)
                || has_endpoint && config.starts_with("aws_endpoint")
                || !is_config(&location.service, &config)
            {
                continue;
            }
            self.set(&config, value);
        }
        if is_s3 && !key(self) && !self.anonymous {
            let name = named_profile.as_deref().unwrap_or("default");
            match aws_profile(name)? {
                Some(found) => {
                    for (name, value) in &found {
                        if !self.config.contains_key(name) {
                            self.set(name, value);
                        }
                    }
                }
                None if named_profile.is_some() => {
                    return Err(unsupported(format!(
                        "there is no AWS profile {name:?} in ~/.aws/config and ~/.aws/credentials"
                    )));
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Whether `object_store` has a setting of this name for the service, not for its HTTP client.
fn is_config(service: &Service, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    match service {
        Service::S3 { .. } => name.parse().is_ok_and(|key| !matches!(key, AmazonS3ConfigKey::Client(_))),
        Service::Gcs { .. } => name.parse().is_ok_and(|key| !matches!(key, GoogleConfigKey::Client(_))),
        Service::Azure { .. } => name.parse().is_ok_and(|key| !matches!(key, AzureConfigKey::Client(_))),
        Service::Http { .. } => false,
    }
}

fn unknown(location: &Location, name: &str) -> zarrow::Error {
    let own = match location.service {
        Service::S3 { .. } => {
            "anon, key, secret, token, profile, endpoint_url, region, requester_pays, client_kwargs, config_kwargs, \
             s3_additional_kwargs"
        }
        Service::Gcs { .. } => {
            "token (\"anon\" or the path of a key file), project, endpoint_url, requester_pays"
        }
        Service::Azure { .. } => {
            "account_name, account_key, sas_token, connection_string, anon, tenant_id, client_id, client_secret"
        }
        Service::Http { .. } => "headers, client_kwargs={\"headers\": …}",
    };
    let service = location.service_name();
    unsupported(format!(
        "unknown storage option {name:?}: {service} takes {own}, and for all stores connect_timeout, read_timeout, \
         low_speed_limit, low_speed_time, max_retries, max_retry_after, max_listed and verify"
    ))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn settings(url: &str, options: &str) -> Result<Settings> {
        Settings::new(&Location::parse(url)?, &StorageOptions::from_json(options)?)
    }

    #[test]
    fn words_of_fsspec_become_settings() {
        let options = r#"{"key": "AKID", "secret": "hush-hush", "token": null, "client_kwargs": {"endpoint_url":
            "http://localhost:5000", "region_name": "eu-west-1", "verify": false}, "requester_pays": true,
            "default_block_size": 5, "config_kwargs": {"read_timeout": 7.5, "retries": {"max_attempts": 2}}}"#;
        let found = settings("s3://bucket/a", options).unwrap();
        assert_eq!(found.config["aws_access_key_id"], "AKID");
        assert_eq!(found.config["endpoint_url"], "http://localhost:5000");
        assert_eq!(found.config["aws_region"], "eu-west-1");
        assert_eq!(found.config["aws_request_payer"], "true");
        assert_eq!((found.trust, found.policy.retries), (TrustedCertificates::Anyone, 2));
        assert_eq!(found.policy.silence, Duration::from_millis(7500));
        assert_eq!(found.secrets.hide("AKID:hush-hush"), "***:***");
        let azure = "AccountName=me;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:10000/me";
        let found = settings("az://files", &format!(r#"{{"connection_string": "{azure}"}}"#)).unwrap();
        assert_eq!(found.config["azure_storage_account_name"], "me");
        assert_eq!(found.config["azure_storage_endpoint"], "http://127.0.0.1:10000/me");
        let found = settings("s3://bucket", r#"{"allow_http": true, "allow_invalid_certificates": true}"#);
        assert_eq!(found.unwrap().trust, TrustedCertificates::Anyone);
        assert!(settings("gs://bucket", r#"{"token": "anon"}"#).unwrap().anonymous);
        let http = settings("https://me:word@host/?sig=1234", r#"{"headers": {"X-Key": "abcd"}}"#).unwrap();
        assert_eq!(http.headers["authorization"], "Basic bWU6d29yZA==");
        assert_eq!(http.secrets.hide("word 1234 abcd"), "*** *** ***");
    }

    #[test]
    fn tokens_of_google_are_words_keys_and_access_tokens() {
        let found = settings("gs://bucket", r#"{"token": "ya29.hush"}"#).unwrap();
        assert_eq!(found.config["google_bearer_token"], "ya29.hush");
        let key = r#"{"type": "service_account", "private_key": "hush", "gcs_base_url": "http://here"}"#;
        let options = serde_json::json!({ "token": key }).to_string();
        let found = settings("gs://bucket", &options).unwrap();
        assert_eq!(found.config["google_base_url"], "http://here");
        assert_eq!(found.secrets.hide("no hush, service_account"), "no ***, service_account");
        let error = settings("gs://bucket", r#"{"token": "/no/key.json"}"#).unwrap_err();
        assert!(error.to_string().contains("\"/no/key.json\" that does not exist"), "{error}");
    }

    #[test]
    fn unknown_words_and_wrong_types_are_errors_without_values() {
        for (url, options) in [
            ("s3://bucket", r#"{"secert": "hush-hush"}"#),
            ("s3://bucket", r#"{"key": ["hush-hush"]}"#),
            ("s3://bucket", r#"{"anonn": null}"#),
            ("s3://bucket", r#"{"headers": {"x": "hush-hush"}}"#),
            ("gs://bucket", r#"{"key": "hush-hush"}"#),
            ("https://host", r#"{"anon": true, "password": "hush-hush"}"#),
            ("s3://bucket", r#"{"read_timeout": "hush-hush"}"#),
            ("https://host", r#"{"verify": "/no/such/authority.pem"}"#),
            ("https://host", r#"{"client_kwargs": {"verify": "/dev/null"}}"#),
            ("s3://bucket", r#"{"proxy_url": "http://me:hush-hush@proxy"}"#),
            ("gs://bucket", r#"{"proxy_excludes": "host"}"#),
            ("az://files", r#"{"pool_idle_timeout": "5 s"}"#),
            ("s3://bucket", r#"{"timeout": "5 s"}"#),
            ("s3://bucket", r#"{"http1_only": true}"#),
            ("s3://bucket", r#"{"endpoint_url": "minio:9000"}"#),
            ("s3://bucket", r#"{"endpoint_url": ""}"#),
            ("s3://bucket", r#"{"endpoint_url": "http:/localhost:9000"}"#),
            ("s3://bucket", r#"{"endpoint_url": "http:localhost"}"#),
            ("s3://bucket", r#"{"endpoint_url": "http:///localhost"}"#),
            ("gs://bucket", r#"{"endpoint_url": "http://localhost "}"#),
            ("s3://bucket", r#"{"endpoint_url": "\nhttp://localhost"}"#),
            ("s3://bucket", r#"{"endpoint_url": "http://ü.de"}"#),
            ("s3://bucket", r#"{"endpoint_url": "http://a b"}"#),
            ("s3://bucket", r#"{"endpoint_url": "http://127.0.0.1:99999"}"#),
            ("gs://bucket", r#"{"endpoint_url": "localhost:4443"}"#),
            ("az://files", r#"{"account_name": "me", "endpoint_url": "https://"}"#),
            ("s3://bucket", r#"{"endpoint_url": "me:hush-hush@minio:9000"}"#),
            ("gs://bucket", r#"{"endpoint_url": "ftp://me:hush-hush@minio:9000"}"#),
            ("gs://bucket", r#"{"token": "hush-hush"}"#),
            ("gs://bucket", r#"{"token": "{\"private_key\": \"hush-hush"}"#),
        ] {
            let error = settings(url, options).unwrap_err();
            assert_eq!(error.kind().code(), "unsupported", "{options}");
            assert!(!error.to_string().contains("hush"), "{error}");
        }
        for options in [r#"{"header": {"x": "y"}}"#, r#"{"header": null}"#, r#"{"header": "y"}"#] {
            assert!(
                settings("https://host", options).unwrap_err().to_string().contains("HTTP takes headers")
            );
        }
        for known in [r#"{"headers": null, "client_kwargs": null, "read_timeout": null}"#, "{}"] {
            assert!(settings("https://host", known).is_ok());
        }
        let options = StorageOptions::from_json(r#"{"secret": "hush-hush"}"#).unwrap();
        assert_eq!(format!("{options:?}"), r#"["secret"]"#);
    }
}
