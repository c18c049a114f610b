//! The kernels: loaded once for a device, and launched.
//!
//! Their source is CUDA C++ in the folder `kernels` of the crate. It is compiled before the crate is published, to PTX for
//! CUDA 12.0 and compute capability 7.0, which every later driver compiles for its device when it loads it.

pub mod structs;
pub mod walk;

use crate::device::{Current, Device};
use crate::driver::functions::{Address, Function, Module};
use crate::error::{Error, Result};
use crate::stream::Stream;
use std::ffi::{CString, c_uint, c_void};
use std::ptr::null_mut;
use structs::{Cast, Compare, Gather, Piece};

const PTX: &str = include_str!("../../ptx/zarrow.ptx");

/// Threads of a block.
const BLOCK: u64 = 256;
/// The most blocks of a launch: each thread then takes several elements.
const MAX_BLOCKS: u64 = 1 << 16;

/// Lanes of XXH64, each of which a thread computes.
const CHECKSUM_LANES: u64 = 4;
/// Bytes of a part of a frame whose checksum a thread computes, where that is not XXH64.
const CHECKSUM_PART_NBYTES: u64 = 1024;

/// The kernels that come in five widths of an element, by the exponent of two.
type Widths = [Function; 5];

/// The functions of the kernels, on one device.
#[derive(Debug)]
pub struct Kernels {
    copy: Widths,
    place: Widths,
    gather: Widths,
    cast: Function,
    differs: Function,
    equal: Function,
    nonzero: Function,
    checksum_lanes: Function,
    checksum_parts: Function,
    checksum_verify: Function,
}

// SAFETY: functions of a module may be launched by any thread; the module is never unloaded.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

impl Kernels {
    pub(crate) fn load(current: &Current) -> Result<Kernels> {
        let bad = |_| Error::Unsupported("the text of the kernels has a NUL".to_owned());
        let text = CString::new(PTX).map_err(bad)?;
        let mut module: Module = null_mut();
        // SAFETY: the text ends with NUL, and the module is written to a place that lives through the call.
        unsafe { current.driver.module_load(&raw mut module, text.as_ptr().cast())? };
        let find = |name: String| {
            let name = CString::new(name).map_err(bad)?;
            let mut function: Function = null_mut();
            // SAFETY: the module was loaded above, and the name ends with NUL.
            unsafe { current.driver.module_function(&raw mut function, module, name.as_ptr())? };
            Ok::<_, Error>(function)
        };
        let widths = |name: &str| {
            let mut functions = [null_mut(); 5];
            for (exponent, function) in functions.iter_mut().enumerate() {
                *function = find(format!("zarrow_{name}_{}", 1 << exponent))?;
            }
            Ok::<_, Error>(functions)
        };
        Ok(Kernels {
            copy: widths("copy")?,
            place: widths("place")?,
            gather: widths("gather")?,
            cast: find("zarrow_cast".to_owned())?,
            differs: find("zarrow_differs".to_owned())?,
            equal: find("zarrow_equal".to_owned())?,
            nonzero: find("zarrow_nonzero".to_owned())?,
            checksum_lanes: find("zarrow_checksum_lanes".to_owned())?,
            checksum_parts: find("zarrow_checksum_parts".to_owned())?,
            checksum_verify: find("zarrow_checksum_verify".to_owned())?,
        })
    }
}

/// The kernel for elements of `nbytes`, which is 1, 2, 4, 8 or 16.
fn of_width(widths: &Widths, nbytes: usize) -> Result<Function> {
    let function = if nbytes.is_power_of_two() { widths.get(nbytes.trailing_zeros() as usize) } else { None };
    function.copied().ok_or_else(|| Error::Unsupported(format!("no kernel moves elements of {nbytes} bytes")))
}

/// The greatest width of a kernel by which elements of `item_nbytes` can be moved, as one or more of them.
#[must_use]
pub fn width(item_nbytes: usize) -> usize {
    1 << item_nbytes.trailing_zeros().min(4)
}

/// The launches of one device, in its stream, or in one of its lanes where they are told a stream.
///
/// Every launch is `unsafe`: all that its struct reaches lies in memory of the device, which stays until the stream has
/// done it, and what it writes nobody else uses meanwhile.
impl Device {
    /// A strided copy, or a fill, of elements of `nbytes`.
    pub(crate) unsafe fn launch_copy(&self, stream: Stream, nbytes: usize, piece: &Piece) -> Result<()> {
        let function = of_width(&self.kernels()?.copy, nbytes)?;
        // SAFETY: the kernel takes a piece; the caller's contract.
        unsafe { self.launch(stream, function, (piece.count, 1), &[argument(piece)]) }
    }

    /// Places `count` pieces, which lie at `pieces` on the device; none has more than `greatest` elements.
    pub(crate) unsafe fn launch_place(
        &self,
        stream: Stream,
        nbytes: usize,
        pieces: Address,
        count: u32,
        greatest: u64,
    ) -> Result<()> {
        let function = of_width(&self.kernels()?.place, nbytes)?;
        // SAFETY: the kernel takes an address and a number; the caller's contract.
        unsafe { self.launch(stream, function, (greatest, count), &[argument(&pieces), argument(&count)]) }
    }

    /// Takes rows by a list of positions, or puts them.
    pub(crate) unsafe fn launch_gather(&self, nbytes: usize, rows: &Gather) -> Result<()> {
        let function = of_width(&self.kernels()?.gather, nbytes)?;
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

    /// Sets the `u32` at `flag` to 1 where a pair differs.
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

    /// Sets bits of the `u32` at `flag`: 1 where an element is zero, 2 where one is not.
    pub(crate) unsafe fn launch_nonzero(&self, elements: &Compare, flag: Address) -> Result<()> {
        // SAFETY: the kernel takes elements and an address; the caller's contract.
        unsafe {
            let arguments = [argument(elements), argument(&flag)];
            self.launch(self.stream(), self.kernels()?.nonzero, (elements.count, 1), &arguments)
        }
    }

    /// The lanes of XXH64 of those of the `count` frames in the list at `frames` that it guards.
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

    /// The parts of the other checksums, of frames of at most `greatest` bytes.
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

    /// Finishes the checksums, and changes the status of each frame that has another than it should have.
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

    /// `size` is how many elements there are in a row, and how many rows.
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
        // A grid has at most 65,535 rows; the kernels go on with further pieces.
        let rows = rows.min(65_535);
        let mut arguments = arguments.to_vec();
        let current = self.enter()?;
        // SAFETY: the arguments point to values of the kernel's types, which the driver copies during the call; the rest
        // is the caller's contract.
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

/// A parameter of a launch: the driver copies the value during the call.
fn argument<T>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}
