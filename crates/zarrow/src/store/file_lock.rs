//! The lock of one key of a store in a folder: an `flock` on a file beside the value.
//!
//! 1. The file is made where it is not there, and locked. The kernel unlocks it when the process ends, however it ends.
//! 2. Who holds the lock removes the file before unlocking it. Who got the lock of a file that was removed meanwhile
//!    begins again: so the holder is always the one whose lock is on the file of that name.
//! 3. The file of a holder that was killed stays, without a lock: the next one takes it over, and a sweep removes it.
//!    A child that the holder forked does not keep the lock.

use crate::error::{ErrorKind, Result};
use crate::store::filesystem::FilesystemStore;
use crate::store::filesystem_writer::{split, write};
use crate::store::fork::OfThisProcess;
use crate::store::key::RESERVED;
use crate::store::leftover::{is_still, try_flock};
use crate::store::{Lock, join};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// The path of the lock's file for `key`.
pub fn lock_path(key: &str) -> String {
    let (parent, name) = split(key);
    join(parent, &format!("{RESERVED}lock-{name}"))
}

/// A lock that is held.
pub struct FileLock<'a> {
    store: &'a FilesystemStore,
    path: String,
    file: OfThisProcess,
}

impl Lock for FileLock<'_> {}

impl<'a> FileLock<'a> {
    /// The lock of `key`, `None` where somebody has it.
    pub fn take(store: &'a FilesystemStore, key: &str) -> Result<Option<FileLock<'a>>> {
        let path = lock_path(key);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            let held = OfThisProcess::new(store.open_new(&path, flags)?);
            let Some(file) = held.file() else { return Ok(None) };
            match try_flock(file) {
                Ok(true) if is_still(store.root(), &path, file).map_err(write)? => {
                    return Ok(Some(FileLock { store, path, file: held }));
                }
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => {
                    let text = "locks, which writing a part of a chunk needs, on this file system";
                    return Err(ErrorKind::Unsupported(text.into()).into());
                }
                Err(error) => return Err(write(error).into()),
            }
        }
    }
}

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        // The lock of a process that was forked is its parent's to give up.
        if let Some(file) = self.file.file() {
            let _ = rustix::fs::unlinkat(self.store.root(), &self.path, AtFlags::empty());
            // A child that was forked just now has the file open too, and closing it here alone would not unlock it.
            let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
        }
    }
}

/// Files of locks and of values are made as any other: the process's mask says who may do what.
pub const MODE: Mode = Mode::from_raw_mode(0o666);
