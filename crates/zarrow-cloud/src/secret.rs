//! Redaction: no error, name or debug view shows keys, tokens, passwords or signatures.
//!
//! 1. Every text from a server or an option passes [`Secrets::hide`] on its way into a message.
//! 2. It hides the store's own secrets, whole and in parts (the signature of a SAS token, the value of a cookie), in every
//!    form that a server may echo: plain, escaped for URLs, XML or JSON, in base64 and hex, and in either case.
//! 3. It also hides text that looks like a secret ([`redact`]), such as another user's, or an option that was refused before it
//!    was stored.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::fmt;
use std::ops::Range;

/// The replacement of a secret in messages.
const HIDDEN: &str = "***";

/// Words in the names of settings, parameters and JSON members with secret values.
const WORDS: [&str; 13] = [
    "secret", "token", "access_key", "accesskey", "account_key", "accountkey", "private_key",
    "encryption_key", "customer_key", "sas", "passw", "signature", "credential",
];

/// Parts of tokens, cookies and key files that are not secret.
const HARMLESS: [&str; 21] = [
    "sv", "ss", "srt", "sp", "st", "se", "spr", "sr", "sip", "path", "domain", "expires", "max-age",
    "samesite", "type", "auth_uri", "token_uri", "project_id", "universe_domain", "gcs_base_url",
    "api-version",
];

/// Headers with secret values.
const HEADERS: [&str; 6] = [
    "authorization:", "proxy-authorization:", "cookie:", "set-cookie:", "x-amz-security-token:", "x-api-key:",
];

/// Returns whether the value of a setting of this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_path = name.ends_with("_file") || name.ends_with("_uri") || name.ends_with("credentials");
    !is_path
        && !name.ends_with("skip_signature")
        && (name == "sig" || WORDS.iter().any(|word| name.contains(word)))
}

/// Texts that messages must not show.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Adds a secret and its parts.
    pub fn add(&mut self, text: &str) {
        self.add_one(text);
        if let Ok(serde_json::Value::Object(table)) = serde_json::from_str(text) {
            for (name, value) in &table {
                if let Some(value) = value.as_str().filter(|value| is_own(name) && !value.contains("://")) {
                    self.add_one(value);
                    // A message may contain a single line of a key.
                    value
                        .lines()
                        .filter(|line| !line.starts_with("-----"))
                        .for_each(|line| self.add_one(line));
                }
            }
            return;
        }
        for part in text.split(|c: char| c.is_whitespace() || "&;,?".contains(c)) {
            match part.split_once('=') {
                Some((name, value)) if is_own(name) => {
                    self.add_one(value);
                    self.add_one(&percent_encoding::percent_decode_str(value).decode_utf8_lossy());
                }
                Some((_, "=") | (_, "")) | None if part.len() < text.len() => self.add_one(part),
                _ => {}
            }
        }
    }

    /// Adds the password of a text that is a URL, or an address without a scheme.
    pub fn add_login(&mut self, text: &str) {
        if let Some((login, _)) = address(text).rsplit_once('@') {
            self.add_one(login);
            if let Some((_, password)) = login.split_once(':') {
                self.add_one(password);
                self.add_one(&percent_encoding::percent_decode_str(password).decode_utf8_lossy());
            }
        }
    }

    /// Adds what a request sent as its authorization: signatures, tokens, and the login of `Basic`.
    pub fn add_authorization(&mut self, value: &str) {
        const LEAST_NBYTES: usize = 16;
        for part in value.split(|c: char| c.is_whitespace() || ",;".contains(c)) {
            let values = [part, part.split_once('=').map_or("", |(_, value)| value)];
            let values = values.into_iter().chain(part.rsplit_once(':').map(|(_, value)| value));
            values.filter(|text| text.len() >= LEAST_NBYTES).for_each(|text| self.add_one(text));
        }
        if let Some((scheme, login)) = value.trim().split_once(' ')
            && scheme.eq_ignore_ascii_case("basic")
            && let Ok(login) = BASE64_STANDARD.decode(login.trim())
            && let Ok(login) = String::from_utf8(login)
        {
            self.add_one(&BASE64_STANDARD.encode(&login));
            self.add_one(&login);
            login.split_once(':').into_iter().for_each(|(_, password)| self.add_one(password));
        }
    }

    /// A text of less than four characters is ignored: hiding it would garble messages.
    fn add_one(&mut self, text: &str) {
        const SCHEMES: [&str; 4] = ["Basic", "Bearer", "Digest", "https"];
        if text.len() >= 4 && !SCHEMES.contains(&text) && !self.0.iter().any(|known| known == text) {
            self.0.push(text.to_owned());
            // Longest first: a part must not split the whole.
            self.0.sort_by_key(|known| std::cmp::Reverse(known.len()));
        }
    }

    /// Returns the text without secrets (steps 2 and 3).
    pub fn hide(&self, text: &str) -> String {
        let mut hidden = text.to_owned();
        for form in self.0.iter().flat_map(|secret| forms(secret)) {
            hidden = without(&hidden, &form);
        }
        redact(&hidden)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} secrets", self.0.len())
    }
}

