//! Writing to a store in a folder.
//!
//! 1. A value is written to a temporary file in its folder, with a name that cannot be a key, and renamed when it is
//!    complete: `rename` replaces the old value in one step.
//! 2. Its modification time is set to the nanosecond, which the kernel does not do by itself. Together with the file's
//!    number, which a later file may reuse, the time distinguishes versions of a value at once. An overwritten value on
//!    a local file system keeps the time of the kernel's clock: the value is not cached until that clock has advanced
//!    (`Value::version`).
//! 3. Folders are created when they are needed. The first write or lock of this process in a folder sweeps what killed
//!    writers left there, and in the folders above it up to the root of the store. A folder created by this process has
//!    nothing to sweep.
//! 4. A whole value is written without its lock, although another process may be changing the value that it replaces.
//!    That process holds the lock until it has written. So the lock is checked first, and the value second: if the lock
//!    is free, any such write is visible, and a process that takes the lock later reads the new value. If the lock is
//!    held, or the value is not the written one, the value is written once more, under the lock. The file stays open
//!    until then, so that no other file can get its number. The file is the value as long as it has a
//!    name: only a newer value removes the name. On a file system that may not count names, the name is looked up.
//! 5. After an erasure there is no value, so step 4 cannot tell which process erased it. A value is therefore erased
//!    only under its lock: if the lock is free, and then the value is missing, no process can have read it and still
//!    write a result derived from it.
//! 6. A prefix is erased by renaming its folder to a name that cannot be a key, and removing it (`staging`). Work under
//!    locks below it continues in that folder, wherever it was moved.

