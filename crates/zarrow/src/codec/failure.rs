//! Failures of a compressor or a decompressor, before they become errors of a chunk.

use crate::error::{Error, ErrorKind};

/// Failure to decompress into memory of a given size.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The output is larger than the memory.
    TooSmall,
    /// The input is invalid.
    Corrupt(String),
    /// The input may be valid, but needs a codec that is not built in.
    Unsupported(String),
    /// The decompressor could not allocate its tables.
    OutOfMemory,
}

impl Failure {
    /// Creates the failure for invalid input.
    pub fn corrupt(text: impl Into<String>) -> Failure {
        Failure::Corrupt(text.into())
    }

    /// Converts the failure of a codec that was expected to produce `expected` bytes.
    pub fn into_error(self, expected: usize) -> Error {
        match self {
            Failure::TooSmall => too_long(expected, expected),
            Failure::Corrupt(text) => ErrorKind::Corrupt(text).into(),
            Failure::Unsupported(text) => ErrorKind::Unsupported(text).into(),
            Failure::OutOfMemory => zarrow_array::Error::OutOfMemory { nbytes: expected }.into(),
        }
    }
}

/// Creates the error for output of at least `least` bytes instead of `expected`.
pub fn too_long(expected: usize, least: usize) -> Error {
    ErrorKind::TooLong { expected: expected as u64, least: least as u64 }.into()
}

/// Bytes written by a compressor, or its refusal.
pub type Written = Result<usize, Refusal>;

/// Reason why a compressor produced nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The compressor does not support this input.
    Unsupported(String),
    /// The compressor could not allocate its tables.
    OutOfMemory {
        /// Bytes that could not be allocated, as far as known.
        nbytes: usize,
    },
}

impl From<&str> for Refusal {
    fn from(text: &str) -> Refusal {
        Refusal::Unsupported(text.into())
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Unsupported(text)
    }
}

impl From<Refusal> for ErrorKind {
    fn from(refusal: Refusal) -> ErrorKind {
        match refusal {
            Refusal::Unsupported(text) => ErrorKind::Unsupported(text),
            Refusal::OutOfMemory { nbytes } => zarrow_array::Error::OutOfMemory { nbytes }.into(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        ErrorKind::from(refusal).into()
    }
}
