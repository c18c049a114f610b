//! The values of a whole node in a hidden folder: before they are published, or after they were replaced.
//!
//! 1. The folder is created beside the node, under a name that is not a key. Its owner holds a lock on it, so that a
//!    sweep keeps it until the owner has ended.
//! 2. To publish the values, the folder is exchanged with the node's folder in one step. The hidden name then refers to
//!    the old values.
//! 3. A store's root cannot be exchanged, and neither can a folder that must be kept or cannot be renamed. There, values
//!    are moved one by one (`moving`). The `marks`, the node's documents, are removed first and set last, so that
//!    readers find no node rather than a mixed one. After an error, the new values are moved out again, and the old
//!    ones back.
//! 4. On a file system without exchange, the old folder is moved away, and then the new one into its place.
//! 5. The remaining content of the hidden folder is removed at the end, outside any lock.

use crate::error::key_fault::RESERVED;
use crate::error::{Error, ErrorKind, Result};
use crate::store::fault_point::{fault, step};
use crate::store::filesystem::FilesystemStore;
use crate::store::flock_call::try_flock;
use crate::store::key::split;
use crate::store::move_entries::{Source, move_back, names, remove_folder, rename};
use crate::store::owner::unique;
use crate::store::removal::remove;
use crate::store::retry::Retry;
use crate::store::system_calls;
use crate::store::temporary_name::unique_name;
use crate::store::write_errors::{behind_link, disappears, write};
use crate::store::{Detached, Durability, Stage, Store, join};
use rustix::fs::{Mode, RenameFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::OwnedFd;
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
pub struct Hidden<'a> {
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

    /// Steps 2 and 4. `None` if the existing folder is kept, because it is not to be replaced or cannot be renamed.
    fn swap(&self, replace: bool) -> Result<Option<()>> {
        let root = self.store.root();
        let (hidden, place) = (path_name(&self.hidden.path)?, path_name(&self.prefix)?);
        let flags = if replace { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        match rename(root, &hidden, root, &place, flags) {
            Ok(()) => return Ok(Some(())),
            Err(Errno::EXIST | Errno::NOTEMPTY) => return Ok(None),
            Err(Errno::XDEV) if replace => return Ok(None),
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(write(error).into()),
        }
        let mut old = None;
        if replace {
            let path = join(split(&self.hidden.path).0, &unique_name());
            match rename(root, &place, root, &path_name(&path)?, RenameFlags::empty()) {
                Ok(()) => old = Some(Hidden { store: self.store, path, generation: generation() }),
                Err(Errno::NOENT) => {}
                Err(Errno::XDEV) => return Ok(None),
                Err(error) => return Err(write(error).into()),
            }
        }
        match rename(root, &hidden, root, &place, RenameFlags::empty()) {
            Ok(()) => Ok(Some(())),
            Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(None),
            Err(error) => {
                let error = write(error).into();
                let Some(mut old) = old else { return Err(error) };
                match rename(root, &path_name(&old.path)?, root, &place, RenameFlags::NOREPLACE) {
                    Ok(()) => {
                        old.path.clear();
                        Err(error)
                    }
                    Err(back) => Err(old.keep(&error, &write(back).into())),
                }
            }
        }
    }

    /// Step 3.
    fn move_each(&self, replace: bool, marks: &[&str]) -> Result<Option<Hidden<'a>>> {
        let not_found = || behind_link(self.store.root(), &self.prefix).unwrap_or(ErrorKind::NotFound);
        let place = self.store.folder(&self.prefix)?.ok_or_else(not_found)?;
        let inside = self.hidden.folder()?;
        let new = names(&inside, marks)?;
        let away = match replace {
            true => Some(take_all(self.store, &self.prefix, marks)?),
            false => None,
        };
        let move_one = |from: &OwnedFd, to: &OwnedFd, name: &CString| -> Result<()> {
            Ok(rename(from, name, to, name, RenameFlags::empty()).map_err(write)?)
        };
        for (at, name) in new.iter().enumerate().rev() {
            let Err(error) = move_one(&inside, &place, name) else { continue };
            let back = new[at + 1..].iter().try_for_each(|name| move_one(&place, &inside, name));
            return Err(match (away, back) {
                (Some(away), Ok(())) => away.give_back(&place, marks, error),
                (Some(away), Err(back)) => away.keep(&error, &back),
                (None, _) => error,
            });
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
        Ok(FolderRemains::of(away.into_iter().chain([self.hidden]).collect()))
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
    Ok(Some(FolderRemains::of(vec![take_all(store, prefix, marks)?])))
}

fn take_all<'a>(store: &'a FilesystemStore, prefix: &str, marks: &[&str]) -> Result<Hidden<'a>> {
    let (away, folder) = Hidden::make(store, prefix)?;
    let from = store.folder(prefix)?.ok_or(ErrorKind::NotFound)?;
    let from = Source::new(store, prefix, from, marks);
    let taken = from.names().and_then(|names| names.iter().try_for_each(|name| from.move_to(&folder, name)));
    match taken {
        Ok(()) => Ok(away),
        Err(error) => Err(away.give_back(from.folder(), marks, error)),
    }
}

