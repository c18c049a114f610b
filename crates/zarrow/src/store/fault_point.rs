//! Interleaving points of two writers, in any processes: each is before a system call that affects other writers or
//! observes their effects. The tests run writers in every order of these points, and let changes of folders fail.

#[cfg(test)]
pub use super::faults::{fault, fault_of_rename};
#[cfg(test)]
pub use super::interleaving::{pause, step};
#[cfg(not(test))]
use {rustix::io::Errno, std::ffi::CStr, std::os::fd::AsFd};

/// Another writer may run here, before the system call `_call`.
#[cfg(not(test))]
#[inline(always)]
pub fn step(_call: &'static str) {}

/// The system call that follows may fail here.
///
/// # Errors
/// Only in tests.
#[cfg(not(test))]
#[inline(always)]
pub fn fault() -> Result<(), Errno> {
    Ok(())
}

/// Renaming `_name` in `_folder` may fail here.
///
/// # Errors
/// Only in tests.
#[cfg(not(test))]
#[inline(always)]
pub fn fault_of_rename(_folder: impl AsFd, _name: &CStr) -> Result<(), Errno> {
    Ok(())
}

/// Waits for another writer to make progress.
#[cfg(not(test))]
pub fn pause(time: std::time::Duration) {
    std::thread::sleep(time);
}
