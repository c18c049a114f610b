//! Chunk keys: from a chunk's position in the grid to its key in the store.

use serde_json::{Value, json};

use super::MetadataError;
use super::json::Extension;

const KEY: &str = "chunk_key_encoding";

/// Encoding of a chunk's position in the grid as its key, relative to the array (Zarr core 3.1, chunk key encoding).
/// The separator is `.` or `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKeyEncoding {
    /// `c/1/2`, and `c` for an array without axes.
    Default {
        /// Separator of the parts.
        separator: char,
    },
    /// `1.2`, and `0` for an array without axes.
    V2 {
        /// Separator of the parts.
        separator: char,
    },
}

/// Appends a number, without the standard formatter, which would take as long as the rest of a small read's plan.
fn push_decimal(number: u64, key: &mut String) {
    /// Digits of the largest number.
    const DIGITS: usize = 20;
    let mut digits = [b'0'; DIGITS];
    let (mut rest, mut first) = (number, DIGITS);
    while rest > 0 || first == DIGITS {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key.extend(digits[first..].iter().map(|digit| char::from(*digit)));
}

impl ChunkKeyEncoding {
    /// Appends the key of the chunk at `indices` to `key`.
    ///
    /// ```
    /// use zarrow::metadata::ChunkKeyEncoding;
    /// let mut key = String::from("temperature/");
    /// ChunkKeyEncoding::Default { separator: '/' }.encode(&[1, 20], &mut key);
    /// assert_eq!(key, "temperature/c/1/20");
    /// ```
    pub fn encode(&self, indices: &[u64], key: &mut String) {
        let (prefix, separator, without_axes) = match self {
            ChunkKeyEncoding::Default { separator } => ("c", separator, ""),
            ChunkKeyEncoding::V2 { separator } => ("", separator, "0"),
        };
        key.push_str(prefix);
        for (axis, index) in indices.iter().enumerate() {
            if axis > 0 || !prefix.is_empty() {
                key.push(*separator);
            }
            push_decimal(*index, key);
        }
        if indices.is_empty() {
            key.push_str(without_axes);
        }
    }

    /// Returns the separator of the parts.
    #[must_use]
    pub fn separator(&self) -> char {
        match self {
            ChunkKeyEncoding::Default { separator } | ChunkKeyEncoding::V2 { separator } => *separator,
        }
    }

    pub(super) fn document(&self) -> Value {
        let name = match self {
            ChunkKeyEncoding::Default { .. } => "default",
            ChunkKeyEncoding::V2 { .. } => "v2",
        };
        json!({ "name": name, "configuration": { "separator": self.separator() } })
    }

    /// Reads a `chunk_key_encoding` of version 3: a name, or an object of name and configuration.
    ///
    /// # Errors
    /// A [`MetadataError`] if it is not a chunk key encoding.
    pub fn parse(value: &Value) -> Result<Self, MetadataError> {
        let extension = Extension::parse(KEY, value)?;
        let given = extension.get("separator").map(|value| separator(KEY, value)).transpose()?;
        match extension.name {
            "default" => Ok(ChunkKeyEncoding::Default { separator: given.unwrap_or('/') }),
            "v2" => Ok(ChunkKeyEncoding::V2 { separator: given.unwrap_or('.') }),
            _ => Err(MetadataError::unsupported(format!(
                "chunk key encoding {}",
                crate::error::metadata::excerpt(value)
            ))),
        }
    }
}

/// Reads a separator, `.` or `/`: any other character could lead a key out of its array.
pub(super) fn separator(key: &'static str, value: &Value) -> Result<char, MetadataError> {
    match value.as_str() {
        Some(".") => Ok('.'),
        Some("/") => Ok('/'),
        _ => Err(MetadataError::expected(key, "the separator \".\" or \"/\"", value)),
    }
}
