//! Errors of devices.

use std::ffi::c_int;

/// An error of a CUDA device, or of a read to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library is not usable: the driver, or the decompressor.
    #[error("{what} is not available: {reason}")]
    Unavailable {
        /// The library.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// The device does not exist.
    #[error("there is no device cuda:{ordinal}: this machine has {count}")]
    NoDevice {
        /// Index of the requested device.
        ordinal: usize,
        /// Number of devices.
        count: usize,
    },
    /// A function of the driver failed.
    #[error("{function} failed with {name} ({code}): {text}")]
    Driver {
        /// Name of the function.
        function: &'static str,
        /// Error number.
        code: c_int,
        /// Error name.
        name: String,
        /// Description of the error.
        text: String,
    },
    /// A kernel or a copy failed so that the driver returns the same error from every later call.
    #[error("the CUDA context of this process is lost: start a new process (first failure: {reason})")]
    ContextLost {
        /// First such error of the driver.
        reason: String,
    },
    /// The device, or the host's pinned memory, is full.
    #[error("cannot allocate {nbytes} bytes of {place}")]
    OutOfMemory {
        /// Bytes requested.
        nbytes: usize,
        /// The memory.
        place: String,
    },
    /// This process was forked from one that used CUDA.
    #[error(
        "CUDA cannot be used in a process that was forked after CUDA was used: start workers with \"spawn\" or \"forkserver\""
    )]
    Forked,
    /// The operation is not supported for these elements or this memory.
    #[error("{0}")]
    Unsupported(String),
    /// Elements of an unexpected type, where no cast is made.
    #[error("expected {what} with elements of type {expected}, got {found}: cast it first")]
    OtherType {
        /// The tensor.
        what: &'static str,
        /// Expected element type.
        expected: String,
        /// Element type found.
        found: String,
    },
    /// A stream that is invalid on this device.
    #[error("invalid stream {number:#x}: it was destroyed, or belongs to another device than {device}")]
    InvalidStream {
        /// Handle of the stream.
        number: usize,
        /// The device.
        device: String,
    },
    /// Two tensors are on different devices.
    #[error("expected a tensor on {expected}, got one on {found}")]
    OtherDevice {
        /// Expected device.
        expected: String,
        /// Device found.
        found: String,
    },
    /// The memory must not be written to.
    #[error("the memory is read-only")]
    ReadOnly,
    /// Unsuitable shape, strides or type.
    #[error(transparent)]
    Array(#[from] zarrow_array::Error),
    /// The array could not be read or written.
    #[error(transparent)]
    Zarr(#[from] zarrow::Error),
}

impl Error {
    /// Returns whether device or host memory was exhausted.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Error::OutOfMemory { .. } | Error::Array(zarrow_array::Error::OutOfMemory { .. }) => true,
            Error::Zarr(error) => error.kind().code() == "out_of_memory",
            _ => false,
        }
    }
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
