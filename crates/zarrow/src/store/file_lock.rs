//! The lock of one key of a store in a folder: a file beside the value.
//!
//! 1. The file is made where it is not there, and locked by `flock`. The kernel unlocks it when the process ends, however it
//!    ends.
//! 2. Who holds the lock removes the file before unlocking it. Who got the lock of a file that was removed meanwhile
//!    begins again: so the holder is always the one whose lock is on the file of that name, and the file is there as long as
//!    anybody holds the lock.
//! 3. The file of a holder that was killed stays, without a lock: the next one takes it over, and a sweep removes it.
//!    A child that the holder forked does not keep the lock.
//! 4. Where the file system has no `flock`, who made the file holds the lock, and writes to it who he is. The file of a holder
//!    of this machine that has ended is removed, by the one that made the file of a claim on it. One of another machine
//!    may have ended or not: it is waited for, and after some time that is an error which says what to do.
//! 5. The holder keeps the folder of the file open, and changes the value there. A folder that is erased takes the file and
//!    the value with it, and what the holder sets goes the same way: it does not come back where the folder was.

use crate::error::{ErrorKind, Result};
use crate::store::filesystem::FilesystemStore;
use crate::store::filesystem_writer::{split, write};
use crate::store::key::RESERVED;
use crate::store::leftover::{is_still, try_flock};
use crate::store::owner::{Owner, unique};
use crate::store::step::step;
use crate::store::{Lock, join};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zarrow_array::fork::File;

/// Files of locks and of values are made as any other: the process's mask says who may do what.
pub const MODE: Mode = Mode::from_raw_mode(0o666);

/// How old the file of an unknown holder is when it is no longer waited for (step 4).
const PATIENCE: Duration = Duration::from_secs(600);

/// The path of the lock's file for `key`.
pub fn lock_path(key: &str) -> String {
    let (parent, name) = split(key);
    join(parent, &lock_name(name))
}

fn lock_name(name: &str) -> String {
    format!("{RESERVED}lock-{name}")
}

/// A lock that is held.
pub struct FileLock {
    key: String,
    name: String,
    folder: Arc<OwnedFd>,
    file: File,
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
    /// The lock of `key`, `None` where somebody has it.
    pub fn take(store: &FilesystemStore, key: &str) -> Result<Option<FileLock>> {
        let (parent, name) = split(key);
        let name = lock_name(name);
        step("open the folder of a lock");
        let mut folder = store.made_folder(parent)?;
        loop {
            let (file, is_new) = match open(&folder, &name) {
                Ok(opened) => opened,
                // The folder was erased, or the file is gone since it was found.
                Err(Errno::NOENT) => {
                    folder = store.made_folder(parent)?;
                    continue;
                }
                Err(error) => return Err(write(error).into()),
            };
            let held = File::new(file);
            let Some(file) = held.get() else { return Ok(None) };
            step("lock");
            let is_held = match try_flock(file) {
                Ok(true) => {
                    step("look whether the lock is the one of that name");
                    is_still(&folder, &name, file).map_err(write)?
                }
                Ok(false) => return Ok(None),
                // Step 4.
                Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) if is_new => {
                    let named = retry_on_intr(|| rustix::io::write(file, unique().as_bytes()));
                    if let Err(error) = named {
                        let _ = rustix::fs::unlinkat(&folder, &*name, AtFlags::empty());
                        return Err(write(error).into());
                    }
                    true
                }
                Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => {
                    if !remove_dead(&folder, &name, key, file)? {
                        return Ok(None);
                    }
                    false
                }
                Err(error) => {
                    if is_new {
                        let _ = rustix::fs::unlinkat(&folder, &*name, AtFlags::empty());
                    }
                    return Err(write(error).into());
                }
            };
            if is_held {
                return Ok(Some(FileLock {
                    key: key.to_owned(),
                    name,
                    folder: Arc::new(folder),
                    file: held,
                }));
            }
        }
    }
}

/// The file of a lock, and whether it was made now.
fn open(folder: impl AsFd, name: &str) -> Result<(OwnedFd, bool), Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let open = |flags| retry_on_intr(|| rustix::fs::openat(&folder, name, flags, MODE));
    step("make the file of a lock");
    match open(flags | OFlags::CREATE | OFlags::EXCL) {
        Err(Errno::EXIST) => {
            step("open the file of a lock");
            Ok((open(flags)?, false))
        }
        made => Ok((made?, true)),
    }
}

/// Removes the file of a lock whose holder has certainly ended; returns whether it is worth another try (step 4).
fn remove_dead(folder: &OwnedFd, name: &str, key: &str, file: &OwnedFd) -> Result<bool> {
    let holder = read(file).map_err(write)?;
    let Some(owner) = Owner::of(&holder).filter(|owner| owner.is_dead()) else {
        return if is_old(file).map_err(write)? { Err(stuck(key)) } else { Ok(false) };
    };
    let claim = format!("{RESERVED}claim-{holder}");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, &*claim, flags, MODE) {
        Ok(_) => {}
        Err(Errno::EXIST) => return if is_old(file).map_err(write)? { Err(stuck(key)) } else { Ok(false) },
        Err(error) => return Err(write(error).into()),
    }
    // Only who has the claim removes the file of this holder: if it is still there, it stays so until the next line.
    let removed = match open(folder, name) {
        Ok((file, false))
            if read(&file).is_ok_and(|text| Owner::of(&text) == Some(owner) && text == holder) =>
        {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())
        }
        // It was made here, by nobody who would hold it.
        Ok((_, true)) => rustix::fs::unlinkat(folder, name, AtFlags::empty()),
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    };
    let _ = rustix::fs::unlinkat(folder, &*claim, AtFlags::empty());
    removed.map_err(write)?;
    Ok(true)
}

fn read(file: &OwnedFd) -> Result<String, Errno> {
    let mut text = [0u8; 128];
    let length = retry_on_intr(|| rustix::io::pread(file, &mut text[..], 0))?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

fn is_old(file: &OwnedFd) -> Result<bool, Errno> {
    let made = u64::try_from(rustix::fs::fstat(file)?.st_mtime).unwrap_or(0);
    Ok(SystemTime::now()
        .duration_since(UNIX_EPOCH + Duration::from_secs(made))
        .is_ok_and(|age| age > PATIENCE))
}

fn stuck(key: &str) -> crate::Error {
    let text = format!(
        "the lock {} is held by another machine, or was left by a process there that was killed: if none writes, remove it",
        lock_path(key)
    );
    ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::TimedOut, text)).into()
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The lock of a process that was forked is its parent's to give up.
        if let Some(file) = self.file.get() {
            step("remove the file of a lock");
            let _ = rustix::fs::unlinkat(&self.folder, &*self.name, AtFlags::empty());
            step("unlock");
            // A child that was forked just now has the file open too, and closing it here alone would not unlock it.
            let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
        }
    }
}
