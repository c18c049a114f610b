//! Removes a folder and everything in it, at any depth and with any names.
//!
//! 1. Names are raw bytes from the file system, not text. Links are removed, not followed.
//! 2. A folder inside the folder is moved up into it before it is emptied: depth costs neither stack nor open files,
//!    and no path gets too long.
//! 3. If the owner of a folder lacks permission to change it, the permission is added.

use crate::store::fault_point::fault_of_rename;
use crate::store::folder_entries::each_entry_of_shared;
use crate::store::system_calls;
use crate::store::temporary_name::unique_name;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use zarrow_array::allocation::check_spare;

/// Number of attempts to empty a folder while a writer that opened it before it was hidden still adds files.
const TRIES: usize = 8;

/// Removes the file, link or folder `name` in `folder`.
///
/// # Errors
/// `NOTEMPTY` if another process still adds files; `NOENT` if it does not exist; other errors of the file system.
pub fn remove(folder: impl AsFd, name: &CStr) -> Result<(), Errno> {
    if !is_folder_after_unlink(&folder, name)? {
        return Ok(());
    }
    let mut removed = Err(Errno::NOTEMPTY);
    for _ in 0..TRIES {
        if removed != Err(Errno::NOTEMPTY) {
            break;
        }
        empty(&open(&folder, name)?)?;
        removed = system_calls::unlinkat(&folder, name, AtFlags::REMOVEDIR);
    }
    removed
}

/// Removes the content of `top`.
///
/// # Errors
/// As [`remove`].
pub fn empty(top: &OwnedFd) -> Result<(), Errno> {
    let mut folders = folders_left(top)?;
    while let Some(name) = folders.pop() {
        let inside = match open(top, &name) {
            Ok(inside) => inside,
            // Another process's sweep was faster.
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error),
        };
        for inner in folders_left(&inside)? {
            // Step 2.
            let moved = CString::new(unique_name()).map_err(|_| Errno::INVAL)?;
            let rename = || {
                fault_of_rename(&inside, &inner)?;
                system_calls::renameat(&inside, inner.as_c_str(), top, moved.as_c_str())
            };
            match rename() {
                Err(Errno::ACCESS | Errno::PERM) => {
                    own(&inside, &inner)?;
                    rename()?;
                }
                Err(Errno::NOENT) => continue,
                renamed => renamed?,
            }
            folders.push(moved);
        }
        match system_calls::unlinkat(top, name.as_c_str(), AtFlags::REMOVEDIR) {
            // If a writer added files, the folder is emptied once more.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes everything in `folder` except folders, and returns their names.
fn folders_left(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut folders = Vec::new();
    each_entry_of_shared(
        folder,
        |error| error,
        |name, _| {
            if is_folder_after_unlink(folder, name)? {
                if folders.len().is_multiple_of(256) {
                    check_spare().map_err(|_| Errno::NOMEM)?;
                }
                folders.push(name.to_owned());
            }
            Ok(())
        },
    )?;
    Ok(folders)
}

/// Removes `name` unless it is a folder; returns whether it is one.
fn is_folder_after_unlink(folder: impl AsFd, name: &CStr) -> Result<bool, Errno> {
    match system_calls::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) => Ok(false),
        Err(Errno::ISDIR | Errno::PERM) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a folder to be emptied (step 3).
fn open(folder: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let open = || system_calls::open_folder(&folder, name);
    let opened = match open() {
        Err(Errno::ACCESS) => {
            own(&folder, name)?;
            open()?
        }
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(system_calls::fstat(&opened)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // If this is refused, the removal reports the error.
        let _ = system_calls::fchmod(&opened, Mode::RWXU);
    }
    Ok(opened)
}

fn own(folder: impl AsFd, name: &CStr) -> Result<(), Errno> {
    system_calls::chmodat(folder, name, Mode::RWXU)
}
