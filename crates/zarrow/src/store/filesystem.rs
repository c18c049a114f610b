//! A store in a folder of the local file system.
//!
//! The folder is opened once, and every key is looked up from it: the kernel walks shorter paths, and a later change of
//! the working folder has no effect. Symbolic links are followed, as users expect after spreading data over disks.

use crate::error::{Error, ErrorKind, Result};
use crate::store::capabilities::{Capabilities, is_local};
use crate::store::dangling_link::dangling_link;
use crate::store::folder_entries::each_entry;
use crate::store::system_calls;
use crate::store::temporary_name::is_reserved;
use crate::store::url::refuse_url;
use crate::store::{FileRange, Store, StoreWriter, Value, Version, check_key, join};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use zarrow_array::allocation::{self, Grow};
use zarrow_array::fork::OnceCell;

/// Store in a folder: its files are the values.
///
/// ```
/// use zarrow::store::{FilesystemStore, Store};
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("zarr.json"), b"{}")?;
/// let store = FilesystemStore::open(folder.path())?;
/// assert_eq!(store.get("zarr.json", 100)?, Some(b"{}".to_vec()));
/// assert_eq!(store.get("missing", 100)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FilesystemStore {
    folder: OwnedFd,
    name: String,
    path: PathBuf,
    /// Path from the folder opened by its path to this folder.
    prefix: String,
    system: Arc<Capabilities>,
    /// The folder's device, if its file system is local to this machine.
    local_device: OnceCell<Option<u64>>,
}

impl FilesystemStore {
    /// Opens the store in the folder `path`, which must exist.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the folder does not exist, [`ErrorKind::Unsupported`] for a URL, [`ErrorKind::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<FilesystemStore> {
        let name = path.as_ref().display().to_string();
        refuse_url(&name)?;
        // If the working folder is unknown, keep the relative path.
        let place = absolute(&path).unwrap_or_else(|_| path.as_ref().to_owned());
        // Only names are looked up from it, which is cheaper than opening it for reading.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match system_calls::open(path.as_ref(), flags, Mode::empty()) {
            Ok(folder) => {
                let (prefix, system) = (String::new(), Arc::default());
                let local_device = OnceCell::new();
                Ok(FilesystemStore { folder, name, path: place, prefix, system, local_device })
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Err(Error::from(ErrorKind::NotFound).in_array(&name, "")),
            Err(error) => Err(Error::from(io(error)).in_array(&name, "")),
        }
    }

    /// Returns the absolute path of the folder at the time when the store was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the root folder.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Returns the depth of this root below the root of the store that was opened by its path.
    pub(super) fn depth(&self) -> usize {
        self.prefix.split('/').filter(|name| !name.is_empty()).count()
    }

    /// Returns the store in the open `folder`, which is, or will be, at `prefix`.
    pub(super) fn below(&self, folder: OwnedFd, prefix: &str) -> FilesystemStore {
        self.system.origin(self.root());
        FilesystemStore {
            folder,
            name: self.name.clone(),
            path: self.path.join(prefix),
            prefix: join(&self.prefix, prefix),
            system: Arc::clone(&self.system),
            local_device: OnceCell::new(),
        }
    }

    /// Returns a number for the folder `path`, independent of the store through which it is reached.
    pub(super) fn identity(&self, path: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.system.origin(self.root()).number.hash(&mut hasher);
        // Hash prefix and path as one text, wherever the prefix ends.
        hasher.write(self.prefix.as_bytes());
        if !self.prefix.is_empty() && !path.is_empty() {
            hasher.write(b"/");
        }
        hasher.write(path.as_bytes());
        hasher.finish()
    }

    /// Returns the capabilities of its file system.
    pub(super) fn system(&self) -> &Capabilities {
        &self.system
    }

    /// Opens the folder at `prefix` below the root; `None` if it does not exist.
    pub(super) fn folder(&self, prefix: &str) -> Result<Option<OwnedFd>> {
        let prefix = if prefix.is_empty() {
            "."
        } else {
            check_key(prefix)?;
            prefix
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match system_calls::openat(&self.folder, prefix, flags, Mode::empty()) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(io(error).into()),
        }
    }
}

fn io(error: Errno) -> ErrorKind {
    ErrorKind::Io(error.into())
}

fn fault(error: Errno) -> Error {
    io(error).into()
}

