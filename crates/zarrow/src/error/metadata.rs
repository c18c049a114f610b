//! Errors in metadata.

use serde_json::Value;

/// Error in a metadata document. The caller adds the store and the node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The bytes are not JSON, or not a JSON object.
    #[error("the metadata is not a JSON object: {reason}")]
    NotJson {
        /// Message of the JSON parser.
        reason: String,
    },
    /// A key required by the specification is missing.
    #[error("the metadata has no {key:?}")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key has a value that the specification does not allow.
    #[error("the metadata's {key:?} is invalid: {reason}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// Description of the error in its value.
        reason: String,
    },
    /// Valid metadata, but unsupported by this crate.
    #[error("{what} is not supported")]
    Unsupported {
        /// Unsupported feature.
        what: String,
    },
    /// A size overflows, or exceeds a limit.
    #[error("{what} exceeds the limit of {limit}")]
    TooLarge {
        /// Name of the size that is too large.
        what: &'static str,
        /// Maximum value.
        limit: u64,
    },
    /// There is no memory for the metadata.
    #[error("cannot allocate {nbytes} bytes for the metadata")]
    OutOfMemory {
        /// Number of requested bytes.
        nbytes: usize,
    },
}

impl MetadataError {
    pub(crate) fn invalid(key: &'static str, reason: impl Into<String>) -> Self {
        MetadataError::Invalid { key, reason: reason.into() }
    }

    /// Creates the error for a `value` that is not `expected`.
    pub(crate) fn expected(key: &'static str, expected: &str, value: &Value) -> Self {
        MetadataError::Invalid { key, reason: format!("expected {expected}, found {}", excerpt(value)) }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        MetadataError::Unsupported { what: what.into() }
    }
}

/// Returns the value as JSON, truncated: an error must not carry megabytes of someone else's data.
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
    /// Converts an allocation error; no other error occurs here.
    fn from(error: zarrow_array::Error) -> MetadataError {
        match error {
            zarrow_array::Error::OutOfMemory { nbytes } => MetadataError::OutOfMemory { nbytes },
            other => MetadataError::invalid("metadata", other.to_string()),
        }
    }
}
