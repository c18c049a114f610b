//! Where the bytes are: keys and values, read by range, and written whole.

mod capabilities;
mod file_lock;
mod filesystem;
mod filesystem_writer;
#[cfg(test)]
mod interleaving;
mod key;
mod key_fault;
mod leftover;
mod memory;
mod memory_writer;
mod owner;
mod read_only;
pub mod remote;
mod removal;
mod retry;
mod staging;
mod step;
#[cfg(test)]
mod tests;
mod writer;
mod zip;

pub use filesystem::FilesystemStore;
pub use key::{check_key, join, normalize_path};
pub(crate) use key_fault::key_fault;
pub use memory::MemoryStore;
pub use read_only::ReadOnlyStore;
pub(crate) use retry::{Retry, until_no_conflict};
pub use writer::{Detached, Draft, Durability, Lock, Locked, Stage, StoreWriter};
pub use zip::{RemoteZip, ZipStore, is_archive, open_path};

use crate::error::Result;
use std::any::Any;
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use zarrow_array::allocation;

/// A place that holds values under keys.
///
/// Keys are those that [`check_key`] accepts: the engine checks what comes from outside before it asks. As [`Any`] it tells
/// which store it is.
pub trait Store: Any + Send + Sync + Debug {
    /// How the store calls itself in errors: a path or a URL, without credentials.
    fn name(&self) -> &str;

    /// The value under `key`, opened for reading; `None` where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where it cannot be told, [`ErrorKind::BadKey`](crate::ErrorKind::BadKey).
    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>>;

    /// The store itself, where its answers come by completion, so that many requests are in flight at once.
    fn remote(&self) -> Option<&dyn remote::RemoteStore> {
        None
    }

    /// The names directly below `prefix` (a path without a slash at its end), sorted.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn list(&self, prefix: &str) -> Result<Vec<String>>;

    /// As [`list`](Store::list), for who asks for something else meanwhile: where a request takes long it is sent at once, and
    /// given up where nobody calls for the names.
    fn list_ahead<'a>(&'a self, prefix: &str) -> Listed<'a> {
        let prefix = prefix.to_owned();
        Box::new(move || self.list(&prefix))
    }

    /// The bytes of all values below `prefix`.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn nbytes(&self, prefix: &str) -> Result<u64>;

    /// Which version of a value lies under `key`, in one request at most.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn version_of(&self, key: &str) -> Result<Version> {
        match self.open(key)? {
            None => Ok(Version::Missing),
            Some(value) => Ok(value.version()?.map_or(Version::Unknown, Version::Of)),
        }
    }

    /// The store of what is below `prefix` now, by keys without the prefix. It stays with these values: where they are
    /// moved or erased, and others take their place, it does not have the others. `None` where there is nothing, and where
    /// the store cannot tell one from the other: so at the root of a folder, where values are replaced one by one.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn subtree(&self, prefix: &str) -> Result<Option<Arc<dyn Store>>> {
        let _ = prefix;
        Ok(None)
    }

    /// What changes the store; `None` where it can only be read.
    fn writer(&self) -> Option<&dyn StoreWriter> {
        None
    }

    /// The whole value under `key`; `None` where there is none.
    ///
    /// # Errors
    /// As [`open`](Store::open), and [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than `limit` bytes.
    fn get(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.open(key)?.map(|value| whole(&*value, limit)).transpose()
    }

    /// The whole values under several keys, each with its limit, as [`get`](Store::get) gives them, in their order: all at
    /// once, where a request takes long.
    fn get_each(&self, keys: &[(String, u64)]) -> Vec<Got> {
        keys.iter().map(|(key, limit)| self.get(key, *limit)).collect()
    }
}

/// All bytes of a value.
///
/// # Errors
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than `limit` of them, and as [`Value::read_at`].
pub(crate) fn whole(value: &dyn Value, limit: u64) -> Result<Vec<u8>> {
    let actual = value.nbytes()?;
    if actual > limit {
        return Err(crate::ErrorKind::Limit { what: "the size of a document", actual, limit }.into());
    }
    let length = usize::try_from(actual).unwrap_or(usize::MAX);
    let mut memory = allocation::filled(MaybeUninit::uninit(), length)?;
    // A value that has shrunk since is whole all the same: its parser will tell.
    Ok(allocation::copied(value.read_at(0, &mut memory)?)?)
}

/// Copies bytes from `offset` on to `destination`, as [`Value::read_at`] does for a value in memory.
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

/// Names that were asked for, or are when this is called.
pub type Listed<'a> = Box<dyn FnOnce() -> Result<Vec<String>> + 'a>;

/// What came of asking for a whole value.
pub type Got = Result<Option<Vec<u8>>>;

/// Which version of a value lies under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// There is no value.
    Missing,
    /// There is one, and the store cannot tell its versions apart.
    Unknown,
    /// That of [`Value::version`].
    Of([u64; 4]),
}

/// A value that is open for reading.
pub trait Value: Send + Sync {
    /// Its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn nbytes(&self) -> Result<u64>;

    /// Reads from `offset` on to fill `destination`; returns its part that was filled, from its start on, which is
    /// shorter only where the value ends.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]>;

    /// Reads like [`read_at`](Value::read_at), unless the read would wait for a disk. `None` if it would, or if the store
    /// cannot tell.
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

    /// Reads the value to the start of `memory` all at once; `None` if it does not have exactly `length` bytes. A byte of
    /// `memory` behind them may be overwritten.
    ///
    /// A store that can tell both in one request saves the one for the length.
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

    /// The value itself, where the store has it in memory.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// What changes when the value is written anew: numbers of which at least one then differs. `None` where the store
    /// cannot tell, so that nothing of the value may be kept.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(None)
    }

    /// Where in a file the value lies as it is, if it does, to be mapped into memory.
    fn file(&self) -> Option<FileRange<'_>> {
        None
    }
}

/// The bytes of a value in an open file.
#[derive(Debug, Clone, Copy)]
pub struct FileRange<'a> {
    /// The file.
    pub file: BorrowedFd<'a>,
    /// Where the value begins in it.
    pub offset: u64,
    /// Bytes of the value; `None` for all up to the end of the file.
    pub nbytes: Option<u64>,
}