/// Erases the folder `prefix`, which cannot be renamed: the `marks` first, in a way that an error undoes. After that
/// there is no node, and the result reports an error.
fn erase_in_place<'a>(
    store: &'a FilesystemStore,
    prefix: &str,
    marks: &[&str],
) -> Result<Option<Box<dyn Detached + 'a>>> {
    let Some(from) = store.folder(prefix)? else { return Ok(None) };
    let from = Source::new(store, prefix, from, marks);
    let (parent, name) = split(prefix);
    let above = store.folder(parent)?.ok_or(ErrorKind::NotFound)?;
    let (away, folder) = Hidden::make(store, parent)?;
    let (first, rest): (Vec<CString>, Vec<CString>) =
        from.names()?.into_iter().partition(|name| name.to_str().is_ok_and(|name| marks.contains(&name)));
    if let Err(error) = first.iter().try_for_each(|name| from.move_to(&folder, name)) {
        return Err(away.give_back(from.folder(), marks, error));
    }
    let name = path_name(name)?;
    let erased =
        rest.iter().try_for_each(|name| from.erase(name)).and_then(|()| remove_folder(&above, &name));
    let left = erased.err().map(|error| {
        let text = format!("the node was erased, but some of its data remain at {prefix}: {}", error.kind());
        ErrorKind::Write(std::io::Error::other(text)).into()
    });
    Ok(Some(Box::new(FolderRemains { hidden: vec![away], left })))
}

/// Returns a path or name for a system call.
pub fn path_name(path: &str) -> Result<CString> {
    Ok(CString::new(path).map_err(|_| write(Errno::INVAL))?)
}

/// Renames the folder `prefix` to a hidden name, if it exists.
pub fn detach<'a>(
    store: &'a FilesystemStore,
    prefix: &str,
    marks: &[&str],
) -> Result<Option<Box<dyn Detached + 'a>>> {
    let path = join(split(prefix).0, &unique_name());
    step("rename a folder away");
    let (place, away) = (path_name(prefix)?, path_name(&path)?);
    match rename(store.root(), &place, store.root(), &away, RenameFlags::empty()) {
        Ok(()) => Ok(Some(FolderRemains::of(vec![Hidden { store, path, generation: generation() }]))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(Errno::XDEV) => erase_in_place(store, prefix, marks),
        Err(error) => Err(write(error).into()),
    }
}

/// Hidden folders with values that are no longer needed.
struct FolderRemains<'a> {
    hidden: Vec<Hidden<'a>>,
    /// The error of values that could not be removed.
    left: Option<Error>,
}

impl<'a> FolderRemains<'a> {
    fn of(hidden: Vec<Hidden<'a>>) -> Box<dyn Detached + 'a> {
        Box::new(FolderRemains { hidden, left: None })
    }
}

/// Returns the result of a detach that has nothing left to remove.
pub fn nothing_left<'a>() -> Box<dyn Detached + 'a> {
    FolderRemains::of(Vec::new())
}

impl<'a> Detached for FolderRemains<'a> {
    fn clear(self: Box<Self>) -> Result<()> {
        self.hidden.into_iter().try_for_each(Hidden::clear)?;
        self.left.map_or(Ok(()), Err)
    }
}

impl<'a> Hidden<'a> {
    /// Creates a hidden folder in the folder `parent` and locks it (step 1).
    pub fn make(store: &'a FilesystemStore, parent: &str) -> Result<(Hidden<'a>, OwnedFd)> {
        let mut retry = Retry::race();
        loop {
            let path = join(parent, &unique_name());
            let make = || system_calls::mkdirat(store.root(), &path, Mode::from_raw_mode(0o777));
            match fault().and_then(|()| make()) {
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
                    retry.again(&|| Ok(()), || disappears(store.root(), parent))?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_ours = try_flock(&folder).unwrap_or(true);
            if is_ours && system_calls::fstat(&folder).map_err(write)?.st_nlink > 0 {
                return Ok((hidden, folder));
            }
            retry.again(&|| Ok(()), || disappears(store.root(), parent))?;
        }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Keeps the folder, which has another name now.
    pub fn forget(&mut self) {
        self.path.clear();
    }

    /// Opens the folder.
    pub fn folder(&self) -> Result<OwnedFd> {
        match system_calls::open_folder(self.store.root(), &*self.path) {
            Ok(folder) => Ok(folder),
            Err(Errno::NOENT) => Err(ErrorKind::NotFound.into()),
            Err(error) => Err(write(error).into()),
        }
    }

    /// Moves everything back to the folder `place`, the `marks` last, and returns the `error` that led here.
    fn give_back(self, place: &OwnedFd, marks: &[&str], error: Error) -> Error {
        let back = self.folder().and_then(|folder| {
            names(&folder, marks)?.iter().rev().try_for_each(|name| move_back(&folder, place, name, marks))
        });
        match back {
            Ok(()) => error,
            Err(back) => self.keep(&error, &back),
        }
    }

    /// Keeps the folder under a name that no sweep removes, because its content could not be moved back; returns an
    /// error that says where.
    fn keep(mut self, error: &Error, back: &Error) -> Error {
        let path = std::mem::take(&mut self.path);
        let kept = join(split(&path).0, &format!("{RESERVED}kept-{}", unique()));
        let renamed = system_calls::renameat(self.store.root(), &*path, self.store.root(), &*kept);
        let at = if renamed.is_ok() { kept } else { path };
        let text = format!(
            "{}, and the old data, which are now at {at}, could not be moved back ({}): move them back by hand",
            error.kind(),
            back.kind()
        );
        ErrorKind::Write(std::io::Error::other(text)).into()
    }

    fn remove(&mut self) -> Result<(), Errno> {
        let path = std::mem::take(&mut self.path);
        // In a forked child, the folder belongs to the parent.
        if path.is_empty() || self.generation != generation() {
            return Ok(());
        }
        let name = CString::new(path).map_err(|_| Errno::INVAL)?;
        step("remove a folder");
        fault()?;
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