fn is_own(name: &str) -> bool {
    let name = name.trim_matches(['"', '\'', ' ']).to_ascii_lowercase();
    !HARMLESS.contains(&name.as_str()) && !name.ends_with("_url")
}

/// Returns the text with `form`, which is in lower case, hidden in either case.
fn without(text: &str, form: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut shown, mut at) = (String::new(), 0);
    for (start, found) in lower.match_indices(form) {
        shown.push_str(&text[at..start]);
        shown.push_str(HIDDEN);
        at = start + found.len();
    }
    shown.push_str(&text[at..]);
    shown
}

/// Returns the forms of an echoed secret in lower case, longest first.
fn forms(secret: &str) -> Vec<String> {
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent =
        percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string();
    let unreserved = percent.replace("%2D", "-").replace("%2E", ".").replace("%5F", "_").replace("%7E", "~");
    let xml = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let json = serde_json::to_string(secret).unwrap_or_default();
    let json = json.trim_matches('"').to_owned();
    let python = unreserved.replace("%2F", "/");
    let twice = |text: &str| text.replace('%', "%25");
    let twice = [twice(&percent), twice(&unreserved), twice(&python)];
    let entities = |hex: bool| -> String {
        let entity = |c: char| match (c, hex) {
            (c, _) if c.is_ascii_alphanumeric() || "-._~ ".contains(c) => c.to_string(),
            (c, true) => format!("&#x{:x};", u32::from(c)),
            (c, false) => format!("&#{};", u32::from(c)),
        };
        secret.chars().map(entity).collect()
    };
    let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = BASE64_STANDARD.encode(secret);
    let unpadded = base64.trim_end_matches('=').to_owned();
    let web = unpadded.replace('+', "-").replace('/', "_");
    let mut all =
        vec![secret.to_owned(), secret.replace('+', " "), form, percent, unreserved, python, xml, json];
    all.extend(twice);
    all.extend([entities(true), entities(false), hex, base64, unpadded, web]);
    all.iter_mut().for_each(|form| form.make_ascii_lowercase());
    all.retain(|form| !form.is_empty());
    all.sort_by_key(|form| std::cmp::Reverse(form.len()));
    all.dedup();
    all
}

/// Returns the text without apparent secrets: logins and queries of URLs, values of secret parameters, headers and
/// members of JSON, access tokens, keys in PEM.
///
/// ```
/// assert_eq!(zarrow_cloud::redact("at https://me:pw@host/a?sig=x"), "at https://***@host/a?***");
/// ```
#[must_use]
pub fn redact(text: &str) -> String {
    let mut ranges = Vec::new();
    keys(text, &mut ranges);
    words(text, &mut ranges);
    parameters(text, &mut ranges);
    members(text, &mut ranges);
    headers(text, &mut ranges);
    ranges.retain(|range| range.start < range.end && &text[range.clone()] != HIDDEN);
    ranges.sort_by_key(|range| range.start);
    let (mut shown, mut at) = (String::new(), 0);
    for range in ranges {
        if range.start >= at {
            shown.push_str(&text[at..range.start]);
            shown.push_str(HIDDEN);
        }
        at = at.max(range.end);
    }
    shown.push_str(&text[at..]);
    shown
}