/// Returns numbers that identify the file and its last modification.
pub(super) fn stat_version(stat: &Stat) -> [u64; 4] {
    let when = (stat.st_mtime as u64).wrapping_mul(1_000_000_000).wrapping_add(stat.st_mtime_nsec as _);
    [stat.st_dev, stat.st_ino, stat.st_size as u64, when]
}

/// Returns numbers that identify the file and the times of its last modification and last change: programs such as tar
/// set the first time back, but the second cannot be set. `None` if one is very recent: if this file is then deleted, the
/// next file may get the same number, and the same times on a slow clock.
fn cache_version(stat: &Stat) -> Option<[u64; 4]> {
    if is_recent(stat.st_mtime, stat.st_mtime_nsec as _) || is_recent(stat.st_ctime, stat.st_ctime_nsec as _)
    {
        return None;
    }
    let changed = (stat.st_ctime as u64).wrapping_mul(1_000_000_000).wrapping_add(stat.st_ctime_nsec as _);
    let [device, number, nbytes, modified] = stat_version(stat);
    Some([device, number, nbytes, modified ^ changed.rotate_left(32)])
}

impl Store for FilesystemStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        check_key(key)?;
        // Non-blocking: opening a named pipe would block until another process writes to it.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match system_calls::openat(&self.folder, key, flags, Mode::empty()) {
            Ok(file) => Ok(Some(Box::new(File(file)))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(io(error).into()),
        }
    }

    fn version_of(&self, key: &str) -> Result<Version> {
        check_key(key)?;
        match system_calls::statat(&self.folder, key, AtFlags::empty()) {
            Ok(stat) => Ok(Version::Of(stat_version(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Version::Missing),
            Err(error) => Err(io(error).into()),
        }
    }

    fn version_without_opening(&self, key: &str) -> Result<Option<[u64; 4]>> {
        check_key(key)?;
        // Other file systems may know an old version until the file is opened.
        let device = self.local_device.get_or_make(|| {
            let stat = system_calls::fstat(&self.folder).ok().filter(|_| is_local(&self.folder))?;
            Some(stat.st_dev)
        });
        let Some(device) = *device else { return Ok(None) };
        // Opening the value gives the errors.
        let stat = system_calls::statat(&self.folder, key, AtFlags::empty()).ok();
        Ok(stat.filter(|stat| stat.st_dev == device).and_then(|stat| cache_version(&stat)))
    }

    /// The store keeps the folder open, even if it is moved.
    fn subtree(&self, prefix: &str) -> Result<Option<Arc<dyn Store>>> {
        if prefix.is_empty() {
            return Ok(None);
        }
        check_key(prefix)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match system_calls::openat(&self.folder, prefix, flags, Mode::empty()) {
            Ok(folder) => Ok(Some(Arc::new(self.below(folder, prefix)))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(io(error).into()),
        }
    }

    fn dangling_link(&self, path: &str) -> Option<String> {
        dangling_link(self.root(), path)
    }

    fn folder_number(&self, path: &str) -> Option<[u64; 2]> {
        let path = if path.is_empty() { "." } else { path };
        let stat = system_calls::statat(&self.folder, path, AtFlags::empty()).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::Directory).then_some([stat.st_dev, stat.st_ino])
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let Some(folder) = self.folder(prefix)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        each_entry(folder, fault, |name, _| {
            // A name that is not UTF-8 cannot be a key.
            if let Ok(name) = name.to_str()
                && !is_reserved(name)
            {
                names.try_push(allocation::text(name)?)?;
            }
            Ok(())
        })?;
        names.sort_unstable();
        Ok(names)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        let mut sum = 0u64;
        let mut folders = vec![prefix.to_owned()];
        while let Some(prefix) = folders.pop() {
            let Some(folder) = self.folder(&prefix)? else { continue };
            each_entry(&folder, fault, |name, file_type| {
                let Ok(name) = name.to_str() else { return Ok(()) };
                // Folders behind links are not entered, since links may form a cycle.
                match file_type {
                    _ if is_reserved(name) => {}
                    FileType::Directory => folders.try_push(join(&prefix, name))?,
                    _ => {
                        if let Ok(stat) = system_calls::statat(&folder, name, AtFlags::empty())
                            && FileType::from_raw_mode(stat.st_mode) != FileType::Directory
                        {
                            sum = sum.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(sum)
    }
}

/// Whether a later write may still get the same modification time as this file: true until the clock for file times has
/// certainly advanced.
fn is_recent(seconds: i64, nanoseconds: u64) -> bool {
    /// Slowest tick of a kernel: 10 ms.
    const TICK: Duration = Duration::from_millis(20);
    /// For file systems with times in whole seconds, or in steps of two.
    const COARSE: Duration = Duration::from_secs(3);
    let tick = if nanoseconds == 0 { COARSE } else { TICK };
    let written = u64::try_from(seconds)
        .ok()
        .map(|seconds| Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // A time before 1970 is long ago; a time in the future is unreliable.
    written.is_some_and(|written| now < written.saturating_add(tick))
}

/// An open file.
#[derive(Debug)]
pub(super) struct File(pub(super) OwnedFd);

/// Reads `destination` and one more byte from the start of a file; returns the number of bytes read, including that
/// one.
fn read_to_both(file: &OwnedFd, destination: &mut [MaybeUninit<u8>]) -> rustix::io::Result<usize> {
    let mut behind = MaybeUninit::<u8>::uninit();
    let buffers = [
        libc::iovec { iov_base: destination.as_mut_ptr().cast(), iov_len: destination.len() },
        libc::iovec { iov_base: behind.as_mut_ptr().cast(), iov_len: 1 },
    ];
    // SAFETY: both buffers are exclusive memory of the lengths given, and the kernel writes inside them only.
    let read = unsafe { libc::preadv(file.as_raw_fd(), buffers.as_ptr(), 2, 0) };
    usize::try_from(read).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}

impl Value for File {
    fn nbytes(&self) -> Result<u64> {
        let stat = system_calls::fstat(&self.0).map_err(io)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(io(Errno::ISDIR).into()),
            // Pipes, sockets and devices hold no value.
            _ => return Err(io(Errno::INVAL).into()),
        }
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let mut filled = 0usize;
        while filled < destination.len() {
            let at = offset.saturating_add(filled as u64);
            match system_calls::pread(&self.0, &mut destination[filled..], at).map_err(io)? {
                0 => break,
                read => filled += read,
            }
        }
        // SAFETY: `pread` has written the bytes from the start up to `filled`, without a gap.
        Ok(unsafe { destination[..filled].assume_init_mut() })
    }

    /// File systems without support for the flag refuse it, which counts as waiting.
    #[cfg(target_os = "linux")]
    fn read_at_once<'a>(
        &self,
        offset: u64,
        destination: &'a mut [MaybeUninit<u8>],
    ) -> Result<Option<&'a mut [u8]>> {
        let buffer = libc::iovec { iov_base: destination.as_mut_ptr().cast(), iov_len: destination.len() };
        let offset = libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX);
        // SAFETY: the buffer is exclusive memory of the length given, and the kernel writes inside it only.
        let read = unsafe { libc::preadv2(self.0.as_raw_fd(), &buffer, 1, offset, libc::RWF_NOWAIT) };
        if usize::try_from(read) != Ok(destination.len()) {
            return Ok(None);
        }
        // SAFETY: the kernel filled the buffer.
        Ok(Some(unsafe { destination.assume_init_mut() }))
    }

    /// One system call reads the value and the byte after it, which must not exist.
    fn read_whole<'a>(
        &self,
        memory: &'a mut [MaybeUninit<u8>],
        length: usize,
    ) -> Result<Option<&'a mut [u8]>> {
        let read = match memory.get_mut(..=length) {
            // One buffer is faster than two.
            Some(memory) => system_calls::pread(&self.0, memory, 0),
            None => system_calls::repeat(|| read_to_both(&self.0, &mut memory[..length])),
        };
        let filled = match read {
            Ok(filled) if filled > length => return Ok(None),
            Ok(filled) => filled,
            Err(error) => return Err(io(error).into()),
        };
        let destination = &mut memory[..length];
        // Continues a short read; at the end of a value that is too short, this reads nothing.
        if filled < length {
            let more = self.read_at(filled as u64, &mut destination[filled..])?.len();
            if filled + more < length || self.nbytes()? != length as u64 {
                return Ok(None);
            }
        }
        // SAFETY: the kernel has written the bytes up to `filled`, and `read_at` those behind.
        Ok(Some(unsafe { destination.assume_init_mut() }))
    }

    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(cache_version(&system_calls::fstat(&self.0).map_err(io)?))
    }

    fn file(&self) -> Option<FileRange<'_>> {
        Some(FileRange { file: self.0.as_fd(), offset: 0, nbytes: None })
    }
}
