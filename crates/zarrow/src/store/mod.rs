//! Stores: values under keys, read by byte range and written as a whole.

pub(crate) mod call_mark;
mod capabilities;
pub(crate) mod codec_calls;
mod dangling_link;
mod fault_point;
#[cfg(test)]
pub(crate) mod faults;
mod filesystem;
mod filesystem_writer;
mod flock_call;
mod folder_entries;
#[cfg(test)]
mod interleaving;
mod key;
mod key_lock;
mod leftover_files;
mod memory;
mod memory_writer;
mod move_entries;
mod owner;
mod read_only;
pub mod remote;
mod removal;
mod retry;
mod root_replacement;
mod staging;
pub(crate) mod system_calls;
mod temporary_name;
#[cfg(test)]
mod tests;
mod url;
mod write_errors;
mod writer;
mod zip;

pub use filesystem::FilesystemStore;
pub use key::{check_key, join, normalize_path};
pub use memory::MemoryStore;
pub use read_only::ReadOnlyStore;
pub(crate) use retry::{Retry, until_no_conflict};
pub use root_replacement::{open_path_with, replace_folder};
pub(crate) use url::open_url;
pub use url::{OpenUrl, open_urls_by};
pub use writer::{Detached, Draft, Durability, Lock, Locked, Stage, StoreWriter};
pub use zip::{RemoteZip, ZipStore, is_archive, open_path};

use crate::error::Result;
use std::any::Any;
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use zarrow_array::allocation;

/// Key-value store.
///
/// Keys satisfy [`check_key`]: the engine checks keys from outside before it passes them to a store. [`Any`] gives
/// access to the concrete store type.
pub trait Store: Any + Send + Sync + Debug {
    /// Name of the store in error messages: a path or a URL, without credentials.
    fn name(&self) -> &str;

    /// Opens the value under `key` for reading; `None` if the key has no value.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the store cannot be read,
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey).
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>>;

    /// Returns the store as a [`RemoteStore`](remote::RemoteStore) if it answers by completion, so that many requests
    /// can be in flight at once.
    fn remote(&self) -> Option<&dyn remote::RemoteStore> {
        None
    }

    /// Returns the sorted names directly below `prefix` (a path without a trailing slash).
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn list(&self, prefix: &str) -> Result<Vec<String>>;

    /// Starts a [`list`](Store::list) for a caller with other requests to make first: a remote store sends the request
    /// at once, and cancels it if the result is dropped without being called.
    fn list_ahead<'a>(&'a self, prefix: &str) -> Listed<'a> {
        let prefix = prefix.to_owned();
        Box::new(move || self.list(&prefix))
    }

    /// Returns the total size in bytes of all values below `prefix`.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn nbytes(&self, prefix: &str) -> Result<u64>;

    /// Returns the version of the value under `key`, in one request at most.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn version_of(&self, key: &str) -> Result<Version> {
        match self.open(key)? {
            None => Ok(Version::Missing),
            Some(value) => Ok(value.version()?.map_or(Version::Unknown, Version::Of)),
        }
    }

    /// Returns the [`Value::version`] of the value under `key` without opening the value. `None` if that is no cheaper, or
    /// if the key has no value.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn version_without_opening(&self, key: &str) -> Result<Option<[u64; 4]>> {
        let _ = key;
        Ok(None)
    }

    /// Returns a store of the values now below `prefix`, with the prefix removed from the keys. It follows these
    /// values: if they are moved or erased, it never shows the values that replace them. `None` if there is nothing
    /// below `prefix`, or if the store cannot tell old values from new ones, as at the root of a folder, where values
    /// are replaced one by one.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn subtree(&self, prefix: &str) -> Result<Option<Arc<dyn Store>>> {
        let _ = prefix;
        Ok(None)
    }

    /// Returns why nothing can exist at `path`, for the error of a missing node: a symbolic link without a target.
    fn dangling_link(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }

    /// Returns a number that identifies the folder at `path`, by whatever links it is reached; `None` if `path` is no
    /// folder, or the store has no links.
    fn folder_number(&self, path: &str) -> Option<[u64; 2]> {
        let _ = path;
        None
    }

    /// Returns the interface for changes; `None` if the store is read-only.
    fn writer(&self) -> Option<&dyn StoreWriter> {
        None
    }

    /// Returns the whole value under `key`; `None` if the key has no value.
    ///
    /// # Errors
    /// As [`open`](Store::open), and [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than `limit` bytes.
    fn get(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.open(key)?.map(|value| whole(&*value, limit)).transpose()
    }

    /// Returns the whole values under several keys, each with its own limit, in the order of `keys` and with the
    /// results of [`get`](Store::get). A store with slow answers sends all requests at once.
    fn get_each(&self, keys: &[(String, u64)]) -> Vec<Got> {
        keys.iter().map(|(key, limit)| self.get(key, *limit)).collect()
    }
}

