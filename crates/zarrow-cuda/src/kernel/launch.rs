//! Launches of kernels.

use super::functions::function_for_width;
use super::structs::{Cast, Compare, Gather, Piece};
use crate::device::Device;
use crate::driver::functions::{Address, Function};
use crate::error::Result;
use crate::stream::Stream;
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

/// Threads per block.
const BLOCK: u64 = 256;
/// Maximum number of blocks per launch: each thread then takes several elements.
const MAX_BLOCKS: u64 = 1 << 16;

/// Lanes of XXH64: one thread computes each.
const CHECKSUM_LANES: u64 = 4;
/// Bytes per thread for checksums other than XXH64.
const CHECKSUM_PART_NBYTES: u64 = 1024;

/// Launches on one device, in its stream, or in the given stream.
///
/// Every launch is `unsafe`: all addresses reachable through its struct must be device memory that lives until the
/// stream has executed it, and its output must not be used concurrently.
impl Device {
    /// Launches a strided copy or a fill of elements of `nbytes`.
    pub(crate) unsafe fn launch_copy(&self, stream: Stream, nbytes: usize, piece: &Piece) -> Result<()> {
        let function = function_for_width(&self.kernels()?.copy, nbytes)?;
        // SAFETY: the kernel takes a piece; the caller's contract.
        unsafe { self.launch(stream, function, (piece.count, 1), &[argument(piece)]) }
    }

    /// Places `count` pieces from the list at `pieces` on the device; each has at most `greatest` elements.
    pub(crate) unsafe fn launch_place(
        &self,
        stream: Stream,
        nbytes: usize,
        pieces: Address,
        count: u32,
        greatest: u64,
    ) -> Result<()> {
        let function = function_for_width(&self.kernels()?.place, nbytes)?;
        // SAFETY: the kernel takes an address and a number; the caller's contract.
        unsafe { self.launch(stream, function, (greatest, count), &[argument(&pieces), argument(&count)]) }
    }

    /// Gathers or scatters rows by a list of positions.
    pub(crate) unsafe fn launch_gather(&self, nbytes: usize, rows: &Gather) -> Result<()> {
        let function = function_for_width(&self.kernels()?.gather, nbytes)?;
        // SAFETY: the kernel takes rows; the caller's contract.
        unsafe {
            let count = rows.index_count.saturating_mul(rows.row_elements);
            self.launch(self.stream(), function, (count, 1), &[argument(rows)])
        }
    }

    pub(crate) unsafe fn launch_cast(&self, cast: &Cast) -> Result<()> {
        // SAFETY: the kernel takes a cast; the caller's contract.
        unsafe { self.launch(self.stream(), self.kernels()?.cast, (cast.count, 1), &[argument(cast)]) }
    }

    /// Sets the `u32` at `flag` to 1 if a pair differs.
    pub(crate) unsafe fn launch_differs(&self, pair: &Compare, flag: Address) -> Result<()> {
        // SAFETY: the kernel takes a pair and an address; the caller's contract.
        unsafe {
            let arguments = [argument(pair), argument(&flag)];
            self.launch(self.stream(), self.kernels()?.differs, (pair.count, 1), &arguments)
        }
    }

    pub(crate) unsafe fn launch_equal(&self, pair: &Compare) -> Result<()> {
        // SAFETY: the kernel takes a pair; the caller's contract.
        unsafe { self.launch(self.stream(), self.kernels()?.equal, (pair.count, 1), &[argument(pair)]) }
    }

    /// Sets bits of the `u32` at `flag`: 1 if an element is zero, 2 if one is non-zero.
    pub(crate) unsafe fn launch_nonzero(&self, elements: &Compare, flag: Address) -> Result<()> {
        // SAFETY: the kernel takes elements and an address; the caller's contract.
        unsafe {
            let arguments = [argument(elements), argument(&flag)];
            self.launch(self.stream(), self.kernels()?.nonzero, (elements.count, 1), &arguments)
        }
    }

    /// Computes the lanes of XXH64, for frames with that checksum among the `count` frames of the list at `frames`.
    pub(crate) unsafe fn launch_checksum_lanes(
        &self,
        stream: Stream,
        frames: Address,
        count: u32,
    ) -> Result<()> {
        let (function, lanes) = (self.kernels()?.checksum_lanes, u64::from(count) * CHECKSUM_LANES);
        // SAFETY: the kernel takes an address and a number; the caller's contract.
        unsafe { self.launch(stream, function, (lanes, 1), &[argument(&frames), argument(&count)]) }
    }

    /// Computes the parts of the other checksums, for frames of at most `greatest` bytes.
    pub(crate) unsafe fn launch_checksum_parts(
        &self,
        stream: Stream,
        frames: Address,
        count: u32,
        greatest: u64,
    ) -> Result<()> {
        let parts = greatest.div_ceil(CHECKSUM_PART_NBYTES).max(1);
        let function = self.kernels()?.checksum_parts;
        // SAFETY: the kernel takes an address and a number; the caller's contract.
        unsafe { self.launch(stream, function, (parts, count), &[argument(&frames), argument(&count)]) }
    }

    /// Finishes the checksums, and changes the status of each frame with a wrong one.
    pub(crate) unsafe fn launch_checksum_verify(
        &self,
        stream: Stream,
        frames: Address,
        count: u32,
    ) -> Result<()> {
        let function = self.kernels()?.checksum_verify;
        // SAFETY: the kernel takes an address and a number; the caller's contract.
        unsafe { self.launch(stream, function, (count.into(), 1), &[argument(&frames), argument(&count)]) }
    }

    /// `size` is the number of elements per row, and the number of rows.
    unsafe fn launch(
        &self,
        stream: Stream,
        function: Function,
        size: (u64, u32),
        arguments: &[*mut c_void],
    ) -> Result<()> {
        let (count, rows) = size;
        if count == 0 || rows == 0 {
            return Ok(());
        }
        let blocks = count.div_ceil(BLOCK).min(MAX_BLOCKS) as c_uint;
        // A grid has at most 65,535 rows; the kernels loop over further pieces.
        let rows = rows.min(65_535);
        let mut arguments = arguments.to_vec();
        let current = self.enter()?;
        // SAFETY: the arguments point to values of the kernel's types, which the driver copies during the call; the
        // rest is the caller's contract.
        unsafe {
            current.driver.launch(
                function,
                blocks,
                rows,
                1,
                BLOCK as c_uint,
                1,
                1,
                0,
                stream.handle(),
                arguments.as_mut_ptr(),
                null_mut(),
            )
        }
    }
}

/// Returns a parameter of a launch; the driver copies the value during the call.
fn argument<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}
