//! The one error type of the engine: what went wrong, and where.
//!
//! An [`Error`] is created at the fault, with the details known there, and gains its location (codec, chunk, array,
//! store) on the way out.

pub(crate) mod key_fault;
pub(crate) mod metadata;
pub(crate) mod visible;
pub(crate) mod warnings;

use crate::error::visible::visible;
use crate::metadata::MetadataError;
use std::fmt;

/// What went wrong. The text of [`code`](ErrorKind::code) is stable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is neither an array nor a group at the path.
    #[error("no Zarr array or group here")]
    NotFound,
    /// There is already a node, folder or value where a node was to be created.
    #[error("{0} is already here")]
    Exists(&'static str),
    /// A folder that is not a node was to be erased for a new one, but is not empty: the first names in it.
    #[error(
        "this folder is not a Zarr array or group, and contains {0}: zarrow never erases such a \
         folder, remove it yourself"
    )]
    Foreign(String),
    /// The array has been changed since this handle was opened, so that a write would go to the wrong place.
    #[error("the array {0}{remedy}", remedy = remedy(.0))]
    Stale(&'static str),
    /// The node is of the wrong kind.
    #[error("this is {found}, expected {expected}")]
    WrongNode {
        /// Kind that was requested.
        expected: &'static str,
        /// Kind that was found.
        found: &'static str,
    },
    /// The store could not be read.
    #[error("cannot read: {0}")]
    Io(std::io::Error),
    /// The store could not be written; the old value is still in place.
    #[error("cannot write: {0}")]
    Write(std::io::Error),
    /// A store failed, and it is unknown whether it applied a write.
    #[error("this write may or may not have been applied: {0}")]
    Uncertain(String),
    /// Other writers have repeatedly set the value between this writer's read and its write.
    #[error("other writers changed the value before each attempt: nothing was written")]
    Conflict,
    /// The store can only be read.
    #[error("the store is read-only")]
    ReadOnly,
    /// A key would leave the store's root, or is not a valid key.
    #[error("invalid path or store key {:?}: {}", .0, key_fault::key_fault(.0))]
    BadKey(String),
    /// The metadata is malformed or asks for something that does not exist.
    #[error("{0}")]
    Metadata(MetadataError),
    /// A codec that neither this engine nor its fallback supports.
    #[error("unknown codec {0:?}")]
    UnknownCodec(String),
    /// A codec with a malformed configuration, or at a position where it cannot be.
    #[error("invalid codec: {0}")]
    BadCodec(String),
    /// Encoded bytes that are not a valid output of their codec.
    #[error("corrupt data: {0}")]
    Corrupt(String),
    /// A user-defined codec failed, with its error.
    #[error("the codec failed: {0}")]
    CodecFailed(Box<dyn std::error::Error + Send + Sync>),
    /// A value that a codec cannot convert to another type.
    #[error("invalid value: {0}")]
    BadValue(String),
    /// A checksum does not match its bytes.
    #[error("checksum mismatch: stored {stored:#010x}, computed {computed:#010x}")]
    Checksum {
        /// Checksum stored in the chunk.
        stored: u32,
        /// Checksum computed from its bytes.
        computed: u32,
    },
    /// A chunk decodes to a different size than its metadata says.
    #[error("decodes to {actual} bytes, expected {expected} by its metadata")]
    WrongSize {
        /// Bytes according to the metadata.
        expected: u64,
        /// Actual bytes.
        actual: u64,
    },
    /// A chunk decodes to far more bytes than its metadata says; they were not all counted.
    #[error("decodes to more than {least} bytes, expected {expected} by its metadata")]
    TooLong {
        /// Bytes according to the metadata.
        expected: u64,
        /// Bytes counted before stopping.
        least: u64,
    },
    /// A limit that protects against hostile input was exceeded.
    #[error("{what} is {actual}, the limit is {limit}")]
    Limit {
        /// Name of the size that is too large.
        what: &'static str,
        /// Its size.
        actual: u64,
        /// The limit.
        limit: u64,
    },
    /// A link to a group above it, which makes the hierarchy endless.
    #[error("this is a link to a group above it")]
    LinkLoop,
    /// An index outside the array or the chunk grid, or of the wrong kind.
    #[error("{0}")]
    Index(String),
    /// Memory could not be allocated, or an array cannot be built.
    #[error("{0}")]
    Array(zarrow_array::Error),
    /// Arrays that are to be combined do not fit each other.
    #[error("{0}")]
    Shape(String),
    /// Valid input that this engine does not support.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A bug of the engine, contained.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Change of an array that was opened from consolidated metadata, and is no longer the one they describe.
pub(crate) const OUTDATED: &str = "differs from the consolidated metadata of a group above";

/// Returns what to do about a [`ErrorKind::Stale`] array.
fn remedy(change: &str) -> &'static str {
    match change {
        OUTDATED => ": call consolidate_metadata() of that group",
        _ => " since it was opened here: open it again",
    }
}