use crate::error::{Error, ErrorKind, Result};
use crate::store::fault_point::{fault, step};
use crate::store::filesystem::{FilesystemStore, stat_version};
use crate::store::flock_call::{is_still, try_flock};
use crate::store::key::split;
use crate::store::key_lock::FileLock;
use crate::store::leftover_files::{sweep_below, sweep_folder};
use crate::store::owner::Owner;
use crate::store::retry::Retry;
use crate::store::staging::{FolderStage, detach, detach_inside, nothing_left};
use crate::store::system_calls;
use crate::store::temporary_name::{lock_path, unique_name};
use crate::store::url::refuse_url;
use crate::store::write_errors::{MODE, behind_link, disappears, refused, write};
use crate::store::{Detached, Draft, Durability, Lock, Stage, StoreWriter, check_key, join};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::{Errno, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use zarrow_array::fork::generation;

/// Number of folders to remember: with more, some are swept again.
const MOST_SWEPT: usize = 1 << 16;

/// Folders that this process has swept (step 3): each hash is stored in the slot that it selects. A lock-free table,
/// since a fork might leave a lock locked; two folders with the same slot displace each other.
static SWEPT: [AtomicU64; MOST_SWEPT] = [const { AtomicU64::new(0) }; MOST_SWEPT];

impl FilesystemStore {
    /// Opens the store in the folder `path`, and creates the folder if it is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if the folder cannot be created, and as [`open`](FilesystemStore::open).
    pub fn create(path: impl AsRef<Path>) -> Result<FilesystemStore> {
        let name = path.as_ref().display().to_string();
        refuse_url(&name)?;
        system_calls::create_dir_all(path.as_ref()).map_err(|error| {
            let kind = behind_link(CWD, &name).unwrap_or(ErrorKind::Write(error));
            Error::from(kind).in_array(&name, "")
        })?;
        FilesystemStore::open(path)
    }

    /// Opens `path` for writing, and creates its folder if necessary.
    pub(super) fn open_new(&self, path: &str, flags: OFlags) -> Result<OwnedFd> {
        let mut retry = Retry::race();
        loop {
            let open = || fault().and_then(|()| system_calls::openat(self.root(), path, flags, MODE));
            match open() {
                Ok(file) => return Ok(file),
                // The folder is missing, or was erased after it was created.
                Err(Errno::NOENT) => {
                    let parent = split(path).0;
                    retry.again(&|| Ok(()), || disappears(self.root(), parent))?;
                    self.make_folders(parent)?;
                    step("open a file in a folder that was made");
                }
                Err(error) => return Err(write(error).into()),
            }
        }
    }

    /// Creates the folder and its parents. A concurrent erasure may remove one again.
    pub(super) fn make_folders(&self, path: &str) -> Result<()> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let mut above = "";
        for end in ends.filter(|end| *end > 0) {
            let folder = &path[..end];
            let make = || system_calls::mkdirat(self.root(), folder, Mode::from_raw_mode(0o777));
            match fault().and_then(|()| make()) {
                // Step 3.
                Ok(()) => {
                    self.sweep_once(above);
                    self.is_first_in(folder);
                }
                Err(Errno::EXIST) => {}
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(write(error).into()),
            }
            above = folder;
        }
        Ok(())
    }

    /// Opens the folder `path`, and creates it if it is missing.
    pub(super) fn made_folder(&self, path: &str) -> Result<OwnedFd> {
        let mut retry = Retry::race();
        loop {
            if let Some(folder) = self.folder(path)? {
                return Ok(folder);
            }
            retry.again(&|| Ok(()), || disappears(self.root(), path))?;
            self.make_folders(path)?;
        }
    }

    /// Creates a file for a new value of `key` (step 1), in the lock's folder if there is a lock.
    fn begin(
        &self,
        key: &str,
        folder: Option<&Arc<OwnedFd>>,
        durability: Durability,
    ) -> Result<FileDraft<'_>> {
        check_key(key)?;
        let (parent, name) = split(key);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut retry = Retry::race();
        loop {
            let (path, opened) = match folder {
                Some(folder) => {
                    let path = unique_name();
                    let open = || system_calls::openat(folder, &*path, flags, MODE);
                    let opened = open().map_err(|error| write(error).into());
                    (path, opened)
                }
                None => {
                    let path = join(parent, &unique_name());
                    let opened = self.open_new(&path, flags);
                    (path, opened)
                }
            };
            let file = match opened {
                // Another machine may have created the same name.
                Err(error) if is_errno(&error, Errno::EXIST) => {
                    retry.again(&|| Ok(()), || error)?;
                    continue;
                }
                file => file?,
            };
            let (folder, generation) = (folder.cloned(), generation());
            let target = if folder.is_some() { name } else { key }.to_owned();
            let parent = parent.to_owned();
            let draft = FileDraft { store: self, parent, folder, path, target, file, durability, generation };
            // If the name does not show whether this process is alive, a lock does, on file systems with locks. A sweep
            // may have removed the file between its creation and the locking.
            if Owner::current().is_identified()
                || try_flock(&draft.file).unwrap_or(true)
                    && system_calls::fstat(&draft.file).map_err(write)?.st_nlink > 0
            {
                return Ok(draft);
            }
            retry.again(&|| Ok(()), || disappears(self.root(), &draft.parent))?;
        }
    }

    /// Syncs the names in the folder `path` and in the folders above it, so that they survive a power loss.
    pub(super) fn sync_folders(&self, path: &str, durability: Durability) -> Result<()> {
        if durability != Durability::Full {
            return Ok(());
        }
        let mut path = path;
        loop {
            if let Some(folder) = self.folder(path)? {
                system_calls::fsync(&folder).map_err(refused(FSYNC))?;
            }
            if path.is_empty() {
                break;
            }
            path = split(path).0;
        }
        // Also sync the folders above, if this store is a subtree of another.
        for level in 1..=self.depth() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = system_calls::openat(self.root(), &*"../".repeat(level), flags, Mode::empty())
                .map_err(write)?;
            system_calls::fsync(&above).map_err(refused(FSYNC))?;
        }
        Ok(())
    }

    /// Sweeps the folder `path` and the folders above it, once per process. Leftovers that cannot be removed are
    /// harmless.
    pub(super) fn sweep_once(&self, path: &str) {
        let mut path = path;
        while self.is_first_in(path) {
            if let Ok(Some(folder)) = self.folder(path) {
                let _ = sweep_folder(folder);
            }
            if path.is_empty() {
                break;
            }
            path = split(path).0;
        }
    }

    /// Whether this process is in the folder `path` for the first time.
    fn is_first_in(&self, path: &str) -> bool {
        let hash = self.identity(path);
        let place = &SWEPT[hash as usize % MOST_SWEPT];
        // 0 marks an empty slot.
        place.swap(hash | 1, Ordering::Relaxed) != hash | 1
    }
}

const FSYNC: &str = "`fsync`, which this durability needs";