/// Keys in PEM.
fn keys(text: &str, ranges: &mut Vec<Range<usize>>) {
    for (start, _) in text.match_indices("-----BEGIN ") {
        let end = text[start..].find("-----END ").map_or(text.len(), |end| start + end);
        ranges.push(start..end);
    }
}

/// Logins, queries of URLs, access tokens.
fn words(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut follows_scheme = false;
    let mut start = 0;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || "\"'<>(){}[],;`".contains(c)) {
        let end = start + word.len();
        let inner = word.trim_end_matches(|c: char| c.is_whitespace() || "\"'<>(){}[],;`".contains(c));
        let range = |from: usize, to: usize| start + from..start + to;
        if let Some(scheme) = inner.find("://") {
            let from = scheme + "://".len();
            let authority = inner[from..].find(['/', '?', '#']).map_or(inner.len(), |end| from + end);
            if let Some(login) = inner[from..authority].rfind('@') {
                ranges.push(range(from, from + login));
            }
            if let Some(query) = inner.find('?') {
                ranges.push(range(query + 1, inner.len()));
            }
        } else if let Some(login) = inner.rfind('@').filter(|end| inner[..*end].contains(':')) {
            ranges.push(range(0, login));
        }
        for mark in ["ya29.", "eyJ"] {
            if let Some(token) = inner.find(mark).filter(|from| inner.len() - from >= 16) {
                ranges.push(range(token, inner.len()));
            }
        }
        let is_token = inner.len() >= 8 && inner.contains(|c: char| !c.is_ascii_lowercase());
        if follows_scheme && is_token {
            ranges.push(range(0, inner.len()));
        }
        follows_scheme = ["bearer", "basic"].iter().any(|scheme| inner.eq_ignore_ascii_case(scheme));
        start = end;
    }
}

/// Values of `name=value`.
fn parameters(text: &str, ranges: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices('=') {
        let name = text[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).next();
        if name.is_some_and(is_secret_name) {
            let start = at + 1;
            let ends = |c: char| c.is_whitespace() || "&;,<>\"'(){}".contains(c);
            ranges.push(start..text[start..].find(ends).map_or(text.len(), |end| start + end));
        }
    }
}

