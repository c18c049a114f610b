//! The entries of a folder, without an allocation.
//!
//! Directory readers of libraries allocate each name, and end the process if that fails.

use crate::store::system_calls;
use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

/// Calls `act` with the name and type of each entry except `.` and `..`. A removed folder has no entries.
///
/// # Errors
/// What `fault` returns for an error of the file system, and errors of `act`.
pub fn each_entry<E>(
    folder: impl AsFd,
    fault: fn(Errno) -> E,
    mut act: impl FnMut(&CStr, FileType) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = [const { MaybeUninit::uninit() }; 16 << 10];
    let mut signals = 0;
    let mut entries = RawDir::new(folder, &mut buffer);
    while let Some(entry) = entries.next() {
        match entry {
            Err(Errno::NOENT) => break,
            Err(Errno::INTR) if signals < system_calls::MOST_SIGNALS => signals += 1,
            Err(error) => return Err(fault(error)),
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Ok(entry) => act(entry.file_name(), entry.file_type())?,
        }
    }
    Ok(())
}

/// As [`each_entry`], from the beginning, for a folder that others read too.
///
/// # Errors
/// As [`each_entry`].
pub fn each_entry_of_shared<E>(
    folder: impl AsFd,
    fault: fn(Errno) -> E,
    act: impl FnMut(&CStr, FileType) -> Result<(), E>,
) -> Result<(), E> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = system_calls::openat(&folder, ".", flags, Mode::empty()).map_err(fault)?;
    each_entry(own, fault, act)
}
