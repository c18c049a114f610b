//! Temporary files beside a value: the file that will become the value, and the lock.
//!
//! 1. Their names have a prefix that no key has, so that they are never listed and never read.
//! 2. An unfinished file or folder has a unique name that identifies its writer (`owner`). If the name cannot show
//!    whether the writer has ended, the writer also holds a lock on the file, which ends with the process. The writer
//!    of a folder always does.
//! 3. A file that names a process of this machine is a leftover if that process has ended.
//! 4. For any other writer, on a local file system, the lock decides. A file with a free lock is a leftover, or its
//!    writer has not locked it yet; that writer finds its file removed and starts again. Writers in another container,
//!    or from before a restart, lock folders only: their files are leftovers if they have not changed for a day.
//! 5. The file of a key's lock is a leftover if its lock is free, on a local file system.
//! 6. If other machines may write too, or if there are no locks, a free lock proves nothing, and files of other
//!    machines are kept. So is every file that shares only the prefix of its name with these.

use crate::Result;
use crate::error::key_fault::RESERVED;
use crate::store::capabilities::is_local;
use crate::store::fault_point::step;
use crate::store::flock_call::{is_still, try_flock};
use crate::store::folder_entries::each_entry_of_shared;
use crate::store::owner::Owner;
use crate::store::removal::remove;
use crate::store::system_calls;
use crate::store::temporary_name::{LOCK, is_reserved};
use crate::store::write_errors::{write, write_error};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zarrow_array::allocation::Grow;

/// Removes the leftovers directly in `folder`; returns their number.
pub fn sweep_folder(folder: impl AsFd) -> Result<usize> {
    let mut swept = 0;
    let is_local = is_local(&folder);
    each_entry_of_shared(&folder, write_error, |name, _| {
        if let Ok(name) = name.to_str()
            && is_reserved(name)
            && sweep_one(&folder, name, is_local).map_err(write)?
        {
            swept += 1;
        }
        Ok(())
    })?;
    Ok(swept)
}

/// How the sweep decides about a temporary file, by its name (steps 3 to 6).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The process has ended: always a leftover.
    Left,
    /// A leftover if its lock is free.
    Locked,
    /// A leftover if its lock is free and its last change is more than a day old.
    Old,
}

impl Kind {
    /// Returns `None` for a file to be kept.
    fn from_name(name: &str, is_local: bool) -> Option<Kind> {
        let own = name.strip_prefix(RESERVED)?;
        if own.starts_with(LOCK) {
            return is_local.then_some(Kind::Locked);
        }
        let owner = Owner::parse(own)?;
        if owner.is_dead() {
            Some(Kind::Left)
        } else if !is_local {
            None
        } else if !owner.is_identified() {
            Some(Kind::Locked)
        } else {
            (!owner.is_of_this_machine()).then_some(Kind::Old)
        }
    }
}

fn sweep_one(folder: impl AsFd, name: &str, is_local: bool) -> Result<bool, Errno> {
    let Some(kind) = Kind::from_name(name, is_local) else { return Ok(false) };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match system_calls::openat(&folder, name, flags, Mode::empty()) {
        Ok(file) => file,
        // Removed by another process, or not a file of this store.
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => return Ok(false),
        Err(error) => return Err(error),
    };
    step("lock what may be a leftover");
    let is_left = match kind {
        // If there are locks, they make concurrent sweeps run one after the other.
        Kind::Left => try_flock(&file).unwrap_or(true),
        Kind::Locked => try_flock(&file).unwrap_or(false),
        Kind::Old => is_old(&system_calls::fstat(&file)?) && try_flock(&file).unwrap_or(false),
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

/// Whether a file has not changed for a day (step 4).
fn is_old(file: &Stat) -> bool {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let changed = u64::try_from(file.st_mtime).map(Duration::from_secs).unwrap_or_default();
    SystemTime::now().duration_since(UNIX_EPOCH + changed).is_ok_and(|age| age > DAY)
}

/// Removes the leftovers in `folder` and in the folders below it, without following links; returns their number.
pub fn sweep_below(folder: OwnedFd) -> Result<usize> {
    let mut swept = 0;
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        swept += sweep_folder(&folder)?;
        each_entry_of_shared(&folder, write_error, |name, file_type| {
            if file_type == FileType::Directory
                && let Ok(name) = name.to_str()
            {
                match system_calls::open_folder(&folder, name) {
                    Ok(inner) => folders.try_push(inner)?,
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(write_error(error)),
                }
            }
            Ok(())
        })?;
    }
    Ok(swept)
}