/// Returns the store's interface for changes.
///
/// # Errors
/// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly).
pub(crate) fn writer_of(store: &dyn Store) -> Result<&dyn StoreWriter> {
    store.writer().ok_or_else(|| crate::ErrorKind::ReadOnly.into())
}

/// Reads all bytes of a value.
///
/// # Errors
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than `limit` bytes, and the errors of [`Value::read_at`].
pub(crate) fn whole(value: &dyn Value, limit: u64) -> Result<Vec<u8>> {
    let actual = value.nbytes()?;
    if actual > limit {
        return Err(crate::ErrorKind::Limit { what: "the size of a document", actual, limit }.into());
    }
    let length = usize::try_from(actual).unwrap_or(usize::MAX);
    let mut memory = allocation::filled(MaybeUninit::uninit(), length)?;
    // If the value has shrunk since, return the shorter bytes: their parser reports the error.
    Ok(allocation::copied(value.read_at(0, &mut memory)?)?)
}

/// Copies bytes starting at `offset` to `destination`, as [`Value::read_at`] does for a value in memory.
pub(crate) fn read_bytes<'a>(
    bytes: &[u8],
    offset: u64,
    destination: &'a mut [MaybeUninit<u8>],
) -> &'a mut [u8] {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let rest = &bytes[start..];
    let length = rest.len().min(destination.len());
    destination[..length].write_copy_of_slice(&rest[..length])
}

/// Result of [`Store::list_ahead`]: either already requested, or requested by this call.
pub type Listed<'a> = Box<dyn FnOnce() -> Result<Vec<String>> + 'a>;

/// Result of reading a whole value.
pub type Got = Result<Option<Vec<u8>>>;

/// Version of the value under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The key has no value.
    Missing,
    /// The key has a value, but the store cannot tell its versions apart.
    Unknown,
    /// The version from [`Value::version`].
    Of([u64; 4]),
}

/// A value opened for reading.
pub trait Value: Send + Sync {
    /// Returns the size in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn nbytes(&self) -> Result<u64>;

    /// Reads into `destination`, starting at `offset` in the value. Returns the filled start of `destination`, which is
    /// shorter than `destination` only if the value ends first.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]>;

    /// Reads like [`read_at`](Value::read_at), unless the read would wait for a disk. `None` if it would, or if the
    /// store cannot tell.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn read_at_once<'a>(
        &self,
        offset: u64,
        destination: &'a mut [MaybeUninit<u8>],
    ) -> Result<Option<&'a mut [u8]>> {
        let _ = (offset, destination);
        Ok(None)
    }

    /// Reads the value to the start of `memory` in one call; `None` if its size is not exactly `length` bytes. May
    /// overwrite one byte of `memory` after them.
    ///
    /// A store that gets the bytes and the size in one request saves the extra request for the size.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn read_whole<'a>(
        &self,
        memory: &'a mut [MaybeUninit<u8>],
        length: usize,
    ) -> Result<Option<&'a mut [u8]>> {
        if self.nbytes()? != length as u64 || length > memory.len() {
            return Ok(None);
        }
        let filled = self.read_at(0, &mut memory[..length])?;
        Ok((filled.len() == length).then_some(filled))
    }

    /// Returns the bytes of a value in memory.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the version of the value: numbers that change when the value is rewritten. `None` if the
    /// store cannot tell, so that nothing of the value may be cached.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(None)
    }

    /// Returns the part of a file that holds the value unchanged, to be mapped into memory.
    fn file(&self) -> Option<FileRange<'_>> {
        None
    }
}

/// Byte range of a value in an open file.
#[derive(Debug, Clone, Copy)]
pub struct FileRange<'a> {
    /// The file.
    pub file: BorrowedFd<'a>,
    /// Byte offset of the value in the file.
    pub offset: u64,
    /// Size of the value in bytes; `None` for everything up to the end of the file.
    pub nbytes: Option<u64>,
}
