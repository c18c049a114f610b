//! Removes invalid keys from the answer to a list.
//!
//! A bucket may hold keys of other programs, such as `a//b` or one with a tab. `object_store` has no path for these, and one
//! of them would make the whole list an error. They are no keys of Zarr, so they are left out before it reads the list.

use bytes::Bytes;
use object_store::path::Path;
use std::borrow::Cow;

/// The elements of an entry, and the element with its key: of S3 and Google, and of Azure.
const ENTRIES: [(&str, &str, &str); 4] = [
    ("<Contents>", "</Contents>", "Key"),
    ("<CommonPrefixes>", "</CommonPrefixes>", "Prefix"),
    ("<Blob>", "</Blob>", "Name"),
    ("<BlobPrefix>", "</BlobPrefix>", "Name"),
];

/// Whether a request with this query asks for a list.
pub fn is_list(query: &str) -> bool {
    query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"))
}

/// Removes entries with invalid paths as keys.
pub fn without_foreign_keys(body: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&body) else { return body };
    let mut kept = Cow::Borrowed(text);
    for (open, close, name) in ENTRIES {
        if let Some(changed) = without(&kept, open, close, name) {
            kept = Cow::Owned(changed);
        }
    }
    match kept {
        Cow::Borrowed(_) => body,
        Cow::Owned(text) => text.into(),
    }
}

/// Returns the text without such entries; `None` if nothing was removed.
fn without(text: &str, open: &str, close: &str, name: &str) -> Option<String> {
    let mut kept = String::new();
    let (mut rest, mut is_changed) = (text, false);
    while let Some(start) = rest.find(open) {
        let Some(length) = rest[start..].find(close) else { break };
        let end = start + length + close.len();
        let is_foreign = is_foreign(&rest[start..end], name);
        is_changed |= is_foreign;
        kept.push_str(&rest[..if is_foreign { start } else { end }]);
        rest = &rest[end..];
    }
    kept.push_str(rest);
    is_changed.then_some(kept)
}

fn is_foreign(entry: &str, name: &str) -> bool {
    let key =
        entry.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    key.is_some_and(|(key, _)| Path::parse(&*unescaped(key)).is_err())
}

/// Returns the text of an element. Unknown entity references stay as text.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let (reference, after) = after.split_once(';').unwrap_or((after, ""));
        let number = reference.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16));
        let number = number.or_else(|| reference.strip_prefix('#').map(str::parse));
        plain.push(match (reference, number) {
            (_, Some(number)) => number.ok().and_then(char::from_u32).unwrap_or('?'),
            ("lt", _) => '<',
            ("gt", _) => '>',
            _ => '&',
        });
        rest = after;
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_a_path_are_left_out() {
        let entry = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let prefix = |key: &str| format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>");
        let list =
            |entries: &[String]| Bytes::from(format!("<R><Prefix>t/</Prefix>{}</R>", entries.concat()));
        let good =
            [entry("t/a&amp;b"), entry("t/x y"), prefix("t/c/"), "<Blob><Name>t/d</Name></Blob>".to_owned()];
        assert_eq!(without_foreign_keys(list(&good)), list(&good));
        let mut all = good.to_vec();
        for bad in ["t//a", "t/a\tb", "t/a&#9;b", "t/a&#x9;b", "t/../b"] {
            all.insert(2, entry(bad));
            all.push(prefix(bad));
            all.push(format!("<BlobPrefix><Name>{bad}</Name></BlobPrefix>"));
        }
        assert_eq!(without_foreign_keys(list(&all)), list(&good));
        assert!(is_list("prefix=a&list-type=2") && is_list("comp=list") && !is_list("x=list-type=2"));
    }
}