/// Values of `"name": "value"`.
fn members(text: &str, ranges: &mut Vec<Range<usize>>) {
    for (open, quote) in text.match_indices(['"', '\'']) {
        let rest = &text[open + 1..];
        let Some(name) = rest.find(quote) else { continue };
        if !is_secret_name(&rest[..name]) || rest[..name].contains(char::is_whitespace) {
            continue;
        }
        let after = rest[name + 1..].trim_start();
        let Some(value) = after.strip_prefix(':').map(str::trim_start) else { continue };
        let Some(value) = value.strip_prefix(['"', '\'']) else { continue };
        let start = text.len() - value.len();
        let mut is_escaped = false;
        let end = value.find(|c: char| {
            let ends = !is_escaped && matches!(c, '"' | '\'');
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        ranges.push(start..end.map_or(text.len(), |end| start + end));
    }
}

/// Values of headers, to the end of the line.
fn headers(text: &str, ranges: &mut Vec<Range<usize>>) {
    let lower = text.to_ascii_lowercase();
    for header in HEADERS {
        for (at, _) in lower.match_indices(header) {
            let value = text[at + header.len()..].trim_start_matches(' ');
            let start = text.len() - value.len();
            ranges.push(start..value.find('\n').map_or(text.len(), |end| start + end));
        }
    }
}

/// A URL, or an address without a scheme, up to its path.
fn address(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// A URL without user, password, query and fragment.
pub fn without_secrets(url: &url::Url) -> String {
    let mut shown = url.clone();
    // These fail for URLs without a host, which have nothing to hide there.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(text: &str) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add(text);
        secrets
    }

    #[test]
    fn secrets_are_hidden_in_every_form_of_an_echo() {
        let known = secrets("a/b+c=");
        assert_eq!(known.hide("key a/b+c=, a%2Fb%2Bc%3D and a%2fb%2bc%3d"), "key ***, *** and ***");
        assert_eq!(secrets("a&b<c>d").hide("it was a&amp;b&lt;c&gt;d"), "it was ***");
        assert_eq!(secrets("line\nnext").hide(r"it was line\nnext"), "it was ***");
        assert_eq!(secrets("ab").hide("ab"), "ab");
        let password = "Zq8x+w/ord=K3y";
        for echo in [
            "Zq8x%2Bw/ord%3DK3y",
            "Zq8x w/ord=K3y",
            "Zq8x&#43;w&#47;ord&#61;K3y",
            "Zq8x&#x2b;w&#x2F;ord&#x3d;K3y",
            "Zq8x%252Bw%252Ford%253DK3y",
            "WnE4eCt3L29yZD1LM3k=",
            "5a7138782b772f6f72643d4b3379",
            "zq8x+w/ord=k3y",
        ] {
            let shown = secrets(password).hide(&format!("credential '{echo}'"));
            assert_eq!(shown, "credential '***'", "{echo}");
        }
        let mut sent = Secrets::default();
        sent.add_authorization("AWS4-HMAC-SHA256 Credential=AKID/1/s3, Signature=0123456789abcdef0123");
        sent.add_authorization("SharedKey acc:c2lnbmF0dXJlc2lnbmF0dXJl");
        sent.add_authorization("Basic am9lOmh1c2gtaHVzaA==");
        let echo = "0123456789abcdef0123, c2lnbmF0dXJlc2lnbmF0dXJl, am9lOmh1c2gtaHVzaA==, hush-hush";
        assert_eq!(sent.hide(echo), "***, ***, ***, ***");
        assert_eq!(format!("{known:?}"), "1 secrets");
        let url = url::Url::parse("https://me:pw@host:81/a?sig=x#y").unwrap();
        assert_eq!(without_secrets(&url), "https://host:81/a");
    }

    #[test]
    fn parts_of_secrets_are_hidden_too() {
        let sas = secrets("sv=2022-11-02&sp=r&sig=Zm9v%2Fb%2BA%3D");
        assert_eq!(sas.hide("sv 2022-11-02: Zm9v%2Fb%2BA%3D is Zm9v/b+A="), "sv 2022-11-02: *** is ***");
        assert_eq!(secrets("Bearer own-token").hide("no own-token"), "no ***");
        let cookie = secrets("session=abcd; theme=dark-one; Path=/data");
        assert_eq!(cookie.hide("abcd, dark-one, /data"), "***, ***, /data");
        let key = r#"{"type": "service_account", "private_key": "-----BEGIN KEY-----\nMIIEpQ\n-----END KEY-----\n"}"#;
        assert_eq!(secrets(key).hide("service_account MIIEpQ"), "service_account ***");
        let mut login = Secrets::default();
        login.add_login("me:p%40ss@minio:9000");
        assert_eq!(login.hide("p@ss of me:p%40ss"), "*** of ***");
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden_unknown() {
        for (text, shown) in [
            ("at http://me:pw@host:9/a?x=1&y=2 (b)", "at http://***@host:9/a?*** (b)"),
            ("endpoint \"me:pw@minio:9000\"", "endpoint \"***@minio:9000\""),
            ("token ya29.a0Abcdefghijklm, no", "token ***, no"),
            ("Authorization: Bearer abc\nnext", "Authorization: ***\nnext"),
            ("wants Bearer a1-b2-c3-d4", "wants Bearer ***"),
            ("wants Bearer authentication", "wants Bearer authentication"),
            ("X-Amz-Signature=abc&X-Amz-Date=1, sig=a%2Fb", "X-Amz-Signature=***&X-Amz-Date=1, sig=***"),
            (r#"{"private_key": "a\"b", "id": "c"}"#, r#"{"private_key": "***", "id": "c"}"#),
            ("cookie: session=abc", "cookie: ***"),
            ("-----BEGIN KEY-----abc", "***"),
            ("ü=ü the server at host:80 answered 404", "ü=ü the server at host:80 answered 404"),
            ("s3://bucket/a@b:c, key=a/b", "s3://bucket/a@b:c, key=a/b"),
        ] {
            assert_eq!(redact(text), shown);
            assert_eq!(redact(shown), shown);
        }
    }
}
