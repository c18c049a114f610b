//! What writers need beside a value for a moment: the file that will be the value, and the lock.
//!
//! 1. Their names begin in a way that no key's does, so that they are never listed and never read.
//! 2. An unfinished file has a name that nobody else uses and that names its writer, who holds a lock on the file, which
//!    ends with the process.
//! 3. On a file system of this machine alone, a name of that kind whose lock can be had is therefore a leftover of a writer
//!    that was killed, or of one that has not come to lock it yet: that one finds its file gone and begins again.
//! 4. Where other machines may write too, or where there are no locks, a lock that can be had says nothing. There only that
//!    is a leftover which names a process of this machine that has ended; what others left stays.

use crate::store::file_lock::MODE;
use crate::store::filesystem_writer::write;
use crate::store::key::RESERVED;
use crate::store::locality::is_local;
use crate::store::owner::{Owner, unique};
use crate::store::removal::remove;
use crate::store::step::step;
use crate::{Error, Result};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

/// A name in the folder of a value that no writer has used (step 2).
pub fn unique_name() -> String {
    format!("{RESERVED}{}", unique())
}

/// Whether `name` is that of something which writers need for a moment (step 1).
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED)
}

/// Whether the file's lock could be had, which stays taken as long as the file is open. A place without locks has none to
/// be had.
pub fn try_flock(file: impl AsFd) -> Result<bool, Errno> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the file system of `folder` has `flock`, tried on a file that is there for a moment.
pub fn has_flock(folder: impl AsFd) -> Result<bool, Errno> {
    let name = unique_name();
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, &*name, flags, MODE)?;
    let locked = try_flock(&file);
    let _ = rustix::fs::unlinkat(&folder, &*name, AtFlags::empty());
    match locked {
        Ok(_) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `name` in `folder` still names the open `file`.
pub fn is_still(folder: impl AsFd, name: &str, file: impl AsFd) -> Result<bool, Errno> {
    let open = rustix::fs::fstat(file)?;
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the leftovers directly in `folder` (steps 3 and 4); returns how many.
pub fn sweep_folder(folder: impl AsFd) -> Result<usize> {
    let mut swept = 0;
    let is_local = is_local(&folder);
    for entry in Dir::read_from(&folder).map_err(write)? {
        let entry = entry.map_err(write)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if is_reserved(name) && sweep_one(&folder, name, is_local).map_err(write)? {
            swept += 1;
        }
    }
    Ok(swept)
}

fn sweep_one(folder: impl AsFd, name: &str, is_local: bool) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        // Gone meanwhile, or nothing of ours.
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => return Ok(false),
        Err(error) => return Err(error),
    };
    step("lock what may be a leftover");
    let is_left = match try_flock(&file) {
        Ok(true) if is_local => true,
        Ok(false) => false,
        // Step 4.
        Ok(true) | Err(_) => name.strip_prefix(RESERVED).and_then(Owner::of).is_some_and(Owner::is_dead),
    };
    step("look at what may be a leftover");
    if !is_left || !is_still(&folder, name, &file)? {
        return Ok(false);
    }
    step("remove a leftover");
    let path = CString::new(name).map_err(|_| Errno::INVAL)?;
    match remove(&folder, &path) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(false),
        Err(error) => Err(error),
    }
}

fn open_folder(folder: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// Removes the leftovers in `folder` and in the folders below it, links not followed; returns how many.
pub fn sweep_below(folder: OwnedFd) -> Result<usize> {
    let mut swept = 0;
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        swept += sweep_folder(&folder)?;
        for entry in Dir::read_from(&folder).map_err(write)? {
            let entry = entry.map_err(write)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if entry.file_type() == FileType::Directory && !matches!(name, "." | "..") {
                match open_folder(&folder, name) {
                    Ok(inner) => folders.push(inner),
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(Error::from(write(error))),
                }
            }
        }
    }
    Ok(swept)
}
