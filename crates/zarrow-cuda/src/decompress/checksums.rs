//! Checksums of decompressed frames: zstd's, gzip's and zlib's, verified on the device.
//!
//! 1. The host reads from a frame's bytes which checksum it should have ([`frames`](super::frames)).
//! 2. When the device has decompressed a wave, it computes the checksum of each guarded frame and compares
//!    (`kernels/checksum.cuh`). A frame that has another becomes one that failed, by its status.
//! 3. A read with such a frame begins anew on the host, which gives the error that any other read gives.

use crate::device::Device;
use crate::driver::functions::Address;
use crate::error::{Error, Result};
use crate::kernel::structs::{ChecksumKind, Guarded};
use crate::stream::Stream;

/// What guards the decompressed bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// How it is computed.
    pub kind: ChecksumKind,
    /// What it should be.
    pub expected: u32,
}

/// Has a lane of a device verify the frames of the list at `address` (step 2).
///
/// # Errors
/// What the driver answers.
///
/// # Safety
/// The list is in memory of the device when the lane comes to this, and so are the bytes and the statuses that it names,
/// which stay until the lane has done it.
pub(super) unsafe fn verify(
    (device, lane): (&Device, Stream),
    list: &[Guarded],
    address: Address,
) -> Result<()> {
    let count = u32::try_from(list.len())
        .map_err(|_| Error::Unsupported("a wave of too many checksums".to_owned()))?;
    // SAFETY: the caller's contract.
    unsafe {
        if list.iter().any(|frame| frame.kind == ChecksumKind::Xxh64) {
            device.launch_checksum_lanes(lane, address, count)?;
        }
        let others = list.iter().filter(|frame| frame.kind != ChecksumKind::Xxh64);
        if let Some(greatest) = others.map(|frame| frame.nbytes).max() {
            device.launch_checksum_parts(lane, address, count, greatest)?;
        }
        device.launch_checksum_verify(lane, address, count)
    }
}
