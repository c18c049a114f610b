//! Changes to a store: values are written and erased as a whole, and locks exclude a second writer of the same value.

use crate::error::{Error, ErrorKind, Result};
use crate::store::codec_calls;
use crate::store::remote::Condition;
use crate::store::retry::Retry;
use crate::store::{Store, Value};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use zarrow_array::thread::OccupiedThread;

/// How durable a write is when it returns. With any setting, a process killed at any point leaves the whole old value
/// or the whole new one; the settings differ in the result of a power loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Nothing is flushed: the kernel writes when it likes. A power loss may lose the last writes.
    #[default]
    None,
    /// The value's bytes are flushed: after a power loss the key has the whole old value or the whole new one.
    File,
    /// The value's bytes and its name are flushed: after a power loss the key has the new value.
    Full,
}

/// Write interface of a store.
pub trait StoreWriter: Send + Sync {
    /// Sets the value under `key` to the concatenated `parts`, in one step: a reader sees the whole old value or the
    /// whole new one, even if this process is killed at any point.
    ///
    /// Other threads may write to the memory of the parts during the call: the parts are passed to the kernel or
    /// copied, each byte is read once, and no decision depends on their content.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) if the value cannot be written: the old value remains.
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey).
    fn set(&self, key: &str, parts: &[&[u8]], durability: Durability) -> Result<()> {
        let draft = self.draft(key, durability)?;
        draft.write_at(0, parts)?;
        draft.publish()
    }

    /// Whether the locks of this store are optimistic: they exclude no other writer. Setting a value under such a lock
    /// fails with [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if another writer has set the value since; the
    /// caller then reads the value again and starts over.
    fn is_optimistic(&self) -> bool {
        false
    }

    /// Whether chunks can be set only after the document of their array.
    fn needs_documents_first(&self) -> bool {
        false
    }

    /// Sets a value under a key without one, as [`set`](StoreWriter::set) does. If the store can exclude it, only one
    /// of two concurrent calls succeeds.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set); [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) if the key has a value.
    fn set_new(&self, key: &str, parts: &[&[u8]], durability: Durability) -> Result<()> {
        self.set(key, parts, durability)
    }

    /// Returns a draft for `key`: it is written piece by piece, and replaces the old value in one step when it is
    /// published.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn draft(&self, key: &str, durability: Durability) -> Result<Box<dyn Draft + '_>>;

    /// Returns a [`draft`](StoreWriter::draft) for the key of `lock`. The caller holds `lock`, and derived the new
    /// value from the one read under it. If a prefix of the key was erased since the lock was taken, the new value is
    /// erased as well, or publishing is an error: erased values do not come back.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn draft_under(&self, lock: &dyn Lock, durability: Durability) -> Result<Box<dyn Draft + '_>> {
        self.draft(lock.key(), durability)
    }

    /// Sets the value as [`set`](StoreWriter::set) does, for the holder of `lock`: see
    /// [`draft_under`](StoreWriter::draft_under).
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn set_under(&self, lock: &dyn Lock, parts: &[&[u8]], durability: Durability) -> Result<()> {
        let draft = self.draft_under(lock, durability)?;
        draft.write_at(0, parts)?;
        draft.publish()
    }

    /// Erases the value as [`erase`](StoreWriter::erase) does, for the holder of `lock`: see
    /// [`draft_under`](StoreWriter::draft_under).
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn erase_under(&self, lock: &dyn Lock, durability: Durability) -> Result<bool> {
        self.erase(lock.key(), durability)
    }

    /// Sets the value as [`set`](StoreWriter::set) does, or erases it if `parts` is `None`, for a caller that does not
    /// hold the lock of `key` and did not read its value. Once this has returned, no lock holder that read the older
    /// value can undo it by setting its own.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set), and errors of `pass`, which is called while waiting.
    fn overwrite(
        &self,
        key: &str,
        parts: Option<&[&[u8]]>,
        durability: Durability,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let lock = self.lock(key, pass)?;
        match parts {
            Some(parts) => self.set_under(&*lock, parts, durability),
            None => self.erase_under(&*lock, durability).map(drop),
        }
    }

    /// Erases the value under `key`; returns whether there was one. A lock holder that read the value before may set it
    /// again after: [`overwrite`](StoreWriter::overwrite) with `None` excludes that.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn erase(&self, key: &str, durability: Durability) -> Result<bool>;

    /// Erases the values under `keys`, as [`overwrite`](StoreWriter::overwrite) with `None` does, but nothing below
    /// them.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set). Some of the values may already be erased.
    fn erase_each(&self, keys: Vec<String>, durability: Durability) -> Result<()> {
        keys.iter().try_for_each(|key| self.overwrite(key, None, durability, &|| Ok(())))
    }

    /// Erases all values below `prefix` (a path without a trailing slash; `""` is the whole store); returns whether
    /// there was anything. Unless the prefix is empty, all values disappear in one step.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set), and an error with the location if erased files cannot be removed.
    fn erase_prefix(&self, prefix: &str, durability: Durability) -> Result<bool> {
        match self.detach(prefix, durability, &[])? {
            Some(detached) => detached.clear().map(|()| true),
            None => Ok(false),
        }
    }

    /// Detaches the values below `prefix` as [`erase_prefix`](StoreWriter::erase_prefix) does, but leaves their removal
    /// to the result; `None` if there was nothing. If the values cannot disappear in one step, those directly below
    /// with names in `marks` disappear first.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn detach<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>>;

    /// Returns a hidden stage for values below `prefix`, which become visible together when it is published. `None` if
    /// the store has no such stages.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn stage<'a>(&'a self, prefix: &str, durability: Durability) -> Result<Option<Box<dyn Stage<'a> + 'a>>> {
        let _ = (prefix, durability);
        Ok(None)
    }

    /// Tries to take the lock of `key`, which need not have a value; `None` if another thread or process holds it.
    /// Until the lock is dropped, no other thread or process gets it. A process that ends, in whatever way, releases
    /// its locks.
    ///
    /// Reading and setting need no lock: it is for a writer that reads a value, changes it and sets it, with
    /// [`set_under`](StoreWriter::set_under) and related methods. The holder of the lock of a chunk or a document takes
    /// no other lock; a change of an array's shape holds its own lock around these.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set); [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the value's location
    /// does not support locks.
    fn try_lock(&self, key: &str) -> Result<Option<Box<dyn Lock + '_>>>;

    /// Takes the [`lock`](StoreWriter::lock) and opens the current value in `store`, the store that this writer
    /// changes. This is one request if the lock is the version of the value.
    ///
    /// # Errors
    /// As [`lock`](StoreWriter::lock) and [`Store::open`].
    fn lock_and_open<'a>(
        &'a self,
        store: &'a dyn Store,
        key: &str,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<Locked<'a>> {
        let lock = self.lock(key, pass)?;
        let value = store.open(key)?;
        Ok((lock, value))
    }

    /// Takes the [`lock`](StoreWriter::lock) to set the value without reading it.
    ///
    /// # Errors
    /// As [`lock`](StoreWriter::lock).
    fn lock_to_replace(&self, key: &str, pass: &dyn Fn() -> Result<()>) -> Result<Box<dyn Lock + '_>> {
        self.lock(key, pass)
    }

    /// Removes what killed writers left below `prefix`, at any depth; returns the number of removed items. Files of
    /// active writers are kept.
    ///
    /// Calling it is optional: leftovers are neither keys nor values and block no writer, and those beside a value are
    /// removed when a process first writes there.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn sweep(&self, prefix: &str) -> Result<usize>;

    /// Returns numbers that distinguish the present holder of the lock of `key` from the next one, if the store knows
    /// them.
    fn holder(&self, key: &str) -> Option<[u64; 4]> {
        let _ = key;
        None
    }

    /// Waits for the lock of `key`. While waiting, it calls `pass` now and then, and an error of `pass` ends the wait.
    ///
    /// # Errors
    /// As [`try_lock`](StoreWriter::try_lock), and errors of `pass`; [`ErrorKind::Write`](crate::ErrorKind::Write)
    /// after an hour with the same holder, or after seconds in a codec.
    ///
    /// ```
    /// use zarrow::store::{Durability, MemoryStore, Store};
    /// let store = MemoryStore::new([("counter", vec![1])])?;
    /// let writer = store.writer().unwrap();
    /// let lock = writer.lock("counter", &|| Ok(()))?;
    /// let value = store.get("counter", 1)?.unwrap_or_default();
    /// writer.set("counter", &[&[value[0] + 1]], Durability::None)?;
    /// drop(lock);
    /// assert_eq!(store.get("counter", 1)?, Some(vec![2]));
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    fn lock(&self, key: &str, pass: &dyn Fn() -> Result<()>) -> Result<Box<dyn Lock + '_>> {
        let mut retry = LockWait::default();
        loop {
            if let Some(lock) = self.try_lock(key)? {
                return Ok(lock);
            }
            retry.again(key, &|| self.holder(key), pass)?;
        }
    }
}

