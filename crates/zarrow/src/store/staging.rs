//! The values of a whole node in a hidden folder: before they are published, or after they were replaced.
//!
//! 1. The folder is created beside the node, under a name that is not a key. Its owner holds a lock on it, so that a
//!    sweep keeps it until the owner has ended.
//! 2. To publish the values, the folder is exchanged with the node's folder in one step. The hidden name then refers to
//!    the old values.
//! 3. A store's root cannot be exchanged, and neither can a folder that must be kept. There, values are moved one by
//!    one. The `marks`, which make the others a node, are removed first and set last: until then there is no node, and
//!    never a wrong one. Every other value is moved away under its lock, since the lock's holder would write it again.
//!    The marks are covered by the node's lock.
//! 4. On a file system without exchange, the old folder is moved away, and then the new one into its place.
//! 5. The remaining content of the hidden folder is removed at the end, outside any lock.

use crate::error::{ErrorKind, Result};
use crate::store::filesystem::FilesystemStore;
use crate::store::flock::try_flock;
use crate::store::key::split;
use crate::store::new_file::{disappears, write};
use crate::store::removal::remove;
use crate::store::retry::Retry;
use crate::store::step::step;
use crate::store::temporary_name::{is_reserved, unique_name};
use crate::store::{Detached, Durability, Lock, Stage, Store, StoreWriter, check_key, join};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use zarrow_array::fork::generation;

/// The hidden folder of step 1.
pub struct FolderStage<'a> {
    store: &'a FilesystemStore,
    prefix: String,
    hidden: Hidden<'a>,
    inside: Arc<dyn Store>,
    durability: Durability,
}

/// A hidden folder, removed at the end (step 5).
struct Hidden<'a> {
    store: &'a FilesystemStore,
    path: String,
    generation: u64,
}

impl<'a> FolderStage<'a> {
    /// Creates a hidden folder for values to be published below `prefix`.
    pub fn new(store: &'a FilesystemStore, prefix: &str, durability: Durability) -> Result<FolderStage<'a>> {
        let mut parent = split(prefix).0;
        while !parent.is_empty() && store.folder(parent)?.is_none() {
            parent = split(parent).0;
        }
        let (hidden, folder) = Hidden::make(store, parent)?;
        let inside = Arc::new(store.below(folder, &hidden.path));
        Ok(FolderStage { store, prefix: prefix.to_owned(), hidden, inside, durability })
    }

    /// Steps 2 and 4. `None` if the existing folder is kept, because it is not to be replaced.
    fn swap(&self, replace: bool) -> Result<Option<()>> {
        let (root, hidden, place) = (self.store.root(), &*self.hidden.path, &*self.prefix);
        let flags = if replace { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(root, hidden, root, place, flags) {
            Ok(()) => return Ok(Some(())),
            Err(Errno::EXIST | Errno::NOTEMPTY) => return Ok(None),
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(write(error).into()),
        }
        if replace {
            let away = join(split(hidden).0, &unique_name());
            match rustix::fs::renameat(root, place, root, &away) {
                Ok(()) => drop(Hidden { store: self.store, path: away, generation: generation() }),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(write(error).into()),
            }
        }
        match rustix::fs::renameat(root, hidden, root, place) {
            Ok(()) => Ok(Some(())),
            Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(None),
            Err(error) => Err(write(error).into()),
        }
    }

    /// Step 3.
    fn move_each(&self, replace: bool, marks: &[&str]) -> Result<Option<Hidden<'a>>> {
        let place = self.store.folder(&self.prefix)?.ok_or(ErrorKind::NotFound)?;
        let away = match replace {
            true => Some(take_all(self.store, &self.prefix, marks)?),
            false => None,
        };
        let names = names(&self.hidden.folder()?, marks)?;
        for name in names.iter().rev() {
            let moved =
                rustix::fs::renameat(&self.hidden.folder()?, name.as_c_str(), &place, name.as_c_str());
            moved.map_err(write)?;
        }
        Ok(away)
    }
}

impl<'a> Stage<'a> for FolderStage<'a> {
    fn store(&self) -> &Arc<dyn Store> {
        &self.inside
    }

    fn publish(self: Box<Self>, replace: bool, marks: &[&str]) -> Result<Box<dyn Detached + 'a>> {
        let parent = split(&self.prefix).0;
        self.store.make_folders(parent)?;
        let swapped = if self.prefix.is_empty() { None } else { self.swap(replace)? };
        let away = match swapped {
            Some(()) => None,
            None => self.move_each(replace, marks)?,
        };
        self.store.sync_folders(&self.prefix, self.durability)?;
        Ok(Box::new(FolderRemains(away.into_iter().chain([self.hidden]).collect())))
    }
}

/// Moves everything directly below `prefix` to a hidden folder, the `marks` first.
pub fn detach_inside<'a>(
    store: &'a FilesystemStore,
    prefix: &str,
    marks: &[&str],
) -> Result<Option<Box<dyn Detached + 'a>>> {
    let Some(folder) = store.folder(prefix)? else { return Ok(None) };
    if names(&folder, marks)?.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(FolderRemains(vec![take_all(store, prefix, marks)?]))))
}

