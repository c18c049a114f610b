//! A store in a folder of the local file system.
//!
//! The folder is opened once, and every key is looked up from it: shorter paths for the kernel to walk, and no
//! effect of a later change of the working folder. Symbolic links are followed, as users expect of data that
//! they have spread over disks.

use crate::error::{Error, ErrorKind, Result};
use crate::store::{Store, Value, check_key, join};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A folder whose files are the values.
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
}

impl FilesystemStore {
    /// The store in the folder `path`, which must exist.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is no such folder, [`ErrorKind::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<FilesystemStore> {
        let name = path.as_ref().display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path.as_ref(), flags, Mode::empty()) {
            Ok(folder) => Ok(FilesystemStore { folder, name }),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(Error::from(ErrorKind::NotFound).in_array(&name, "")),
            Err(error) => Err(Error::from(io(error)).in_array(&name, "")),
        }
    }

    /// The folder below the root at `prefix`, `None` where there is none.
    fn folder(&self, prefix: &str) -> Result<Option<OwnedFd>> {
        let prefix = if prefix.is_empty() {
            "."
        } else {
            check_key(prefix)?;
            prefix
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, prefix, flags, Mode::empty()) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(io(error).into()),
        }
    }
}

fn io(error: Errno) -> ErrorKind {
    ErrorKind::Io(error.into())
}

impl Store for FilesystemStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        check_key(key)?;
        match rustix::fs::openat(&self.folder, key, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => Ok(Some(Box::new(File(file)))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(io(error).into()),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let Some(folder) = self.folder(prefix)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in Dir::new(folder).map_err(io)? {
            // A name that is not UTF-8 is no key.
            if let Ok(name) = entry.map_err(io)?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        let mut sum = 0u64;
        let mut folders = vec![prefix.to_owned()];
        while let Some(prefix) = folders.pop() {
            let Some(folder) = self.folder(&prefix)? else { continue };
            for entry in Dir::read_from(&folder).map_err(io)? {
                let entry = entry.map_err(io)?;
                let Ok(name) = entry.file_name().to_str() else { continue };
                // Folders behind links are not entered, which might lead in a circle.
                match entry.file_type() {
                    FileType::Directory if name != "." && name != ".." => folders.push(join(&prefix, name)),
                    FileType::Directory => {}
                    _ => {
                        if let Ok(stat) = rustix::fs::statat(&folder, name, rustix::fs::AtFlags::empty()) {
                            sum = sum.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
                        }
                    }
                }
            }
        }
        Ok(sum)
    }
}

/// An open file.
#[derive(Debug)]
struct File(OwnedFd);

impl Value for File {
    fn nbytes(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.0).map_err(io)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(io(Errno::ISDIR).into());
        }
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let mut filled = 0usize;
        while filled < destination.len() {
            let at = offset.saturating_add(filled as u64);
            match rustix::io::pread(&self.0, &mut destination[filled..], at) {
                Ok(([], _)) => break,
                Ok((read, _)) => filled += read.len(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io(error).into()),
            }
        }
        // SAFETY: `pread` has written the bytes from the start up to `filled`, without a gap.
        Ok(unsafe { destination[..filled].assume_init_mut() })
    }
}