/// Numbers that distinguish one holder of a lock from the next.
type Holder = Option<[u64; 4]>;

/// A wait for a lock.
pub(super) struct LockWait {
    retry: Retry,
    holder: Option<Holder>,
    /// From the first pause on: the holder may be in a codec that awaits the pool.
    occupied: Option<OccupiedThread>,
}

impl Default for LockWait {
    fn default() -> LockWait {
        LockWait { retry: Retry::lock(), holder: None, occupied: None }
    }
}

impl LockWait {
    /// Pauses before the next attempt at the lock of `key`. The maximum wait restarts with each holder.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] after too long a wait for one holder; errors of `pass`.
    pub(super) fn again(
        &mut self,
        key: &str,
        holder: &dyn Fn() -> Holder,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        if self.retry.is_due() {
            let found = holder();
            if self.holder.replace(found) != Some(found) {
                self.retry = Retry::lock();
            }
        }
        self.occupied.get_or_insert_with(OccupiedThread::enter);
        self.retry.again(pass, || held(key))
    }
}

/// Returns the error of a lock that its holder keeps for too long.
fn held(key: &str) -> Error {
    let text = if codec_calls::depth() > 0 {
        format!(
            "a codec waited too long for the lock of {key:?}, which the write that called it may hold: write to other arrays in a codec"
        )
    } else if codec_calls::count() > 0 {
        format!(
            "waited too long for the lock of {key:?}: its holder may be in a codec that waits for this write; write to other arrays in a codec"
        )
    } else {
        format!("another process or thread has held the lock of {key:?} for too long")
    };
    ErrorKind::Write(std::io::Error::new(std::io::ErrorKind::TimedOut, text)).into()
}