/// A new value in a separate file, which is removed unless it was published.
struct FileDraft<'a> {
    store: &'a FilesystemStore,
    /// The path of the value's folder.
    parent: String,
    /// That folder, kept open, if the value is set under a lock.
    folder: Option<Arc<OwnedFd>>,
    /// Path of the file, relative to `folder` or else to the root; empty after publishing.
    path: String,
    /// Path of the value, relative to the same folder.
    target: String,
    file: OwnedFd,
    durability: Durability,
    generation: u64,
}

impl FileDraft<'_> {
    /// Completes steps 1 and 2.
    fn finish(&mut self, is_timed: bool) -> Result<()> {
        if is_timed {
            set_time(&self.file).map_err(refused(
                "to set modification times (`utimensat`), which tell the versions of a value apart",
            ))?;
        }
        if self.durability != Durability::None {
            system_calls::fsync(&self.file).map_err(refused(FSYNC))?;
        }
        step("rename");
        fault().map_err(write)?;
        system_calls::renameat(self.folder(), &self.path, self.folder(), &self.target).map_err(write)?;
        self.path.clear();
        self.store.sync_folders(&self.parent, self.durability)?;
        self.store.sweep_once(&self.parent);
        Ok(())
    }

    /// Step 4: whether the published file is still the value of `key`.
    fn is_still(&self, key: &str) -> Result<bool, Errno> {
        let stat = system_calls::fstat(&self.file)?;
        let system = self.store.system();
        match stat.st_nlink {
            1 if system.has(&stat) && system.is_local(self.store.root()) => Ok(true),
            0 => Ok(false),
            _ => is_still(self.store.root(), key, &self.file),
        }
    }

    fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_ref().map_or(self.store.root(), |folder| folder.as_fd())
    }
}

impl Draft for FileDraft<'_> {
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        Ok(write_parts(&self.file, offset, parts).map_err(write)?)
    }

    fn publish(mut self: Box<Self>) -> Result<()> {
        self.finish(true)
    }
}

impl Drop for FileDraft<'_> {
    fn drop(&mut self) {
        // In a forked child, the file belongs to the parent.
        if !self.path.is_empty() && self.generation == generation() {
            let _ = system_calls::unlinkat(self.folder(), &self.path, AtFlags::empty());
        }
    }
}

