//! Lock of one key of a store in a folder: a file beside the value.
//!
//! 1. The file is created if it is missing, and locked with `flock`. The kernel unlocks it when the process ends, in
//!    whatever way.
//! 2. The holder removes the file before unlocking it. A process that gets the lock of a file that has been removed
//!    starts again. So the holder is always the process that has locked the file that now has this name, and the
//!    file exists as long as the lock is held.
//! 3. A killed holder leaves its file, unlocked: the next holder takes it over, and a sweep removes it. A child that
//!    the holder forked does not keep the lock.
//! 4. On a file system without `flock`, the lock is a dangling link. Its text names the process that created it, which
//!    is the holder. If that process was on this machine and has ended, one other process removes the link: the one
//!    that first creates a claim file for it. Whether a process on another machine has ended is unknown: zarrow waits
//!    for the lock, and after some time raises an error that says what to do. It waits less for a lock file of step 1,
//!    which names no holder.
//! 5. The holder keeps the folder of the file open, and changes the value there. If the folder is erased, the file and
//!    the value go with it, and so do later writes of the holder: they do not come back at the old path.
//! 6. In a folder where several users may write, each of them may lock the file: it is opened for reading if another
//!    user made it, and its permissions are widened by its maker.

use crate::error::key_fault::RESERVED;
use crate::error::{Error, ErrorKind, Result};
use crate::store::Lock;
use crate::store::fault_point::{fault, step};
use crate::store::filesystem::FilesystemStore;
use crate::store::flock_call::{is_still, try_flock};
use crate::store::key::split;
use crate::store::owner::{Owner, unique};
use crate::store::retry::Retry;
use crate::store::system_calls;
use crate::store::temporary_name::{lock_name, lock_path};
use crate::store::write_errors::{MODE, disappears, write};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zarrow_array::fork::{File, generation};

/// Maximum wait for an unknown holder, measured by the age of its file (step 4).
const PATIENCE: Duration = Duration::from_secs(600);

/// Maximum wait for a regular file, which names no holder. A process that can use `flock` made it.
const FILE_PATIENCE: Duration = Duration::from_secs(30);

/// A held lock.
pub struct FileLock {
    key: String,
    name: String,
    folder: Arc<OwnedFd>,
    /// The file, if it is locked with `flock`.
    file: Option<File>,
    generation: u64,
}

impl Lock for FileLock {
    fn key(&self) -> &str {
        &self.key
    }

    fn folder(&self) -> Option<&Arc<OwnedFd>> {
        Some(&self.folder)
    }
}

impl FileLock {
    /// Takes the lock of `key`; `None` if it is held.
    pub fn take(store: &FilesystemStore, key: &str) -> Result<Option<FileLock>> {
        let (parent, name) = split(key);
        let name = lock_name(name);
        let mut retry = Retry::race();
        loop {
            step("open the folder of a lock");
            let folder = store.made_folder(parent)?;
            store.sweep_once(parent);
            let file = match store.system().has_flock(&folder) {
                Ok(true) => lock_file(&folder, &name).map(|file| file.map(Some)),
                Ok(false) => lock_link(&folder, &name, key)?.map(|made| made.then_some(None)),
                Err(error) => Err(error),
            };
            match file {
                Ok(None) => return Ok(None),
                Ok(Some(file)) => {
                    let (key, folder, generation) = (key.to_owned(), Arc::new(folder), generation());
                    return Ok(Some(FileLock { key, name, folder, file, generation }));
                }
                // The folder was erased since it was opened.
                Err(Errno::NOENT) => retry.again(&|| Ok(()), || disappears(store.root(), parent))?,
                Err(error) => return Err(write(error).into()),
            }
        }
    }
}

/// Steps 1 and 2: returns the locked file; `None` if its lock is held.
fn lock_file(folder: &OwnedFd, name: &str) -> Result<Option<File>, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut retry = Retry::race();
    loop {
        step("make or open the file of a lock");
        fault()?;
        let held = match File::open(|| system_calls::openat(folder, name, flags, MODE)) {
            // Step 6. Without a file, the folder is closed to this user.
            Err(Errno::ACCESS) => File::open(|| {
                let flags = flags.difference(OFlags::RDWR | OFlags::CREATE);
                system_calls::openat(folder, name, flags, MODE).map_err(|_| Errno::ACCESS)
            })?,
            opened => opened?,
        };
        let Some(file) = held.get() else { return Ok(None) };
        if is_narrow(folder, file) {
            let _ = system_calls::fchmod(file, Mode::from_raw_mode(0o666));
        }
        step("lock");
        if !try_flock(file)? {
            return Ok(None);
        }
        step("check that the lock file still has its name");
        if is_still(folder, name, file)? {
            return Ok(Some(held));
        }
        // Other processes keep taking and releasing the lock: report it as held, so that the caller waits.
        if retry.again(&|| Ok(()), || ErrorKind::Conflict.into()).is_err() {
            return Ok(None);
        }
    }
}