fn take_all<'a>(store: &'a FilesystemStore, prefix: &str, marks: &[&str]) -> Result<Hidden<'a>> {
    let (away, folder) = Hidden::make(store, prefix)?;
    let from = store.folder(prefix)?.ok_or(ErrorKind::NotFound)?;
    for name in names(&from, marks)? {
        let _lock = lock_of_value(store, prefix, &from, &name, marks)?;
        match rustix::fs::renameat(&from, name.as_c_str(), &folder, name.as_c_str()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(write(error).into()),
        }
    }
    Ok(away)
}

/// Takes the lock of `name` in the folder `prefix`, if it is a value and not one of the marks.
fn lock_of_value<'a>(
    store: &'a FilesystemStore,
    prefix: &str,
    folder: &OwnedFd,
    name: &CStr,
    marks: &[&str],
) -> Result<Option<Box<dyn Lock + 'a>>> {
    let Ok(text) = name.to_str() else { return Ok(None) };
    let key = join(prefix, text);
    if marks.contains(&text) || check_key(&key).is_err() {
        return Ok(None);
    }
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
            store.lock(&key, &|| Ok(())).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the names in `folder` except writers' temporary files, the `marks` first.
fn names(folder: impl AsFd, marks: &[&str]) -> Result<Vec<CString>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder).map_err(write)? {
        let name = entry.map_err(write)?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") && !name.to_str().is_ok_and(is_reserved) {
            found.push(name);
        }
    }
    let rank = |name: &CString| {
        marks.iter().position(|mark| mark.as_bytes() == name.as_bytes()).unwrap_or(marks.len())
    };
    found.sort_by_key(rank);
    Ok(found)
}

/// Renames the folder `prefix` to a hidden name, if it exists.
pub fn detach<'a>(store: &'a FilesystemStore, prefix: &str) -> Result<Option<Box<dyn Detached + 'a>>> {
    let path = join(split(prefix).0, &unique_name());
    step("rename a folder away");
    match rustix::fs::renameat(store.root(), prefix, store.root(), &path) {
        Ok(()) => Ok(Some(Box::new(FolderRemains(vec![Hidden { store, path, generation: generation() }])))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(write(error).into()),
    }
}

/// Hidden folders with values that are no longer needed.
struct FolderRemains<'a>(Vec<Hidden<'a>>);

/// Returns the result of a detach that has nothing left to remove.
pub fn nothing_left<'a>() -> Box<dyn Detached + 'a> {
    Box::new(FolderRemains(Vec::new()))
}

impl<'a> Detached for FolderRemains<'a> {
    fn clear(self: Box<Self>) -> Result<()> {
        self.0.into_iter().try_for_each(Hidden::clear)
    }
}

impl<'a> Hidden<'a> {
    /// Creates a hidden folder in the folder `parent` and locks it (step 1).
    fn make(store: &'a FilesystemStore, parent: &str) -> Result<(Hidden<'a>, OwnedFd)> {
        let mut retry = Retry::race();
        loop {
            let path = join(parent, &unique_name());
            match rustix::fs::mkdirat(store.root(), &path, Mode::from_raw_mode(0o777)) {
                Ok(()) => {}
                Err(Errno::EXIST) => {
                    retry.again(&|| Ok(()), || write(Errno::EXIST).into())?;
                    continue;
                }
                Err(error) => return Err(write(error).into()),
            }
            let hidden = Hidden { store, path, generation: generation() };
            let folder = match hidden.folder() {
                Ok(folder) => folder,
                // A sweep removed it before it was locked.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {
                    retry.again(&|| Ok(()), || disappears(parent))?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_ours = try_flock(&folder).unwrap_or(true);
            if is_ours && rustix::fs::fstat(&folder).map_err(write)?.st_nlink > 0 {
                return Ok((hidden, folder));
            }
            retry.again(&|| Ok(()), || disappears(parent))?;
        }
    }

    fn folder(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::openat(self.store.root(), &self.path, flags, Mode::empty()) {
            Ok(folder) => Ok(folder),
            Err(Errno::NOENT) => Err(ErrorKind::NotFound.into()),
            Err(error) => Err(write(error).into()),
        }
    }

    fn remove(&mut self) -> Result<(), Errno> {
        let path = std::mem::take(&mut self.path);
        // In a forked child, the folder belongs to the parent.
        if path.is_empty() || self.generation != generation() {
            return Ok(());
        }
        let name = CString::new(path).map_err(|_| Errno::INVAL)?;
        step("remove a folder");
        match remove(self.store.root(), &name) {
            // Another process's sweep may have removed it first, or a writer may still add files: a later sweep removes
            // those.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn clear(mut self) -> Result<()> {
        let path = self.path.clone();
        self.remove().map_err(|error| {
            let error = std::io::Error::from(error);
            let text = format!("cannot remove the erased data, which are now at {path}: {error}");
            ErrorKind::Write(std::io::Error::new(error.kind(), text)).into()
        })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}
