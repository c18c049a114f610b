//! Reading JSON that may come from anyone, key by key.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::MetadataError;
use super::check::metadata_nbytes;
use super::outline::Outline;
use zarrow_array::allocation::Grow;

/// A JSON object whose keys are taken out one by one, so that what stays is what nobody knew.
#[derive(Debug, Clone)]
pub(super) struct Document(Map<String, Value>);

impl Document {
    /// Reads `bytes`, at most `limit` of them.
    ///
    /// Its depth bounds every recursion over the result.
    pub(super) fn parse(bytes: &[u8], limit: u64) -> Result<Document, MetadataError> {
        metadata_nbytes(bytes, limit)?;
        Outline::of(bytes).admit()?;
        Document::from_value(deserialize(bytes)?)
    }

    fn from_value(value: Value) -> Result<Document, MetadataError> {
        match value {
            Value::Object(map) => Ok(Document(map)),
            other => {
                Err(MetadataError::NotJson { reason: format!("found {}", super::error::excerpt(&other)) })
            }
        }
    }

    /// Takes the value of `key`, `None` where it is absent or null.
    pub(super) fn optional(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    /// Takes the value of `key`, null too.
    pub(super) fn required(&mut self, key: &'static str) -> Result<Value, MetadataError> {
        self.0.remove(key).ok_or(MetadataError::MissingKey { key })
    }

    /// Takes `zarr_format`, which must be `format`.
    pub(super) fn require_format(&mut self, format: u64) -> Result<(), MetadataError> {
        let value = self.required("zarr_format")?;
        match value.as_u64() {
            Some(found) if found == format => Ok(()),
            _ => Err(MetadataError::expected("zarr_format", &format.to_string(), &value)),
        }
    }

    /// Takes `key`, an object, which is empty where it is absent.
    pub(super) fn object(&mut self, key: &'static str) -> Result<Map<String, Value>, MetadataError> {
        match self.optional(key) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(other) => Err(MetadataError::expected(key, "an object", &other)),
        }
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

/// Checks that `bytes`, at most `limit` of them, are a JSON object, without making a tree of it.
pub(super) fn check_object(bytes: &[u8], limit: u64) -> Result<(), MetadataError> {
    metadata_nbytes(bytes, limit)?;
    Outline::of(bytes).check_depth()?;
    deserialize::<serde::de::IgnoredAny>(bytes)?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Ok(()),
        _ => Err(MetadataError::NotJson { reason: "found no object".into() }),
    }
}

/// The value as indented JSON.
pub(super) fn text(value: &impl serde::Serialize) -> Result<Vec<u8>, MetadataError> {
    /// Text that grows where there is memory.
    #[derive(Default)]
    struct Text(Vec<u8>);

    impl std::io::Write for Text {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.try_append(bytes).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut text = Text::default();
    serde_json::to_writer_pretty(&mut text, value)
        .map_err(|_| MetadataError::OutOfMemory { nbytes: text.0.len() })?;
    Ok(text.0)
}

/// The text of a string with its quotes.
pub(super) fn string(text: &[u8]) -> Result<String, MetadataError> {
    Outline::of(text).admit()?;
    deserialize(text)
}

/// Whether `text` is the string `value`, with its quotes.
pub(super) fn is_string(text: &[u8], value: &str) -> bool {
    match text {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => inner == value.as_bytes(),
        // One character has at most six bytes as an escape, and each of its halves.
        text if text.len() <= 12 * value.len() + 2 => string(text).is_ok_and(|text| text == value),
        _ => false,
    }
}

/// Reads JSON, in which bare floating point words may stand.
fn deserialize<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MetadataError> {
    let read = serde_json::from_slice(bytes).or_else(|error| match quote_bare_floats(bytes) {
        Some(quoted) => serde_json::from_slice(&quoted),
        None => Err(error),
    });
    read.map_err(|error| MetadataError::NotJson { reason: error.to_string() })
}

/// A named extension: a data type, chunk grid, chunk key encoding or codec (Zarr core 3.1, extension points).
pub(super) struct Extension<'a> {
    pub(super) name: &'a str,
    configuration: Option<&'a Map<String, Value>>,
    pub(super) must_understand: bool,
    key: &'static str,
}

impl<'a> Extension<'a> {
    /// Reads `value` of the metadata key `key`: a bare name, or an object of name and configuration.
    pub(super) fn parse(key: &'static str, value: &'a Value) -> Result<Self, MetadataError> {
        let invalid =
            || MetadataError::expected(key, "a name, or an object of name and configuration", value);
        let mut extension = Extension { name: "", configuration: None, must_understand: true, key };
        let map = match value {
            Value::String(name) => {
                extension.name = name;
                None
            }
            value => Some(value.as_object().ok_or_else(invalid)?),
        };
        for (part, value) in map.into_iter().flatten() {
            match (part.as_str(), value) {
                ("name", Value::String(name)) => extension.name = name,
                ("configuration", Value::Object(map)) => extension.configuration = Some(map),
                ("configuration", Value::Null) => {}
                ("must_understand", Value::Bool(must)) => extension.must_understand = *must,
                _ => return Err(invalid()),
            }
        }
        if extension.name.is_empty() { Err(invalid()) } else { Ok(extension) }
    }

    /// A value of the configuration.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.configuration.and_then(|map| map.get(name))
    }

    /// A value of the configuration that must be there.
    pub(super) fn require(&self, name: &str) -> Result<&'a Value, MetadataError> {
        self.get(name).ok_or_else(|| {
            MetadataError::invalid(self.key, format!("the configuration of {:?} has no {name:?}", self.name))
        })
    }

    /// A copy of the whole configuration.
    pub(super) fn configuration(&self) -> Map<String, Value> {
        self.configuration.cloned().unwrap_or_default()
    }
}

/// A list of non-negative integers below 2⁶³.
pub(super) fn extents(key: &'static str, value: &Value) -> Result<Vec<u64>, MetadataError> {
    let invalid = || MetadataError::expected(key, "a list of integers from 0 to 2^63 - 1", value);
    let items = value.as_array().ok_or_else(invalid)?;
    items.iter().map(|item| extent(item).ok_or_else(invalid)).collect()
}

/// A non-negative integer below 2⁶³.
pub(super) fn extent(value: &Value) -> Option<u64> {
    value.as_u64().filter(|extent| i64::try_from(*extent).is_ok())
}

/// Quotes the bare words `NaN`, `Infinity` and `-Infinity`, `None` where there are none.
///
/// They are no JSON, yet Python writes them, and real stores carry them in their attributes. Quoted they
/// are what the specification says of fill values.
fn quote_bare_floats(bytes: &[u8]) -> Option<Vec<u8>> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    // A word of three bytes becomes one of five. Where there is no memory for that, the text stays as it is: no JSON.
    let mut quoted = Vec::new();
    quoted.try_reserve_exact(bytes.len().checked_mul(2)?).ok()?;
    let (mut position, mut in_string, mut found) = (0, false, false);
    while let Some(&byte) = bytes.get(position) {
        let rest = &bytes[position..];
        let length = match (in_string, byte) {
            (true, b'\\') => rest.len().min(2),
            (_, b'"') => {
                in_string = !in_string;
                1
            }
            (true, _) => 1,
            (false, _) => match WORDS.iter().find(|word| rest.starts_with(word)) {
                Some(word) => {
                    found = true;
                    quoted.push(b'"');
                    quoted.extend_from_slice(word);
                    quoted.push(b'"');
                    position += word.len();
                    continue;
                }
                None => 1,
            },
        };
        quoted.extend_from_slice(&rest[..length]);
        position += length;
    }
    found.then_some(quoted)
}
