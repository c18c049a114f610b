//! Moves the entries of a folder to another folder, and back; erases them in place.
//!
//! 1. An entry is moved by one rename. A folder that cannot be renamed, such as one in the lower layer of an overlay (a
//!    container's image), is created again, and its entries are moved one by one.
//! 2. A value is moved or erased under its lock, since the lock's holder would write it again. The `marks`, which make
//!    the other values a node, are covered by the node's lock. In every folder they go first and come back last.
//! 3. Entries are moved back after an error. What another writer has created there since is newer, and is kept.

use crate::error::{ErrorKind, Result};
use crate::store::fault_point::{fault, fault_of_rename};
use crate::store::filesystem::FilesystemStore;
use crate::store::folder_entries::each_entry_of_shared;
use crate::store::removal::remove;
use crate::store::system_calls;
use crate::store::temporary_name::is_reserved;
use crate::store::write_errors::{write, write_error};
use crate::store::{Lock, StoreWriter, check_key, join};
use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use zarrow_array::allocation::check_spare;

/// A folder of a store, to move its entries away or erase them.
pub struct Source<'a> {
    store: &'a FilesystemStore,
    /// `None` if it is not text: then no key is below it.
    prefix: Option<String>,
    folder: OwnedFd,
    marks: &'a [&'a str],
}

impl<'a> Source<'a> {
    pub fn new(
        store: &'a FilesystemStore,
        prefix: &str,
        folder: OwnedFd,
        marks: &'a [&'a str],
    ) -> Source<'a> {
        Source { store, prefix: Some(prefix.to_owned()), folder, marks }
    }

    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// Returns the names of the entries, the marks first.
    pub fn names(&self) -> Result<Vec<CString>> {
        names(&self.folder, self.marks)
    }

    fn inner(&self, name: &CStr) -> Result<Source<'a>> {
        let prefix = self.prefix.as_ref().zip(name.to_str().ok()).map(|(prefix, name)| join(prefix, name));
        let folder = system_calls::open_folder(&self.folder, name).map_err(write)?;
        Ok(Source { store: self.store, prefix, folder, marks: self.marks })
    }

    /// Moves the entry `name` to the folder `to` (step 1).
    pub fn move_to(&self, to: &OwnedFd, name: &CStr) -> Result<()> {
        let lock = self.lock(name)?;
        match rename(&self.folder, name, to, name, RenameFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::XDEV) if is_folder(&self.folder, name) => {
                drop(lock);
                make_folder(to, name).map_err(write)?;
                let (inner, to) = (self.inner(name)?, system_calls::open_folder(to, name).map_err(write)?);
                inner.names()?.iter().try_for_each(|name| inner.move_to(&to, name))?;
                remove_folder(&self.folder, name)
            }
            Err(error) => Err(not_moved(name, error).into()),
        }
    }

    /// Erases the entry `name` and everything below it.
    pub fn erase(&self, name: &CStr) -> Result<()> {
        let lock = self.lock(name)?;
        fault().map_err(write)?;
        match system_calls::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR | Errno::PERM) if is_folder(&self.folder, name) => {
                drop(lock);
                let inner = self.inner(name)?;
                inner.names()?.iter().try_for_each(|name| inner.erase(name))?;
                remove_folder(&self.folder, name)
            }
            Err(error) => Err(write(error).into()),
        }
    }

    /// Step 2.
    fn lock(&self, name: &CStr) -> Result<Option<Box<dyn Lock + 'a>>> {
        let (Some(prefix), Ok(name)) = (&self.prefix, name.to_str()) else { return Ok(None) };
        let key = join(prefix, name);
        if self.marks.contains(&name) || check_key(&key).is_err() {
            return Ok(None);
        }
        match system_calls::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
                self.store.lock(&key, &|| Ok(())).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Step 3: moves the entry `name` back to the folder `to`.
pub fn move_back(from: &OwnedFd, to: &OwnedFd, name: &CStr, marks: &[&str]) -> Result<()> {
    match rename(from, name, to, name, RenameFlags::NOREPLACE) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::EXIST | Errno::NOTEMPTY | Errno::XDEV) if is_folder(from, name) => {
            make_folder(to, name).map_err(write)?;
            let (from, to) = (
                system_calls::open_folder(from, name).map_err(write)?,
                system_calls::open_folder(to, name).map_err(write)?,
            );
            names(&from, marks)?.iter().rev().try_for_each(|name| move_back(&from, &to, name, marks))
        }
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(write(error).into()),
    }
}

/// Renames `name` in the folder `from`.
pub fn rename(
    from: impl AsFd,
    name: &CStr,
    to: impl AsFd,
    new: &CStr,
    flags: RenameFlags,
) -> Result<(), Errno> {
    fault()?;
    fault_of_rename(&from, name)?;
    if flags.contains(RenameFlags::EXCHANGE) {
        fault_of_rename(&to, new)?;
    }
    if flags.is_empty() {
        return system_calls::renameat(from, name, to, new);
    }
    match system_calls::renameat_with(&from, name, &to, new, flags) {
        // A file system without this flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if flags == RenameFlags::NOREPLACE => {
            match system_calls::statat(&to, new, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => system_calls::renameat(from, name, to, new),
                found => found.and(Err(Errno::EXIST)),
            }
        }
        renamed => renamed,
    }
}

/// Returns the names in `folder` except writers' temporary files, the `marks` first.
pub fn names(folder: impl AsFd, marks: &[&str]) -> Result<Vec<CString>> {
    let mut found = Vec::new();
    each_entry_of_shared(folder, write_error, |name, _| {
        if !name.to_str().is_ok_and(is_reserved) {
            if found.len().is_multiple_of(256) {
                check_spare()?;
            }
            found.push(name.to_owned());
        }
        Ok(())
    })?;
    let rank = |name: &CString| {
        marks.iter().position(|mark| mark.as_bytes() == name.as_bytes()).unwrap_or(marks.len())
    };
    found.sort_by_key(rank);
    Ok(found)
}

/// Removes a folder that was emptied, with writers' temporary files.
pub fn remove_folder(folder: &OwnedFd, name: &CStr) -> Result<()> {
    fault().map_err(write)?;
    match remove(folder, name) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
        Err(error) => Err(write(error).into()),
    }
}

fn make_folder(folder: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    fault()?;
    match system_calls::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

fn is_folder(folder: &OwnedFd, name: &CStr) -> bool {
    system_calls::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

/// Returns the error for an entry that could not be moved, with the cause if it is another file system.
fn not_moved(name: &CStr, error: Errno) -> ErrorKind {
    if !matches!(error, Errno::XDEV | Errno::BUSY) {
        return write(error);
    }
    let error = std::io::Error::from(error);
    let text = format!(
        "{name:?} cannot be moved away ({error}), because it is a mount or on another file system: unmount it, or \
         erase it there"
    );
    ErrorKind::Write(std::io::Error::new(error.kind(), text))
}