impl ErrorKind {
    /// Returns a short name of the kind that stays the same between versions.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            ErrorKind::NotFound => "not_found",
            ErrorKind::Exists(_) => "exists",
            ErrorKind::Foreign(_) => "foreign",
            ErrorKind::Stale(_) => "stale",
            ErrorKind::WrongNode { .. } => "wrong_node",
            ErrorKind::Io(error) | ErrorKind::Write(error)
                if error.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                "permission"
            }
            ErrorKind::Io(_) => "io",
            ErrorKind::Write(error) => match error.kind() {
                std::io::ErrorKind::StorageFull
                | std::io::ErrorKind::QuotaExceeded
                | std::io::ErrorKind::FileTooLarge => "no_space",
                std::io::ErrorKind::ReadOnlyFilesystem => "read_only",
                _ => "write",
            },
            ErrorKind::Uncertain(_) => "uncertain",
            ErrorKind::Conflict => "conflict",
            ErrorKind::ReadOnly => "read_only",
            ErrorKind::BadKey(_) => "bad_key",
            ErrorKind::Metadata(_) => "metadata",
            ErrorKind::UnknownCodec(_) => "unknown_codec",
            ErrorKind::BadCodec(_) => "bad_codec",
            ErrorKind::Corrupt(_) => "corrupt",
            ErrorKind::CodecFailed(_) => "codec_failed",
            ErrorKind::BadValue(_) => "bad_value",
            ErrorKind::Checksum { .. } => "checksum",
            ErrorKind::WrongSize { .. } | ErrorKind::TooLong { .. } => "wrong_size",
            ErrorKind::Limit { .. } | ErrorKind::LinkLoop => "limit",
            ErrorKind::Index(_) => "index",
            ErrorKind::Array(zarrow_array::Error::OutOfMemory { .. }) => "out_of_memory",
            ErrorKind::Array(zarrow_array::Error::NotUtf8 { .. }) => "corrupt",
            ErrorKind::Array(_) => "array",
            ErrorKind::Shape(_) => "shape",
            ErrorKind::Unsupported(_) => "unsupported",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Internal(_) => "internal",
        }
    }
}

/// Location of an error, as far as known.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Context {
    /// The store's name.
    pub store: Option<String>,
    /// The path of the array or group in the store.
    pub path: Option<String>,
    /// The chunk's position in the grid.
    pub chunk: Option<Vec<u64>>,
    /// The codec's name.
    pub codec: Option<String>,
}

/// An error with its location.
///
/// ```
/// use zarrow::{Error, ErrorKind};
/// let error = Error::from(ErrorKind::NotFound).in_array("data.zarr", "temperature");
/// assert_eq!(error.kind().code(), "not_found");
/// assert_eq!(
///     error.to_string(),
///     "no Zarr array or group here (store data.zarr, path \"temperature\")"
/// );
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
pub struct Error(Box<(ErrorKind, Context, Option<String>)>);

