//! What can be wrong with metadata.

use serde_json::Value;

/// What is wrong with a metadata document. The caller adds which store and which node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The bytes are not JSON, or not a JSON object.
    #[error("the metadata is not a JSON object: {reason}")]
    NotJson {
        /// What the JSON parser says.
        reason: String,
    },
    /// A key that the specification requires is not there.
    #[error("the metadata has no {key:?}")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key holds something that the specification does not allow.
    #[error("the metadata's {key:?} is invalid: {reason}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
    /// The metadata asks for something that this crate does not have.
    #[error("{what} is not supported")]
    Unsupported {
        /// What it asks for.
        what: String,
    },
    /// A size overflows, or exceeds a limit.
    #[error("{what} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The most that is allowed.
        limit: u64,
    },
    /// There is no memory for the metadata.
    #[error("cannot allocate {nbytes} bytes for the metadata")]
    OutOfMemory {
        /// Bytes asked for.
        nbytes: usize,
    },
}

impl MetadataError {
    pub(crate) fn invalid(key: &'static str, reason: impl Into<String>) -> Self {
        MetadataError::Invalid { key, reason: reason.into() }
    }

    /// `value` is not `expected`.
    pub(crate) fn expected(key: &'static str, expected: &str, value: &Value) -> Self {
        MetadataError::Invalid { key, reason: format!("expected {expected}, found {}", excerpt(value)) }
    }

    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        MetadataError::Unsupported { what: what.into() }
    }
}

/// The value as JSON, cut short: an error must not carry megabytes that someone else wrote.
pub(crate) fn excerpt(value: &Value) -> String {
    const LENGTH: usize = 80;
    let text = match value {
        Value::Array(items) if items.len() > LENGTH => return format!("a list of {} items", items.len()),
        Value::Object(map) if map.len() > LENGTH => return format!("an object of {} keys", map.len()),
        value => value.to_string(),
    };
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl From<zarrow_array::Error> for MetadataError {
    /// Memory that was asked for and not there; nothing else comes here.
    fn from(error: zarrow_array::Error) -> MetadataError {
        match error {
            zarrow_array::Error::OutOfMemory { nbytes } => MetadataError::OutOfMemory { nbytes },
            other => MetadataError::invalid("metadata", other.to_string()),
        }
    }
}
