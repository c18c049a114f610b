//! Attributes that users store with a node: JSON, kept as its text.
//!
//! Python writes attributes that JSON values cannot hold: bare `NaN`, integers of any size, halves of surrogate pairs.
//! The text keeps them, for readers such as Python. The values are the nearest JSON values
//! ([`lenient_json`](super::lenient_json)).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Map, Value};
use zarrow_array::allocation;

use super::json::Document;
use super::member_spans::{compact, key_text, members};
use super::{MetadataError, MetadataLimits};

/// Attributes of an array or a group: a map of values, and their original JSON text.
///
/// Two are equal if their values are equal.
///
/// ```
/// use zarrow::metadata::{Attributes, MetadataLimits};
/// let attributes = Attributes::parse(br#"{"title": "rain", "gap": NaN}"#, &MetadataLimits::default())?;
/// assert_eq!(attributes["title"], "rain");
/// assert_eq!((attributes["gap"].as_str(), attributes.text()), (Some("NaN"), r#"{"title": "rain", "gap": NaN}"#));
/// # Ok::<(), zarrow::metadata::MetadataError>(())
/// ```
#[derive(Clone, Default)]
pub struct Attributes {
    /// Shared: a clone takes no memory.
    held: Arc<Held>,
}

#[derive(Default)]
struct Held {
    /// Empty if there are no attributes.
    text: String,
    values: Map<String, Value>,
}

impl Attributes {
    /// Reads the text of a JSON object, as written by Python.
    ///
    /// # Errors
    /// [`MetadataError::NotJson`], and [`MetadataError::TooLarge`] beyond `limits`.
    pub fn parse(text: &[u8], limits: &MetadataLimits) -> Result<Attributes, MetadataError> {
        Document::parse(text, limits.max_metadata_nbytes)?.into_attributes()
    }

    /// Creates attributes of `text`, already parsed to `values`.
    pub(super) fn new(text: &[u8], values: Map<String, Value>) -> Result<Attributes, MetadataError> {
        match str::from_utf8(text) {
            Ok(text) if !values.is_empty() => {
                let short = |_| MetadataError::OutOfMemory { nbytes: text.len() };
                Ok(Attributes {
                    held: Arc::new(Held { text: allocation::text(text).map_err(short)?, values }),
                })
            }
            // The parser accepts only UTF-8.
            _ => Ok(values.into()),
        }
    }

    /// Returns the text: JSON, readable by Python.
    #[must_use]
    pub fn text(&self) -> &str {
        if self.held.text.is_empty() { "{}" } else { &self.held.text }
    }

    /// Returns the values, with text for numbers outside JSON: `"NaN"`, `"Infinity"`, `"-Infinity"`. Integers beyond
    /// 64 bits are floats.
    #[must_use]
    pub fn values(&self) -> &Map<String, Value> {
        &self.held.values
    }

    /// Returns the keys, each with its value and the value's text, without white space.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Value, String)> {
        let text = self.text();
        members(text.as_bytes()).into_iter().filter_map(move |member| {
            let (key, value) = self.held.values.get_key_value(&key_text(member.key))?;
            Some((key.as_str(), value, compact(text.get(member.value)?)))
        })
    }
}

impl Document<'_> {
    /// Takes the attributes: an object, empty if it is absent.
    pub(super) fn attributes(&mut self) -> Result<Attributes, MetadataError> {
        const KEY: &str = "attributes";
        let values = self.object(KEY)?;
        let text = if values.is_empty() { None } else { self.text_of(KEY) };
        Attributes::new(text.unwrap_or_default(), values)
    }

    /// Takes the whole document as attributes.
    pub(super) fn into_attributes(self) -> Result<Attributes, MetadataError> {
        Attributes::new(self.text(), self.into_map())
    }
}

impl Deref for Attributes {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.held.values
    }
}

impl From<Map<String, Value>> for Attributes {
    fn from(values: Map<String, Value>) -> Attributes {
        let text = if values.is_empty() { String::new() } else { Value::Object(values.clone()).to_string() };
        Attributes { held: Arc::new(Held { text, values }) }
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.values.fmt(formatter)
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Attributes) -> bool {
        self.held.values == other.held.values
    }
}
