//! Reads untrusted JSON, key by key: the only reader of documents, attributes and consolidated metadata.
//!
//! It accepts JSON (RFC 8259), and the Python extensions listed in [`lenient_json`](super::lenient_json).

use serde::de::{DeserializeSeed, IgnoredAny};
use serde_json::{Map, Value};
use std::marker::PhantomData;
use zarrow_array::allocation::Grow;

use super::MetadataError;
use super::check::metadata_nbytes;
use super::json_values::ValueTree;
use super::lenient_json;
use super::member_spans::member;
use super::parse_memory::Outline;

/// JSON object that keys are taken out of one by one, so that the unknown ones remain.
#[derive(Debug, Clone)]
pub(super) struct Document<'a> {
    members: Map<String, Value>,
    text: &'a [u8],
}

impl<'a> Document<'a> {
    /// Reads `bytes`, at most `limit` bytes long.
    ///
    /// Its depth is bounded, and so is every recursion over the result.
    pub(super) fn parse(bytes: &'a [u8], limit: u64) -> Result<Self, MetadataError> {
        metadata_nbytes(bytes, limit)?;
        Outline::admit_text(bytes)?;
        match values(bytes)? {
            Value::Object(members) => Ok(Document { members, text: bytes }),
            other => Err(MetadataError::NotJson {
                reason: format!("found {}", crate::error::metadata::excerpt(&other)),
            }),
        }
    }

    /// Takes the value of `key`; `None` if it is absent or null.
    pub(super) fn optional(&mut self, key: &str) -> Option<Value> {
        self.members.remove(key).filter(|value| !value.is_null())
    }

    /// Takes the value of `key`, which may be null.
    pub(super) fn required(&mut self, key: &'static str) -> Result<Value, MetadataError> {
        self.members.remove(key).ok_or(MetadataError::MissingKey { key })
    }

    /// Takes `zarr_format`, which must be `format`.
    pub(super) fn require_format(&mut self, format: u64) -> Result<(), MetadataError> {
        let value = self.required("zarr_format")?;
        match value.as_u64() {
            Some(found) if found == format => Ok(()),
            _ => Err(MetadataError::expected("zarr_format", &format.to_string(), &value)),
        }
    }

    /// Takes the object in `key`; an empty one if it is absent.
    pub(super) fn object(&mut self, key: &'static str) -> Result<Map<String, Value>, MetadataError> {
        match self.optional(key) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(other) => Err(MetadataError::expected(key, "an object", &other)),
        }
    }

    /// Returns the text of the value of `key`, even if it was taken.
    pub(super) fn text_of(&self, key: &str) -> Option<&'a [u8]> {
        member(self.text, key.as_bytes())
    }

    /// Returns the text of the whole document.
    pub(super) fn text(&self) -> &'a [u8] {
        self.text
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.members
    }
}

/// Checks that `bytes`, at most `limit` bytes long, are a JSON object, without building values.
pub(super) fn check_object(bytes: &[u8], limit: u64) -> Result<(), MetadataError> {
    metadata_nbytes(bytes, limit)?;
    Outline::parse(bytes).check_depth()?;
    deserialize(bytes, PhantomData::<IgnoredAny>)?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Ok(()),
        _ => Err(MetadataError::NotJson { reason: "found no object".into() }),
    }
}

/// Builds the tree of a text.
fn values(bytes: &[u8]) -> Result<Value, MetadataError> {
    let tree = ValueTree::default();
    let short =
        |tree: &ValueTree| tree.is_short().then_some(MetadataError::OutOfMemory { nbytes: bytes.len() });
    deserialize(bytes, &tree).map_err(|error| short(&tree).unwrap_or(error))
}

/// Reads JSON, and the extensions in [`lenient_json`].
fn deserialize<T>(
    bytes: &[u8],
    seed: impl for<'de> DeserializeSeed<'de, Value = T> + Copy,
) -> Result<T, MetadataError> {
    let read = |text: &[u8]| {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let value = seed.deserialize(&mut reader)?;
        reader.end().map(|()| value)
    };
    let value = read(bytes).or_else(|error| match lenient_json::as_json(bytes) {
        Some(json) => read(&json),
        None => Err(error),
    });
    value.map_err(|error| MetadataError::NotJson { reason: error.to_string() })
}

/// Returns the value as indented JSON.
pub(super) fn text(value: &impl serde::Serialize) -> Result<Vec<u8>, MetadataError> {
    /// Text that reports failed allocations as it grows.
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

    /// Returns a value of the configuration.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.configuration.and_then(|map| map.get(name))
    }

    /// Returns a required value of the configuration.
    pub(super) fn require(&self, name: &str) -> Result<&'a Value, MetadataError> {
        self.get(name).ok_or_else(|| {
            MetadataError::invalid(self.key, format!("the configuration of {:?} has no {name:?}", self.name))
        })
    }

    /// Returns a copy of the whole configuration.
    pub(super) fn configuration(&self) -> Map<String, Value> {
        self.configuration.cloned().unwrap_or_default()
    }
}

/// Reads a list of non-negative integers below 2⁶³.
pub(super) fn extents(key: &'static str, value: &Value) -> Result<Vec<u64>, MetadataError> {
    let invalid = || MetadataError::expected(key, "a list of integers from 0 to 2^63 - 1", value);
    let items = value.as_array().ok_or_else(invalid)?;
    items.iter().map(|item| extent(item).ok_or_else(invalid)).collect()
}

/// Reads a non-negative integer below 2⁶³.
pub(super) fn extent(value: &Value) -> Option<u64> {
    value.as_u64().filter(|extent| i64::try_from(*extent).is_ok())
}
