//! Replaces a whole folder, such as the root of a store, by one that was built beside it.
//!
//! 1. The new folder is built in the folder above, under a hidden name and locked, as for a stage (`staging`).
//! 2. One system call exchanges the two folders, or gives the new one its name if nothing or an empty folder is there.
//! 3. The old folder is made inaccessible and removed: unless it runs as root, a program that has it open gets errors
//!    for its chunks, and not fill values.
//! 4. Nothing changes if a replacement is impossible: without permission in the folder above, for a mount point, a folder
//!    with other files, a file system that cannot exchange folders, and the current folder, which would be removed.

use crate::error::{Error, ErrorKind, Result};
use crate::store::filesystem::FilesystemStore;
use crate::store::leftover_files::sweep_folder;
use crate::store::move_entries::rename;
use crate::store::removal::empty;
use crate::store::retry::Retry;
use crate::store::staging::{Hidden, path_name};
use crate::store::system_calls;
use crate::store::write_errors::{disappears, write};
use crate::store::{Store, open_path};
use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Replaces the folder `path` by one that `build` fills, in one step. `may_replace` is called right before, and returns
/// whether a non-empty folder at `path` may be replaced. Returns false, and changes nothing, if that is impossible.
///
/// # Errors
/// [`ErrorKind::Write`], and errors of `build` and `may_replace`; `path` is then unchanged.
///
/// ```
/// use zarrow::store::{FilesystemStore, Store, replace_folder};
/// let above = tempfile::tempdir()?;
/// let path = above.path().join("a");
/// for value in [b"1", b"2"] {
///     let build = |store: std::sync::Arc<dyn Store>| {
///         store.writer().map_or(Ok(()), |writer| writer.set("x", &[value], Default::default()))
///     };
///     assert!(replace_folder(&path, build, || Ok(true))?);
///     assert_eq!(FilesystemStore::open(&path)?.get("x", 1)?, Some(value.to_vec()));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replace_folder(
    path: &Path,
    build: impl FnOnce(Arc<dyn Store>) -> Result<()>,
    may_replace: impl Fn() -> Result<bool>,
) -> Result<bool> {
    let Some((above, name)) = place(path) else { return Ok(false) };
    let is_empty = |mut entries: std::fs::ReadDir| entries.next().is_none();
    if !std::fs::read_dir(path).map_or(true, is_empty) && !is_replaceable(path, &may_replace)? {
        return Ok(false);
    }
    let Some(store) = unless_impossible(FilesystemStore::create(&above))? else { return Ok(false) };
    // Leftovers that cannot be removed are harmless.
    let _ = sweep_folder(store.root());
    let Some((mut hidden, folder)) = unless_impossible(Hidden::make(&store, ""))? else { return Ok(false) };
    let inside = Arc::new(store.below(folder, hidden.path()));
    build(Arc::clone(&inside) as Arc<dyn Store>)?;
    let put = put(&store, &hidden, &inside, &name, &|| is_replaceable(path, &may_replace));
    match unless_impossible(put)? {
        None | Some(Put::Refused) => return Ok(false),
        Some(Put::Renamed) => hidden.forget(),
        Some(Put::Exchanged) => remove_old(&store, &mut hidden),
    }
    Ok(true)
}

/// Returns whether the folder `path` may be replaced. If the answer is false and another process has
/// replaced the folder since, asks again: the answer may describe the old folder, or a path without one.
fn is_replaceable(path: &Path, may_replace: &dyn Fn() -> Result<bool>) -> Result<bool> {
    let mut retry = Retry::race();
    loop {
        let before = folder_number(path);
        let may_be = may_replace()?;
        if may_be || folder_number(path) == before {
            return Ok(may_be);
        }
        retry.again(&|| Ok(()), || ErrorKind::Conflict.into())?;
    }
}

/// Opens the store at `path` as [`open_path`] does and calls `open`. If `open` finds no node and another process has
/// replaced the folder since, opens it again: a node exists at `path` at every moment.
///
/// # Errors
/// As [`open_path`], and errors of `open`.
pub fn open_path_with<T>(path: &Path, open: impl Fn(Arc<dyn Store>) -> Result<T>) -> Result<T> {
    let mut retry = Retry::race();
    loop {
        let store = open_path(path)?;
        let was_replaced = || {
            let opened = store.folder_number("");
            opened.is_some() && folder_number(path).is_some_and(|now| Some(now) != opened)
        };
        match open(Arc::clone(&store)) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) && was_replaced() => {
                retry.again(&|| Ok(()), || error)?;
            }
            opened => return opened,
        }
    }
}

/// Returns a number for the folder that is now at `path`, as [`Store::folder_number`].
fn folder_number(path: &Path) -> Option<[u64; 2]> {
    std::fs::metadata(path).ok().map(|folder| [folder.dev(), folder.ino()])
}

/// What became of a new folder.
enum Put {
    Refused,
    Renamed,
    Exchanged,
}

