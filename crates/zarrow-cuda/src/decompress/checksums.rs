//! Verification of the checksums of decompressed frames on the device: zstd's, gzip's and zlib's.
//!
//! 1. The host reads a frame's expected checksum from its bytes ([`frames`](super::frames)).
//! 2. After decompressing a batch, the device computes the checksum of each guarded frame and compares it
//!    (`kernels/checksum.cuh`). A mismatch is recorded as a failure in the frame's status.
//! 3. A read with a failed frame restarts on the host, which reports the usual error.

use crate::device::Device;
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::kernel::structs::{ChecksumKind, Guarded};
use crate::stream::Stream;

/// Checksum of a frame's decompressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// Kind of the checksum.
    pub kind: ChecksumKind,
    /// Expected value.
    pub expected: u32,
}

/// Verifies the frames of the list at `address` in a stream of a device (step 2).
///
/// # Safety
/// When the stream executes this, the list, and the bytes and statuses in it, must be in device memory, and they must
/// stay there until the stream is done.
pub(super) unsafe fn verify(
    (device, stream): (&Device, Stream),
    list: &[Guarded],
    address: Address,
) -> Result<()> {
    let count = u32::try_from(list.len())
        .map_err(|_| Error::Unsupported("a batch has too many checksums".to_owned()))?;
    // SAFETY: the caller's contract.
    unsafe {
        if list.iter().any(|frame| frame.kind == ChecksumKind::Xxh64) {
            device.launch_checksum_lanes(stream, address, count)?;
        }
        let others = list.iter().filter(|frame| frame.kind != ChecksumKind::Xxh64);
        if let Some(greatest) = others.map(|frame| frame.nbytes).max() {
            device.launch_checksum_parts(stream, address, count, greatest)?;
        }
        device.launch_checksum_verify(stream, address, count)
    }
}
