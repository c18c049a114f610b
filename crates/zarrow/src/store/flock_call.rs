//! Locks on open files, by `flock`.

use crate::store::system_calls;
use crate::store::temporary_name::unique_name;
use crate::store::write_errors::MODE;
use rustix::fs::{AtFlags, FlockOperation, OFlags};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Tries to lock the file; returns whether it succeeded. The lock is held as long as the file is open. On a file system
/// without locks this is an error.
pub fn try_flock(file: impl AsFd) -> Result<bool, Errno> {
    match system_calls::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the file system of `folder` supports `flock`, tried on a temporary file.
pub fn has_flock(folder: impl AsFd) -> Result<bool, Errno> {
    let name = unique_name();
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = system_calls::openat(&folder, &*name, flags, MODE)?;
    let locked = try_flock(&file);
    let _ = system_calls::unlinkat(&folder, &*name, AtFlags::empty());
    match locked {
        Ok(_) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `name` in `folder` still names the open `file`.
pub fn is_still(folder: impl AsFd, name: &str, file: impl AsFd) -> Result<bool, Errno> {
    let open = system_calls::fstat(file)?;
    match system_calls::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(error) => Err(error),
    }
}