impl Error {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.0
    }

    /// Returns where the error occurred.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.1
    }

    /// Returns further information, such as advice.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.2.as_deref()
    }

    /// Adds further information or advice, displayed after the location.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.2.get_or_insert_with(|| hint.into());
        self
    }

    /// Puts a hint before the error's own hint, if any.
    #[must_use]
    pub(crate) fn with_first_hint(mut self, hint: String) -> Error {
        self.0.2 = Some(match self.0.2.take() {
            Some(second) => format!("{hint}; {second}"),
            None => hint,
        });
        self
    }

    /// Whether the stored bytes are at fault, so that decoding them fails in every program.
    pub(crate) fn is_of_stored_bytes(&self) -> bool {
        use zarrow_array::Error::NotUtf8;
        matches!(
            self.kind(),
            ErrorKind::Corrupt(_)
                | ErrorKind::Checksum { .. }
                | ErrorKind::WrongSize { .. }
                | ErrorKind::TooLong { .. }
                | ErrorKind::Limit { .. }
                | ErrorKind::Array(NotUtf8 { .. })
        )
    }

    /// Returns whether opening the node again fails in the same way: its metadata are invalid or ask for something
    /// unsupported, or its path is a loop of links. Any other error may be temporary: the store failed, denied access
    /// or timed out, or memory ran out.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self.kind() {
            ErrorKind::Io(error) => matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENAMETOOLONG)),
            ErrorKind::Metadata(_)
            | ErrorKind::UnknownCodec(_)
            | ErrorKind::BadCodec(_)
            | ErrorKind::CodecFailed(_)
            | ErrorKind::BadValue(_)
            | ErrorKind::BadKey(_)
            | ErrorKind::Limit { .. }
            | ErrorKind::LinkLoop
            | ErrorKind::Shape(_)
            | ErrorKind::Unsupported(_) => true,
            ErrorKind::Array(error) => !matches!(error, zarrow_array::Error::OutOfMemory { .. }),
            _ => false,
        }
    }

    /// Whether an allocation failed.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(self.kind(), ErrorKind::Array(zarrow_array::Error::OutOfMemory { .. }))
    }

    /// Adds the codec, unless an inner codec is set already.
    #[must_use]
    pub fn in_codec(mut self, codec: &str) -> Error {
        self.0.1.codec.get_or_insert_with(|| codec.to_owned());
        self
    }

    /// Adds the chunk of the array's grid.
    #[must_use]
    pub fn in_chunk(mut self, chunk: &[u64]) -> Error {
        self.0.1.chunk.get_or_insert_with(|| chunk.to_vec());
        self
    }

    /// Adds the store and the path of the array or group.
    #[must_use]
    pub fn in_array(mut self, store: &str, path: &str) -> Error {
        self.0.1.store.get_or_insert_with(|| store.to_owned());
        self.0.1.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

/// Formats as `Display`: this is what `unwrap` prints, and a `main` that returns the error.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, context, hint) = &*self.0;
        // The message contains names and values from the store.
        formatter.write_str(&visible(&kind.to_string()))?;
        let mut separator = " (";
        let mut place = |formatter: &mut fmt::Formatter<'_>, text: String| {
            write!(formatter, "{separator}{}", visible(&text))?;
            separator = ", ";
            Ok(())
        };
        if let Some(store) = &context.store {
            place(formatter, format!("store {store}"))?;
        }
        // The root needs no path.
        if let Some(path) = context.path.as_ref().filter(|path| !path.is_empty()) {
            place(formatter, format!("path {path:?}"))?;
        }
        if let Some(chunk) = &context.chunk {
            place(formatter, format!("chunk {chunk:?}"))?;
        }
        if let Some(codec) = &context.codec {
            place(formatter, format!("codec {codec}"))?;
        }
        if *context != Context::default() {
            formatter.write_str(")")?;
        }
        match hint {
            Some(hint) => write!(formatter, ": {}", visible(hint)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io(error) | ErrorKind::Write(error) => Some(error),
            ErrorKind::Metadata(error) => Some(error),
            ErrorKind::Array(error) => Some(error),
            ErrorKind::CodecFailed(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Error {
        Error(Box::new((kind, Context::default(), None)))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        ErrorKind::Io(error).into()
    }
}

impl From<zarrow_array::fork::Forked> for Error {
    fn from(error: zarrow_array::fork::Forked) -> Error {
        ErrorKind::Internal(error.to_string()).into()
    }
}

impl From<MetadataError> for Error {
    fn from(error: MetadataError) -> Error {
        match error {
            MetadataError::OutOfMemory { nbytes } => zarrow_array::Error::OutOfMemory { nbytes }.into(),
            error => ErrorKind::Metadata(error).into(),
        }
    }
}

impl From<zarrow_array::Error> for ErrorKind {
    fn from(error: zarrow_array::Error) -> ErrorKind {
        ErrorKind::Array(error)
    }
}

impl From<zarrow_array::Error> for Error {
    fn from(error: zarrow_array::Error) -> Error {
        ErrorKind::Array(error).into()
    }
}

/// The result of the engine's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
