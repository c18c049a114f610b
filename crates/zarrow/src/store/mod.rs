//! Where the bytes are: keys and values, read by range, and written whole.

mod file_lock;
mod filesystem;
mod filesystem_writer;
#[cfg(test)]
mod interleaving;
mod key;
mod leftover;
mod locality;
mod memory;
mod owner;
mod read_only;
mod removal;
mod staging;
mod step;
#[cfg(test)]
mod tests;
mod writer;

pub use filesystem::FilesystemStore;
pub use key::{check_key, join, normalize_path};
pub use memory::MemoryStore;
pub use read_only::ReadOnlyStore;
pub use writer::{Detached, Draft, Durability, Lock, Stage, StoreWriter};

use crate::error::Result;
use std::any::Any;
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
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

    /// As [`open`](Store::open), for a caller that goes on to read `first`: a store where each request takes long may
    /// fetch that with the answer, so that no more requests are needed for it.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn open_for(&self, key: &str, first: First) -> Result<Option<Box<dyn Value + '_>>> {
        let _ = first;
        self.open(key)
    }

    /// How many requests the store likes at once, where an answer takes long beside decoding what it brings; `None`
    /// where it answers as fast as memory or a local disk does.
    ///
    /// A read keeps as many requests under way, each in a thread that waits for its answer, while no more threads than
    /// [`num_threads`](crate::num_threads) decode.
    fn concurrency(&self) -> Option<NonZeroUsize> {
        None
    }

    /// The names directly below `prefix` (a path without a slash at its end), sorted.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    fn list(&self, prefix: &str) -> Result<Vec<String>>;

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
    /// the store cannot tell one from the other.
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
        let Some(value) = self.open(key)? else { return Ok(None) };
        let actual = value.nbytes()?;
        if actual > limit {
            return Err(crate::ErrorKind::Limit { what: "the size of a document", actual, limit }.into());
        }
        let length = usize::try_from(actual).unwrap_or(usize::MAX);
        let mut memory = allocation::filled(MaybeUninit::uninit(), length)?;
        // A value that has shrunk since is whole all the same: its parser will tell.
        Ok(Some(allocation::copied(value.read_at(0, &mut memory)?)?))
    }
}

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

/// What is read first of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// All of it, unless it has more bytes than this.
    Whole(u64),
    /// So many bytes from an offset on, or what there is of them.
    Range(u64, u64),
    /// So many bytes before its end, or what there is of them.
    End(u64),
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

    /// Reads the value, which has to be as long as `destination`, all at once; `None` where it has another length.
    ///
    /// A store that can tell both in one request saves the one for the length.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    fn read_whole<'a>(&self, destination: &'a mut [MaybeUninit<u8>]) -> Result<Option<&'a mut [u8]>> {
        let length = destination.len();
        if self.nbytes()? != length as u64 {
            return Ok(None);
        }
        let filled = self.read_at(0, destination)?;
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

    /// The file that holds the value from its first byte on, where there is one, to be mapped into memory.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