/// Step 2.
fn put(
    store: &FilesystemStore,
    hidden: &Hidden<'_>,
    inside: &FilesystemStore,
    name: &str,
    may_replace: &dyn Fn() -> Result<bool>,
) -> Result<Put> {
    let (root, new, place) = (store.root(), path_name(hidden.path())?, path_name(name)?);
    let folder = inside.folder("")?.ok_or(ErrorKind::NotFound)?;
    let mut retry = Retry::race();
    loop {
        match rename(root, &new, root, &place, RenameFlags::empty()) {
            Ok(()) => return Ok(Put::Renamed),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Err(write(error).into()),
        }
        if !may_replace()? {
            return Ok(Put::Refused);
        }
        let exchange = || {
            let old = system_calls::statat(root, &place, AtFlags::empty())?;
            system_calls::fchmod(&folder, Mode::from_raw_mode(old.st_mode))?;
            rename(root, &new, root, &place, RenameFlags::EXCHANGE)
        };
        match exchange() {
            Ok(()) => return Ok(Put::Exchanged),
            // Another program removed it since.
            Err(Errno::NOENT) => retry.again(&|| Ok(()), || disappears(root, name))?,
            Err(error) => return Err(write(error).into()),
        }
    }
}

/// Step 3. What cannot be removed is hidden, and later sweeps remove it.
fn remove_old(store: &FilesystemStore, hidden: &mut Hidden<'_>) {
    let Ok(old) = hidden.folder() else { return };
    if empty(&old).is_ok() {
        let _ = system_calls::fchmod(&old, Mode::empty());
        match system_calls::unlinkat(store.root(), hidden.path(), AtFlags::REMOVEDIR) {
            Ok(()) => hidden.forget(),
            Err(_) => drop(system_calls::fchmod(&old, Mode::RWXU)),
        }
    }
}

/// Returns the folder above `path` and the name in it, with links resolved; `None` where a replacement is impossible.
fn place(path: &Path) -> Option<(PathBuf, String)> {
    let path = std::path::absolute(path).ok()?;
    let path = match path.canonicalize() {
        Ok(path) if !path.is_dir() => return None,
        Ok(path) => path,
        Err(_) if path.is_symlink() => return None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path,
        Err(_) => return None,
    };
    if std::env::current_dir().is_ok_and(|current| current.starts_with(&path)) {
        return None;
    }
    let name = path.file_name()?.to_str()?.to_owned();
    Some((path.parent()?.to_owned(), name))
}

/// Returns `None` for an error that says that a replacement is impossible (step 4).
fn unless_impossible<T>(result: Result<T>) -> Result<Option<T>> {
    let is_impossible = |error: &Error| match error.kind() {
        ErrorKind::Write(error) | ErrorKind::Io(error) => {
            matches!(
                Errno::from_io_error(error),
                Some(
                    Errno::ACCESS
                        | Errno::PERM
                        | Errno::ROFS
                        | Errno::BUSY
                        | Errno::XDEV
                        | Errno::INVAL
                        | Errno::NOSYS
                        | Errno::OPNOTSUPP
                )
            )
        }
        _ => false,
    };
    match result {
        Err(error) if is_impossible(&error) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Durability;
    use std::cell::Cell;

    #[test]
    fn a_folder_that_was_replaced_during_the_question_is_asked_about_again() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("a");
        let build = |store: Arc<dyn Store>| {
            store.writer().map_or(Ok(()), |writer| writer.set("x", &[b"2"], Durability::default()))
        };
        let questions = Cell::new(0);
        let may_replace = || {
            questions.set(questions.get() + 1);
            // Another program replaces it twice.
            if questions.get() < 3 {
                let other = above.path().join("other");
                std::fs::create_dir(&other).unwrap();
                std::fs::write(other.join("x"), b"1").unwrap();
                std::fs::rename(&path, above.path().join(format!("old{}", questions.get()))).unwrap();
                std::fs::rename(&other, &path).unwrap();
            }
            Ok(questions.get() > 2)
        };
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("x"), b"0").unwrap();
        assert!(replace_folder(&path, build, may_replace).unwrap());
        assert_eq!(std::fs::read(path.join("x")).unwrap(), b"2");
    }
    #[test]
    fn a_folder_that_is_replaced_while_it_is_opened_is_opened_again() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("a");
        std::fs::create_dir(&path).unwrap();
        let tries = Cell::new(0);
        let open = |store: Arc<dyn Store>| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 {
                std::fs::rename(&path, above.path().join("old")).unwrap();
                std::fs::create_dir(&path).unwrap();
                std::fs::write(path.join("x"), b"1").unwrap();
            }
            store.get("x", 1)?.ok_or_else(|| ErrorKind::NotFound.into())
        };
        assert_eq!(open_path_with(&path, open).unwrap(), b"1");
        assert_eq!(tries.get(), 2);
        let missing = open_path_with(&path, |_| -> Result<()> { Err(ErrorKind::NotFound.into()) });
        assert!(matches!(missing.unwrap_err().kind(), ErrorKind::NotFound));
    }
}
