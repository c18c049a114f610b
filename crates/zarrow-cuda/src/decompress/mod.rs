//! Reads with decompression on the device.
//!
//! 1. [`frames`] parses the headers of a stored chunk on the host: they give the frames and formats, and whether
//!    the device can decompress them.
//! 2. A `batch` is one slot of pinned memory: stored chunks are copied to it until it is full, with lists of the
//!    work. One copy transfers all of it to the device, which decompresses its frames in one batch and places the
//!    elements in another.
//! 3. The [`Decompressor`] is the library that decompresses: [`nvcomp`], if the user has installed it.
//! 4. The device verifies the [`checksums`] of the decompressed frames, if they have any.
//! 5. At the end each frame has a status. After a failure the read restarts on the host, which reports the usual
//!    error, or returns the elements.

pub(crate) mod batch;
pub mod checksums;
pub(crate) mod format;
pub mod frames;
pub mod nvcomp;

pub use batch::Done;
pub use format::Format;

use crate::device::Device;
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::stream::Stream;

/// Frames on a device, to decompress there. Every address is a device address; each list has `count` entries.
#[derive(Debug, Clone, Copy)]
pub struct Frames {
    /// Format of the frames.
    pub format: Format,
    /// Number of frames.
    pub count: usize,
    /// List of their addresses.
    pub sources: Address,
    /// List of their sizes, 64 bits each.
    pub source_nbytes: Address,
    /// List of the destinations.
    pub destinations: Address,
    /// List of the destinations' sizes, 64 bits each.
    pub destination_nbytes: Address,
    /// Output list of the numbers of bytes written, 64 bits each.
    pub written: Address,
    /// Output list of statuses, 32 bits each: 0 for success.
    pub statuses: Address,
    /// Maximum decompressed bytes of a frame.
    pub largest: usize,
    /// Decompressed bytes of all frames.
    pub total: usize,
}

/// A library that decompresses frames on a device.
pub trait Decompressor: Send + Sync {
    /// Returns whether it decompresses frames of this format.
    fn takes(&self, format: Format) -> bool;

    /// Returns the required alignment of each frame of this format.
    fn source_alignment(&self, format: Format) -> usize;

    /// Returns the bytes of device memory that a batch needs in addition to its frames, aligned to 256. The device
    /// is current.
    ///
    /// # Errors
    /// Errors of the library.
    fn temporary_nbytes(&self, frames: &Frames) -> Result<usize>;

    /// Submits the batch to a stream of a device, without waiting.
    ///
    /// # Errors
    /// Errors of the library. Corrupt frames are reported in their status.
    ///
    /// # Safety
    /// All of these must be device memory, allocated until the stream has finished the batch: the lists, the frames
    /// and destinations in them, and `temporary_nbytes` bytes at `temporary`.
    unsafe fn decompress(
        &self,
        frames: &Frames,
        temporary: Address,
        temporary_nbytes: usize,
        stream: (&'static Device, Stream),
    ) -> Result<()>;
}

/// Returns the decompressor of this process.
///
/// # Errors
/// [`Error::Unavailable`] if there is no decompressor, with the reason.
pub fn decompressor() -> Result<&'static dyn Decompressor> {
    nvcomp::Nvcomp::get()
        .map(|nvcomp| nvcomp as &dyn Decompressor)
        .map_err(|reason| Error::Unavailable { what: "nvCOMP (for decompression on the device)", reason })
}