fn is_errno(error: &Error, errno: Errno) -> bool {
    matches!(error.kind(), ErrorKind::Write(error) if error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Writes the concatenated parts, starting at `offset`.
fn write_parts(file: &OwnedFd, offset: u64, parts: &[&[u8]]) -> Result<(), Errno> {
    /// Maximum number of buffers in one call (`IOV_MAX`).
    const MOST: usize = 1024;
    let mut parts: Vec<&[u8]> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    let mut rest = &mut parts[..];
    let mut offset = offset;
    while !rest.is_empty() {
        let slices: Vec<IoSlice<'_>> = rest.iter().take(MOST).map(|part| IoSlice::new(part)).collect();
        let mut written = system_calls::pwritev(file, &slices, offset)?;
        if written == 0 {
            return Err(Errno::IO);
        }
        offset += written as u64;
        while let Some(first) = rest.first_mut() {
            if written < first.len() {
                *first = &first[written..];
                break;
            }
            written -= first.len();
            rest = &mut rest[1..];
        }
    }
    Ok(())
}

/// Step 2.
fn set_time(file: &OwnedFd) -> Result<(), Errno> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified = Timespec { tv_sec: now.as_secs() as _, tv_nsec: now.subsec_nanos().into() };
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    system_calls::futimens(file, &Timestamps { last_access: omit, last_modification: modified })
}

impl StoreWriter for FilesystemStore {
    fn draft(&self, key: &str, durability: Durability) -> Result<Box<dyn Draft + '_>> {
        Ok(Box::new(self.begin(key, None, durability)?))
    }

    fn draft_under(&self, lock: &dyn Lock, durability: Durability) -> Result<Box<dyn Draft + '_>> {
        Ok(Box::new(self.begin(lock.key(), lock.folder(), durability)?))
    }

    /// Steps 4 and 5.
    fn overwrite(
        &self,
        key: &str,
        parts: Option<&[&[u8]]>,
        durability: Durability,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        check_key(key)?;
        let set = match parts {
            Some(parts) => {
                let mut draft = self.begin(key, None, durability)?;
                draft.write_at(0, parts)?;
                draft.finish(!self.system().is_local(self.root()))?;
                Some(draft)
            }
            None => None,
        };
        step("check whether the lock is held");
        if !self.is_there(&lock_path(key))? {
            step("check whether the value is still the same");
            let is_done = match &set {
                Some(set) => set.is_still(key).map_err(write)?,
                None => !self.is_there(key)?,
            };
            if is_done {
                return Ok(());
            }
        }
        let lock = self.lock(key, pass)?;
        match parts {
            Some(parts) => self.set_under(&*lock, parts, durability),
            None => self.erase_under(&*lock, durability).map(drop),
        }
    }

    /// Also removes folders that become empty.
    fn erase_each(&self, keys: Vec<String>, durability: Durability) -> Result<()> {
        for key in &keys {
            self.overwrite(key, None, durability, &|| Ok(()))?;
        }
        for (at, key) in keys.iter().enumerate() {
            let mut folder = split(key).0;
            if keys.get(at + 1).is_some_and(|next| split(next).0 == folder) {
                continue;
            }
            step("remove a folder that is empty");
            while !folder.is_empty()
                && system_calls::unlinkat(self.root(), folder, AtFlags::REMOVEDIR).is_ok()
            {
                folder = split(folder).0;
            }
        }
        Ok(())
    }

    fn erase(&self, key: &str, durability: Durability) -> Result<bool> {
        check_key(key)?;
        self.unlink(self.root(), key, split(key).0, durability)
    }

    fn erase_under(&self, lock: &dyn Lock, durability: Durability) -> Result<bool> {
        let (parent, name) = split(lock.key());
        let Some(folder) = lock.folder() else { return self.erase(lock.key(), durability) };
        step("erase");
        self.unlink(folder.as_fd(), name, parent, durability)
    }

    fn stage<'a>(&'a self, prefix: &str, durability: Durability) -> Result<Option<Box<dyn Stage<'a> + 'a>>> {
        if !prefix.is_empty() {
            check_key(prefix)?;
        }
        Ok(Some(Box::new(FolderStage::new(self, prefix, durability)?)))
    }

    /// Step 6.
    fn detach<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>> {
        if prefix.is_empty() {
            return detach_inside(self, "", marks);
        }
        check_key(prefix)?;
        match system_calls::statat(self.root(), prefix, AtFlags::SYMLINK_NOFOLLOW) {
            // A value: its lock is beside it, in the same folder.
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
                self.overwrite(prefix, None, durability, &|| Ok(()))?;
                return Ok(Some(nothing_left()));
            }
            Ok(_) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(write(error).into()),
        }
        let detached = detach(self, prefix, marks)?;
        self.sync_folders(split(prefix).0, durability)?;
        Ok(detached)
    }

    fn try_lock(&self, key: &str) -> Result<Option<Box<dyn Lock + '_>>> {
        check_key(key)?;
        let lock = FileLock::take(self, key)?;
        Ok(lock.map(|lock| Box::new(lock) as Box<dyn Lock>))
    }

    fn holder(&self, key: &str) -> Option<[u64; 4]> {
        let file = system_calls::statat(self.root(), &*lock_path(key), AtFlags::SYMLINK_NOFOLLOW);
        file.ok().map(|file| stat_version(&file))
    }

    fn sweep(&self, prefix: &str) -> Result<usize> {
        self.folder(prefix)?.map_or(Ok(0), sweep_below)
    }
}

impl FilesystemStore {
    /// Removes the value `path` below `folder`; `parent` is the path of the value's folder. Returns whether it existed.
    fn unlink(
        &self,
        folder: BorrowedFd<'_>,
        path: &str,
        parent: &str,
        durability: Durability,
    ) -> Result<bool> {
        let erased = match system_calls::unlinkat(folder, path, AtFlags::empty()) {
            Ok(()) => self.sync_folders(parent, durability).map(|()| true)?,
            // A folder is not a value.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => false,
            Err(error) => return Err(write(error).into()),
        };
        self.sweep_once(parent);
        Ok(erased)
    }

    fn is_there(&self, path: &str) -> Result<bool> {
        match system_calls::statat(self.root(), path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(write(error).into()),
        }
    }
}
