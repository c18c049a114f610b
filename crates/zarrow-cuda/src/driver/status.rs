//! Results of the driver's functions.
//!
//! A result that breaks the context is stored, and returned by every later call.

use crate::error::{Error, Result};
use std::ffi::c_int;
use zarrow_array::fork::OnceCell;

/// Error that broke the context of this process.
static LOST: OnceCell<String> = OnceCell::new();

/// Result of one call.
#[derive(Debug, Clone, Copy)]
pub struct Status {
    /// Name of the function.
    pub function: &'static str,
    /// `CUresult`.
    pub code: c_int,
}

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub const OUT_OF_MEMORY: c_int = 2;
/// `CUDA_ERROR_INVALID_HANDLE`.
pub const INVALID_HANDLE: c_int = 400;
/// `CUDA_ERROR_NOT_READY`: result of a query while work is pending.
pub const NOT_READY: c_int = 600;
/// `CUDA_ERROR_LAUNCH_FAILED`.
const LAUNCH_FAILED: c_int = 719;

/// After these errors the process cannot use CUDA any more. The driver's documentation: "To continue using CUDA,
/// the process must be terminated and relaunched."
const ENDS_CONTEXT: &[c_int] =
    &[214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, LAUNCH_FAILED, 721, 911];

/// Names of common errors; others are shown by their number.
///
/// Source: `CUresult` in the documentation of the driver API.
const NAMES: &[(c_int, &str, &str)] = &[
    (1, "CUDA_ERROR_INVALID_VALUE", "an argument is out of range"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    (3, "CUDA_ERROR_NOT_INITIALIZED", "the driver is not initialized in this process"),
    (4, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"),
    (34, "CUDA_ERROR_STUB_LIBRARY", "libcuda.so.1 is a stub that only links: install the NVIDIA driver"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is busy, or in an exclusive mode"),
    (100, "CUDA_ERROR_NO_DEVICE", "no CUDA device was found; CUDA_VISIBLE_DEVICES may hide it"),
    (101, "CUDA_ERROR_INVALID_DEVICE", "no such device"),
    (201, "CUDA_ERROR_INVALID_CONTEXT", "the context is invalid, or was destroyed"),
    (218, "CUDA_ERROR_INVALID_PTX", "the driver cannot compile the kernels"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE", "memory of the device has an error that cannot be corrected"),
    (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the driver is too old for the kernels"),
    (INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "a stream or an event is invalid"),
    (600, "CUDA_ERROR_NOT_READY", "the work is not finished"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel or a copy used memory that is not allocated"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel exceeded the system's time limit"),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "another library destroyed the context"),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel ran an instruction that does not exist"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel used an address that is not aligned"),
    (LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"),
    (801, "CUDA_ERROR_NOT_SUPPORTED", "the device cannot do this"),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "the kernel module and libcuda.so.1 have different versions"),
    (999, "CUDA_ERROR_UNKNOWN", "unknown error"),
];

impl Status {
    /// # Errors
    /// [`Error::Driver`] unless the call succeeded.
    pub fn check(self) -> Result<()> {
        if self.code == 0 { Ok(()) } else { Err(self.error()) }
    }

    /// Returns the error of a failed call.
    #[must_use]
    pub fn error(self) -> Error {
        let Status { function, code } = self;
        let known = NAMES.iter().find(|(known, ..)| *known == code);
        let (name, text) =
            known.map_or(("an error", "see CUresult of CUDA's driver API"), |(_, name, text)| (name, text));
        let error = Error::Driver { function, code, name: name.to_owned(), text: text.to_owned() };
        if ENDS_CONTEXT.contains(&code) { lost(LOST.get_or_make(|| error.to_string())) } else { error }
    }
}

/// # Errors
/// [`Error::ContextLost`] after a result that broke the context.
pub fn check_context() -> Result<()> {
    LOST.get().map_or(Ok(()), |reason| Err(lost(reason)))
}

fn lost(reason: &str) -> Error {
    Error::ContextLost { reason: reason.to_owned() }
}