/// Step 6: whether users who may write in the folder could not open the file, which this process made.
fn is_narrow(folder: &OwnedFd, file: &OwnedFd) -> bool {
    let (Ok(folder), Ok(file)) = (system_calls::fstat(folder), system_calls::fstat(file)) else {
        return false;
    };
    let shared = folder.st_mode & 0o022;
    shared != 0 && file.st_mode & shared != shared && file.st_size == 0
}

/// Step 4: returns whether the link was created, so that this process holds the lock.
fn lock_link(folder: &OwnedFd, name: &str, key: &str) -> Result<Result<bool, Errno>> {
    let mut retry = Retry::race();
    loop {
        match system_calls::symlinkat(&unique(), folder, name) {
            Ok(()) => return Ok(Ok(true)),
            Err(Errno::EXIST) => {}
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                let text = "file locks on this file system: writing part of a chunk or a document needs them";
                return Err(ErrorKind::Unsupported(text.into()).into());
            }
            Err(error) => return Ok(Err(error)),
        }
        match remove_dead(folder, name) {
            Ok(true) | Err(Errno::NOENT) => {
                if retry.again(&|| Ok(()), || ErrorKind::Conflict.into()).is_err() {
                    return Ok(Ok(false));
                }
            }
            Ok(false) => match stuck(folder, name, key) {
                Some(error) => return Err(error),
                None => return Ok(Ok(false)),
            },
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// Removes the link of a holder that has certainly ended, if this process creates the claim file for it; returns
/// whether another attempt makes sense.
fn remove_dead(folder: &OwnedFd, name: &str) -> Result<bool, Errno> {
    let holder = holder(folder, name)?;
    if !Owner::parse(&holder).is_some_and(Owner::is_dead) {
        return Ok(false);
    }
    let claim = format!("{RESERVED}claim-{holder}");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    match system_calls::openat(folder, &*claim, flags, MODE) {
        Ok(_) => {}
        Err(Errno::EXIST) => return Ok(false),
        Err(error) => return Err(error),
    }
    // Only the process with the claim removes the link of this holder, so an existing link with the same text is that
    // link.
    let removed = match self::holder(folder, name) {
        Ok(found) if found == holder => system_calls::unlinkat(folder, name, AtFlags::empty()),
        _ => Ok(()),
    };
    let _ = system_calls::unlinkat(folder, &*claim, AtFlags::empty());
    removed.map(|()| true)
}

fn holder(folder: &OwnedFd, name: &str) -> Result<String, Errno> {
    match system_calls::readlinkat(folder, name) {
        Ok(holder) => Ok(holder.to_string_lossy().into_owned()),
        // A regular file, which does not name the process that created it.
        Err(Errno::INVAL) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Returns the error for a lock if its file is too old.
///
/// A holder on this machine lives, since [`remove_dead`] left its link. The clock of a file server may differ from ours.
fn stuck(folder: &OwnedFd, name: &str, key: &str) -> Option<Error> {
    let owner = Owner::parse(&holder(folder, name).ok()?);
    if owner.is_some_and(|owner| owner.is_identified() && owner.is_of_this_machine()) {
        return None;
    }
    let found = system_calls::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let made = u64::try_from(found.st_mtime).map(Duration::from_secs).ok()?;
    let age = SystemTime::now().duration_since(UNIX_EPOCH + made).ok()?;
    let (patience, reason) = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => (
            FILE_PATIENCE,
            "was made by a process that can lock files, which this process cannot (`flock` fails here): that \
             process still writes, or was killed",
        ),
        _ => (PATIENCE, "is held by another machine, or was left there by a killed process"),
    };
    let text = format!("the lock {} {reason}: if no process writes, remove it", lock_path(key));
    (age > patience).then(|| ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::TimedOut, text)).into())
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // In a forked child, the lock belongs to the parent.
        if self.generation != generation() {
            return;
        }
        step("remove the file of a lock");
        let _ = system_calls::unlinkat(&self.folder, &*self.name, AtFlags::empty());
        if let Some(file) = self.file.as_ref().and_then(File::get) {
            step("unlock");
            // A child forked just now also has the file open, so closing it here would not unlock it.
            let _ = system_calls::flock(file, rustix::fs::FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_names_no_holder_ends_the_wait_early() {
        let folder = tempfile::tempdir().unwrap();
        let store = FilesystemStore::create(folder.path()).unwrap();
        let root = store.folder("").unwrap().unwrap();
        let file = std::fs::File::create(folder.path().join(lock_name("x"))).unwrap();
        assert!(!lock_link(&root, &lock_name("x"), "x").unwrap().unwrap());
        file.set_modified(SystemTime::now() - FILE_PATIENCE - Duration::from_secs(5)).unwrap();
        let error = lock_link(&root, &lock_name("x"), "x").unwrap_err().to_string();
        assert!(
            error.contains("the lock .zarrow-lock-x was made by a process that can lock files"),
            "{error}"
        );
    }
}
