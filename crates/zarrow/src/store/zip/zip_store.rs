//! A store of the members of a zip archive in a local file.

use super::archive::{Archive, memory};
use super::member::Member;
use crate::error::{Error, ErrorKind, Result};
use crate::store::filesystem::File;
use crate::store::system_calls;
use crate::store::{Store, Value, Version, check_key, join, normalize_path, open_url};
use rustix::fs::{FileType, Mode, OFlags};
use std::path::Path;
use std::sync::Arc;

/// The stored or deflated members of a zip archive. It is read-only, and shows the archive as it was when it was
/// opened: if the file changes afterwards, reads fail.
///
/// ```
/// use zarrow::store::{Store, ZipStore};
/// // An archive with nothing in it is its end record alone.
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("empty.zip");
/// std::fs::write(&path, [&b"PK\x05\x06"[..], &[0; 18]].concat())?;
/// let store = ZipStore::open(&path)?;
/// assert!(store.list("")?.is_empty() && store.writer().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ZipStore {
    archive: Arc<Archive>,
    name: String,
    /// Folder in the archive with the values of this store.
    prefix: String,
}

impl ZipStore {
    /// Opens the archive at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no file, [`ErrorKind::Io`], [`ErrorKind::Corrupt`] if it is not an archive,
    /// [`ErrorKind::BadKey`] for members with names that leave the archive, [`ErrorKind::Unsupported`] for an archive
    /// in several files, [`ErrorKind::Limit`] for too many members.
    pub fn open(path: impl AsRef<Path>) -> Result<ZipStore> {
        let name = path.as_ref().display().to_string();
        let archive = Archive::open(path.as_ref()).map_err(|error| error.in_array(&name, ""))?;
        Ok(ZipStore { archive: Arc::new(archive), name, prefix: String::new() })
    }

    /// Returns the store of the folder `prefix` in this one; `""` is the whole store.
    ///
    /// # Errors
    /// [`ErrorKind::BadKey`].
    pub fn below(&self, prefix: &str) -> Result<ZipStore> {
        let prefix = normalize_path(prefix).map_err(|error| error.in_array(&self.name, prefix))?;
        let (archive, name) = (Arc::clone(&self.archive), self.name.clone());
        if prefix.is_empty() {
            return Ok(ZipStore { archive, name, prefix: self.prefix.clone() });
        }
        let prefix = self.key(&prefix);
        let mut below = ZipStore { archive, name, prefix };
        below.name = below.url();
        Ok(below)
    }

    /// Returns the URL of the store, with the absolute path of the archive: `zip:///tmp/data.zip::folder`.
    #[must_use]
    pub fn url(&self) -> String {
        let path = self.archive.path.display();
        if self.prefix.is_empty() {
            format!("zip://{path}")
        } else {
            format!("zip://{path}::{}", self.prefix)
        }
    }

    /// Returns the absolute path of the archive at the time when the store was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.archive.path
    }

    /// Returns the folder in the archive with the values of this store; `""` is the whole archive.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the key relative to the root of the archive.
    fn key(&self, key: &str) -> String {
        if key.is_empty() { self.prefix.clone() } else { join(&self.prefix, key) }
    }
}

impl Store for ZipStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        check_key(key)?;
        let Some(entry) = self.archive.directory.get(&self.key(key)) else { return Ok(None) };
        Ok(Some(Box::new(Member::open(&self.archive, entry)?)))
    }

    fn version_of(&self, key: &str) -> Result<Version> {
        check_key(key)?;
        self.archive.check_unchanged()?;
        let is_there = self.archive.directory.get(&self.key(key)).is_some();
        Ok(if is_there { Version::Of(self.archive.version) } else { Version::Missing })
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.archive.directory.list(&self.key(prefix))
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        let below = self.archive.directory.below(&self.key(prefix));
        Ok(below.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.nbytes)))
    }
}

/// Opens the store at a path of the file system, a folder or a zip archive, or at a URL after
/// [`open_urls_by`](crate::store::open_urls_by).
///
/// # Errors
/// As [`FilesystemStore::open`](crate::store::FilesystemStore::open); for a file with the extension `.zip` or the start
/// of an archive, as [`ZipStore::open`].
pub fn open_path(path: impl AsRef<Path>) -> Result<Arc<dyn Store>> {
    let path = path.as_ref();
    if let Some(opened) = open_url(path) {
        return opened;
    }
    match crate::store::FilesystemStore::open(path) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) && is_archive(path) => {
            Ok(Arc::new(ZipStore::open(path)?))
        }
        Err(error) => Err(error),
    }
}

/// Whether there is a file that is, or should be, a zip archive.
pub fn is_archive(path: &Path) -> bool {
    let begins_as_one = || -> Result<bool, Error> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File(
            system_calls::open(path, flags, Mode::empty()).map_err(|error| ErrorKind::Io(error.into()))?,
        );
        let mut start = memory(4)?;
        let start = &*file.read_at(0, &mut start)?;
        Ok(start == b"PK\x03\x04" || start == b"PK\x05\x06")
    };
    let is_named_so = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    let is_file = system_calls::stat(path)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    is_file && (is_named_so || begins_as_one().unwrap_or(false))
}
