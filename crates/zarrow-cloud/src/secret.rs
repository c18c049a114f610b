//! What must never be shown: keys, tokens, passwords.

use std::fmt;

/// Texts that no error, name or debug view may show.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Adds a text. One of less than four characters is no secret, and to hide it would garble messages.
    pub fn add(&mut self, text: &str) {
        if text.len() >= 4 && !self.0.iter().any(|known| known == text) {
            self.0.push(text.to_owned());
        }
    }

    /// The text with asterisks for each secret, as it stands and as URLs have it.
    pub fn hide(&self, text: &str) -> String {
        let mut hidden = text.to_owned();
        for secret in &self.0 {
            let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            hidden = hidden.replace(secret, "***").replace(&encoded, "***");
        }
        hidden
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} secrets", self.0.len())
    }
}

/// A URL without user, password, query and fragment.
pub fn without_secrets(url: &url::Url) -> String {
    let mut shown = url.clone();
    // These fail for URLs that have no host, and so nothing to hide there.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_as_they_stand_and_as_urls_have_them() {
        let mut secrets = Secrets::default();
        secrets.add("a/b+c=");
        secrets.add("ab");
        assert_eq!(secrets.hide("key a/b+c= of ab, sig=a%2Fb%2Bc%3D"), "key *** of ab, sig=***");
        assert_eq!(format!("{secrets:?}"), "1 secrets");
        let url = url::Url::parse("https://me:pw@host:81/a?sig=x#y").unwrap();
        assert_eq!(without_secrets(&url), "https://host:81/a");
    }
}