/// A held lock, and the value at the time when it was taken.
pub type Locked<'a> = (Box<dyn Lock + 'a>, Option<Box<dyn Value + 'a>>);

/// A value that is not visible yet. Dropping it without publishing removes it.
pub trait Draft: Send + Sync {
    /// Writes the concatenated `parts`, starting at `offset`. Bytes that are never written read as zero. Other threads may
    /// write to the memory of the parts, as in [`StoreWriter::set`].
    ///
    /// # Errors
    /// As [`StoreWriter::set`].
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()>;

    /// Makes this draft the value of its key, as a whole and in one step.
    ///
    /// # Errors
    /// As [`StoreWriter::set`].
    fn publish(self: Box<Self>) -> Result<()>;
}

/// Values that are not visible yet. Dropping the stage without publishing removes them.
pub trait Stage<'a>: Send + Sync {
    /// Returns the staged values as a store, with the prefix removed from the keys.
    fn store(&self) -> &Arc<dyn Store>;

    /// Moves the values below the prefix, in place of all values there or in addition to them. That is one step, except
    /// at the store's root and in addition to others: there the values directly below with names in `marks` are erased
    /// first, and set last, in reverse order of `marks`.
    ///
    /// # Errors
    /// As [`StoreWriter::set`].
    fn publish(self: Box<Self>, replace: bool, marks: &[&str]) -> Result<Box<dyn Detached + 'a>>;
}

/// Values that no key refers to any more, but that are not removed yet. Dropping this removes as much as possible.
pub trait Detached: Send + Sync {
    /// Removes the detached values.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write), with the location, if something could not be removed.
    fn clear(self: Box<Self>) -> Result<()>;
}

/// A held lock, released on drop.
pub trait Lock: Send {
    /// Returns the key of the lock.
    fn key(&self) -> &str;

    /// Returns the number of the lock, if the store numbers its locks.
    fn number(&self) -> Option<u64> {
        None
    }

    /// Returns the condition that the stored value must meet when it is set under the lock, if the store is
    /// [optimistic](StoreWriter::is_optimistic).
    fn condition(&self) -> Option<&Condition> {
        None
    }

    /// Returns the folder of the value at the time when the lock was taken, if the store is a folder.
    fn folder(&self) -> Option<&Arc<OwnedFd>> {
        None
    }
}
