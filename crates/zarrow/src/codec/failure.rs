//! How a compressor or a decompressor fails, before the error gets its chunk.

use crate::error::{Error, ErrorKind};

/// How an attempt to decompress into memory of a given size went wrong.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The output is larger than the memory.
    TooSmall,
    /// The input is not valid.
    Corrupt(String),
    /// The input may be valid, and needs what is not built in.
    Unsupported(String),
    /// The decompressor found no memory for its own tables.
    OutOfMemory,
}

impl Failure {
    /// Input that is not valid.
    pub fn corrupt(text: impl Into<String>) -> Failure {
        Failure::Corrupt(text.into())
    }

    /// The failure of a codec whose output was to be `expected` bytes.
    pub fn into_error(self, expected: usize) -> Error {
        match self {
            Failure::TooSmall => too_long(expected, expected),
            Failure::Corrupt(text) => ErrorKind::Corrupt(text).into(),
            Failure::Unsupported(text) => ErrorKind::Unsupported(text).into(),
            Failure::OutOfMemory => zarrow_array::Error::OutOfMemory { nbytes: expected }.into(),
        }
    }
}

/// Output of at least `least` bytes, where `expected` are.
pub fn too_long(expected: usize, least: usize) -> Error {
    ErrorKind::TooLong { expected: expected as u64, least: least as u64 }.into()
}

/// The bytes that a compressor has written, or why it has not.
pub type Written = Result<usize, Refusal>;

/// Why a compressor gave nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not take such bytes.
    Unsupported(String),
    /// There is no memory for its own tables.
    OutOfMemory {
        /// Bytes that are missing, as far as is known.
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
