//! An open zip archive in a local file: the file, its directory, and its version.

use super::corrupt;
use super::directory::Directory;
use super::end_record::{EndRecord, TAIL_NBYTES};
use crate::error::{ErrorKind, Result};
use crate::store::Value;
use crate::store::filesystem::{File, stat_version};
use crate::store::system_calls;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf, absolute};
use zarrow_array::allocation;

/// An open archive.
#[derive(Debug)]
pub struct Archive {
    /// The file.
    pub file: File,
    /// Its absolute path when it was opened.
    pub path: PathBuf,
    /// The central directory.
    pub directory: Directory,
    /// File and modification time when the directory was read.
    pub version: [u64; 4],
}

impl Archive {
    /// Opens the archive at `path` and reads its directory.
    ///
    /// # Errors
    /// As [`ZipStore::open`](super::ZipStore::open).
    pub fn open(path: &Path) -> Result<Archive> {
        // If the working folder is unknown, keep the relative path.
        let place = absolute(path).unwrap_or_else(|_| path.to_owned());
        // Non-blocking: opening a named pipe would block until another process writes to it.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match system_calls::open(path, flags, Mode::empty()) {
            Ok(file) => File(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(ErrorKind::NotFound.into()),
            Err(error) => return Err(ErrorKind::Io(error.into()).into()),
        };
        let stat = system_calls::fstat(&file.0).map_err(|error| ErrorKind::Io(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ErrorKind::NotFound.into());
        }
        let nbytes = u64::try_from(stat.st_size).unwrap_or(0);
        let start = nbytes.saturating_sub(TAIL_NBYTES);
        let mut tail = memory(nbytes - start)?;
        let tail = file.read_at(start, &mut tail)?;
        let end = EndRecord::find(tail, start)?;
        let range = &end.directory;
        let within = range.start.checked_sub(start).and_then(|at| usize::try_from(at).ok());
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let directory = match within.and_then(|at| tail.get(at..)?.get(..length)) {
            Some(bytes) => Directory::parse(bytes, &end)?,
            None => {
                let mut bytes = memory(length as u64)?;
                let bytes = file.read_at(range.start, &mut bytes)?;
                if bytes.len() != length {
                    return Err(corrupt("the file became shorter while its directory was read"));
                }
                Directory::parse(bytes, &end)?
            }
        };
        Ok(Archive { file, path: place, directory, version: stat_version(&stat) })
    }

    /// Checks that the file has not changed since the archive was opened.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`], [`ErrorKind::Io`].
    pub fn check_unchanged(&self) -> Result<()> {
        let stat = system_calls::fstat(&self.file.0).map_err(|error| ErrorKind::Io(error.into()))?;
        if stat_version(&stat) == self.version { Ok(()) } else { Err(changed()) }
    }
}

/// Allocates memory for `nbytes` bytes to be read.
pub fn memory(nbytes: u64) -> Result<Vec<MaybeUninit<u8>>> {
    Ok(allocation::filled(MaybeUninit::uninit(), usize::try_from(nbytes).unwrap_or(usize::MAX))?)
}

/// Returns the error for an archive that was replaced after it was opened.
pub fn changed() -> crate::Error {
    ErrorKind::Stale("is in a zip archive that has changed").into()
}
