//! Streams, the queues of a device.

use crate::driver::functions::StreamHandle;
use crate::error::{Error, Result};

/// A stream: its work is done in order. It may belong to another library.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    handle: usize,
    lasts: bool,
}

impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        self.handle == other.handle
    }
}

impl Eq for Stream {}

impl Stream {
    /// Legacy default stream, synchronized with all blocking streams.
    pub const LEGACY: Stream = Stream { handle: 1, lasts: true };
    /// Default stream of the calling thread.
    pub const PER_THREAD: Stream = Stream { handle: 2, lasts: true };

    /// Returns the stream of a number in DLPack and `__cuda_array_interface__`: 1 and 2 are the default streams,
    /// and any other number except 0 is a `CUstream`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for 0, which is ambiguous between the default streams, and for negative numbers.
    pub fn from_number(number: i64) -> Result<Stream> {
        match usize::try_from(number) {
            Ok(handle) if handle != 0 => Ok(Stream { handle, lasts: handle <= 2 }),
            _ => Err(Error::Unsupported(format!(
                "invalid stream {number}: expected 1 (the legacy default stream), 2 (the per-thread default stream) or \
                 the handle of a stream"
            ))),
        }
    }

    /// Returns its number, the inverse of [`from_number`](Stream::from_number).
    #[must_use]
    pub fn number(self) -> usize {
        self.handle
    }

    /// Marks the stream as permanent: its library never destroys it, so later waits for it are possible. Default
    /// streams are always permanent.
    #[must_use]
    pub fn that_lasts(self) -> Stream {
        Stream { lasts: true, ..self }
    }

    /// Returns whether the stream is permanent.
    #[must_use]
    pub fn lasts(self) -> bool {
        self.lasts
    }

    pub(crate) fn from_handle(handle: StreamHandle) -> Stream {
        Stream { handle: handle.addr(), lasts: true }
    }

    pub(crate) fn handle(self) -> StreamHandle {
        std::ptr::without_provenance_mut(self.handle)
    }
}
