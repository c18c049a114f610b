//! What can go wrong with a device.

use std::ffi::c_int;

/// An error of a CUDA device, or of what was read to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library cannot be used: the driver, or who decompresses on the device.
    #[error("{what} is not available: {reason}")]
    Unavailable {
        /// Which.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// There is no such device.
    #[error("there is no device cuda:{ordinal}: this machine has {count}")]
    NoDevice {
        /// The number of the device that was asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// A function of the driver failed.
    #[error("{function} failed with {name} ({code}): {text}")]
    Driver {
        /// Which function.
        function: &'static str,
        /// The driver's number for the error.
        code: c_int,
        /// Its name for it.
        name: String,
        /// Its words for it.
        text: String,
    },
    /// A kernel or a copy failed so that the driver answers every later call with the same error.
    #[error("the CUDA context of this process is lost: start a new process. What failed first: {reason}")]
    ContextLost {
        /// The driver's first such answer.
        reason: String,
    },
    /// The device, or the host's pinned memory, has no room.
    #[error("cannot allocate {nbytes} bytes of {place}")]
    OutOfMemory {
        /// Bytes asked for.
        nbytes: usize,
        /// Where.
        place: String,
    },
    /// This process was forked from one that used CUDA.
    #[error(
        "CUDA cannot be used in a process that was forked after CUDA was used: start workers with \"spawn\" or \"forkserver\""
    )]
    Forked,
    /// The operation has no meaning for these elements, or for this memory.
    #[error("{0}")]
    Unsupported(String),
    /// Elements of another type than is expected, where nothing is cast.
    #[error("expected {what} with elements of {expected}, got {found}: nothing is cast here")]
    OtherType {
        /// What has them.
        what: &'static str,
        /// The type that they should have.
        expected: String,
        /// Theirs.
        found: String,
    },
    /// A stream that the driver does not know on this device.
    #[error("invalid stream {number:#x}: it is not there any more, or it is of another device than {device}")]
    InvalidStream {
        /// Its handle.
        number: usize,
        /// The device.
        device: String,
    },
    /// Two tensors are on different devices.
    #[error("expected a tensor on {expected}, got one on {found}")]
    OtherDevice {
        /// Where it should be.
        expected: String,
        /// Where it is.
        found: String,
    },
    /// The memory may not be written to.
    #[error("the memory is read-only")]
    ReadOnly,
    /// Shapes, strides or types that do not fit.
    #[error(transparent)]
    Array(#[from] zarrow_array::Error),
    /// The array could not be read or written.
    #[error(transparent)]
    Zarr(#[from] zarrow::Error),
}

impl Error {
    /// Whether memory was missing, on the device or on the host.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Error::OutOfMemory { .. } | Error::Array(zarrow_array::Error::OutOfMemory { .. }) => true,
            Error::Zarr(error) => error.kind().code() == "out_of_memory",
            _ => false,
        }
    }
}

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;
