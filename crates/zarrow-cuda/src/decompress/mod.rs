//! Reading with decompression on the device.
//!
//! 1. [`frames`] reads the headers of a stored chunk on the host, which say what is compressed how, and whether the device can
//!    decompress it.
//! 2. A [`wave`] is one slot of pinned memory: stored chunks are copied to it until it is full, with lists of what to do. One
//!    copy brings all of it to the device, which decompresses its frames in one batch and places the elements in another.
//! 3. The [`Decompressor`] is who decompresses: [`nvcomp`], where the user has it.
//! 4. The device verifies the [`checksums`] of what it decompressed, where frames have them.
//! 5. At the end each frame says whether it was whole. One that was not makes the read begin anew on the host, which gives
//!    the error that any other read gives, or the elements.

pub mod checksums;
pub(crate) mod format;
pub mod frames;
pub mod nvcomp;
pub mod wave;

pub use format::Format;

use crate::device::Device;
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::stream::Stream;

/// Frames on a device, to be decompressed there. Every address is of the device; each list has `count` entries.
#[derive(Debug, Clone, Copy)]
pub struct Frames {
    /// How they are compressed.
    pub format: Format,
    /// How many.
    pub count: usize,
    /// The list of their addresses.
    pub sources: Address,
    /// The list of their bytes, 64 bits each.
    pub source_nbytes: Address,
    /// The list of where they are decompressed to.
    pub destinations: Address,
    /// The list of bytes that there is room for, 64 bits each.
    pub destination_nbytes: Address,
    /// Where the list of bytes that were written goes, 64 bits each.
    pub written: Address,
    /// Where the list of what became of each goes, 32 bits each: 0 for success.
    pub statuses: Address,
    /// The most bytes that one decompresses to.
    pub largest: usize,
    /// The bytes that all decompress to.
    pub total: usize,
}

/// Who decompresses frames on a device.
pub trait Decompressor: Send + Sync {
    /// Whether it decompresses frames of this format.
    fn takes(&self, format: Format) -> bool;

    /// What the address of each frame of this format is a multiple of.
    fn source_alignment(&self, format: Format) -> usize;

    /// Bytes of memory of the device, which is current, that a batch needs beside its frames, aligned to 256.
    ///
    /// # Errors
    /// What the library answers.
    fn temporary_nbytes(&self, frames: &Frames) -> Result<usize>;

    /// Gives the batch to a stream of a device. The caller does not wait.
    ///
    /// # Errors
    /// What the library answers. What is wrong with a frame is told in its status.
    ///
    /// # Safety
    /// All of this is memory of the device, and stays allocated until the stream has finished the batch: the lists, the frames
    /// and destinations in them, and `temporary_nbytes` bytes at `temporary`.
    unsafe fn decompress(
        &self,
        frames: &Frames,
        temporary: Address,
        temporary_nbytes: usize,
        stream: (&'static Device, Stream),
    ) -> Result<()>;
}

/// Who decompresses in this process.
///
/// # Errors
/// [`Error::Unavailable`] where there is nobody, with the reason.
pub fn decompressor() -> Result<&'static dyn Decompressor> {
    nvcomp::Nvcomp::get()
        .map(|nvcomp| nvcomp as &dyn Decompressor)
        .map_err(|reason| Error::Unavailable { what: "nvCOMP, which decompresses on the device,", reason })
}
