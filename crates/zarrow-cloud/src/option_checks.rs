//! Checks of related settings, before a client is made of them.

use crate::location::{Location, Service, unsupported};
use crate::options::Settings;
use url::Url;
use zarrow::Result;

impl Settings {
    /// Refuses credentials with characters that headers cannot carry: `object_store` would panic.
    pub fn check_credentials(&self) -> Result<()> {
        for (name, value) in &self.config {
            if (name.ends_with("token") || name.ends_with("access_key_id"))
                && http::HeaderValue::from_str(value).is_err()
            {
                return Err(unsupported(format!(
                    "the credential {name:?} has a character that a request cannot carry, such as the end of a line: \
                     pass it without, in storage_options, the environment or the profile"
                )));
            }
        }
        Ok(())
    }

    /// Refuses an option without a required other one, by the names that a caller types.
    pub fn check_complete(&self, location: &Location) -> Result<()> {
        let has = |names: [&str; 2]| names.iter().any(|name| self.config.contains_key(*name));
        match location.service {
            Service::S3 { .. } if !self.anonymous => {
                let key = has(["aws_access_key_id", "access_key_id"]);
                let (given, missing, variable) =
                    match (key, has(["aws_secret_access_key", "secret_access_key"])) {
                        (true, false) => ("key", "secret", "AWS_SECRET_ACCESS_KEY"),
                        (false, true) => ("secret", "key", "AWS_ACCESS_KEY_ID"),
                        _ => return Ok(()),
                    };
                Err(unsupported(format!(
                    "S3 has {given:?} and no {missing:?}: pass both in storage_options, or set {variable} too if \
                     {given:?} comes from the environment"
                )))
            }
            Service::Azure { .. }
                if !has(["azure_storage_account_name", "account_name"])
                    && !has(["azure_storage_use_emulator", "use_emulator"]) =>
            {
                Err(unsupported(
                    "Azure Blob Storage has no account: pass \"account_name\" or \"connection_string\" in storage_options, \
                     or set AZURE_STORAGE_ACCOUNT_NAME",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether the client examines the body of a put, for a signature or a checksum.
    pub fn examines_bodies(&self, location: &Location) -> bool {
        let get = |names: [&str; 2]| names.iter().find_map(|name| self.config.get(*name));
        let is_unsigned = || {
            self.anonymous
                || get(["aws_unsigned_payload", "unsigned_payload"]).is_some_and(|text| text == "true")
        };
        let has_checksum = get(["aws_checksum_algorithm", "checksum_algorithm"]).is_some();
        matches!(location.service, Service::S3 { .. }) && (has_checksum || !is_unsigned())
    }

    /// Refuses an endpoint that is not a URL: `object_store` would panic.
    pub fn check_endpoints(&self) -> Result<()> {
        let endpoints = self.config.iter().filter(|(name, _)| {
            let is_switch = name.contains("use_");
            !is_switch && (name.contains("endpoint") || name.ends_with("base_url"))
        });
        for (name, value) in endpoints {
            // `Url` repairs what `Uri` refuses: a missing slash, spaces around it.
            let is_url = Url::parse(value)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
                && value
                    .parse()
                    .is_ok_and(|uri: http::Uri| uri.scheme().is_some() && uri.authority().is_some());
            if !is_url {
                let value = self.secrets.hide(value);
                let example = match value.rsplit_once('@') {
                    _ if value.contains("://") => "minio:9000",
                    Some((_, host)) => host,
                    None => &value,
                };
                return Err(unsupported(format!(
                    "{name} is {value:?}: expected a URL with its scheme, such as \"http://{example}\""
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::location::Location;
    use crate::options::tests::settings;

    #[test]
    fn options_that_lack_another_are_named() {
        let check = |url: &str, options: &str| {
            let found = settings(url, options).unwrap().check_complete(&Location::parse(url).unwrap());
            found.err().map(|error| error.to_string())
        };
        let text = check("s3://bucket", r#"{"key": "AKID"}"#).unwrap();
        assert!(text.contains(r#"S3 has "key" and no "secret""#), "{text}");
        let text = check("s3://bucket", r#"{"secret": "hush-hush"}"#).unwrap();
        assert!(text.contains(r#"S3 has "secret" and no "key""#) && !text.contains("hush"), "{text}");
        assert_eq!(check("s3://bucket", r#"{"key": "AKID", "secret": "hush-hush"}"#), None);
        assert_eq!(check("s3://bucket", r#"{"key": "AKID", "anon": true}"#), None);
        assert!(check("az://files", "{}").unwrap().contains("account_name"));
        assert_eq!(check("az://files", r#"{"account_name": "me"}"#), None);
    }
}
