//! Changing a store: values are written and erased whole, and a lock keeps two writers of one value apart.

use crate::codec_calls;
use crate::error::{Error, ErrorKind, Result};
use crate::store::remote::Condition;
use crate::store::retry::Retry;
use crate::store::{Store, Value};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What has reached the disk when a write returns. Whatever is asked, a value is old or new, whole, after the process
/// was killed at any point; the others also say what is left after the machine lost its power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Nothing has to: the kernel writes when it likes. A machine that loses power may lose what was written last.
    #[default]
    None,
    /// The value's bytes: the value under its key is old or new, whole, after a loss of power.
    File,
    /// The value's bytes and its name: the value is the new one.
    Full,
}

/// What can be changed in a store.
pub trait StoreWriter: Send + Sync {
    /// Makes the value under `key` the `parts`, one behind the other, in one step: a reader sees the old value or the
    /// new one, whole, even where this process is killed at any point.
    ///
    /// The parts may lie in memory that others write to meanwhile: they are given to the kernel or copied, each byte read
    /// once, and nothing is concluded from what they hold.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) where it cannot be written: the old value stands then.
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey).
    fn set(&self, key: &str, parts: &[&[u8]], durability: Durability) -> Result<()> {
        let draft = self.draft(key, durability)?;
        draft.write_at(0, parts)?;
        draft.publish()
    }

    /// Whether the locks of this store keep nobody out, so that what is set under one may be
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict), where another has set it meanwhile: who read the value begins
    /// anew then.
    fn is_optimistic(&self) -> bool {
        false
    }

    /// Whether chunks can be set only below the document of their array.
    fn needs_documents_first(&self) -> bool {
        false
    }

    /// As [`set`](StoreWriter::set), for a value that is not there; of two who do so at once one succeeds, where the store
    /// has a way for that.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set); [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where it is there.
    fn set_new(&self, key: &str, parts: &[&[u8]], durability: Durability) -> Result<()> {
        self.set(key, parts, durability)
    }

    /// A value for `key` that is written piece by piece, and takes the place of the old one in one step when it is
    /// published.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn draft(&self, key: &str, durability: Durability) -> Result<Box<dyn Draft + '_>>;

    /// As [`draft`](StoreWriter::draft), for the holder of `lock`, of the same key, and sets what follows from the value that it
    /// read under it. Where a prefix of the key was erased since the lock was taken, the new value goes with the old one, or
    /// publishing is an error: what was erased does not come back.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn draft_under(&self, lock: &dyn Lock, durability: Durability) -> Result<Box<dyn Draft + '_>> {
        self.draft(lock.key(), durability)
    }

    /// As [`set`](StoreWriter::set), for the holder of `lock`: see [`draft_under`](StoreWriter::draft_under).
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn set_under(&self, lock: &dyn Lock, parts: &[&[u8]], durability: Durability) -> Result<()> {
        let draft = self.draft_under(lock, durability)?;
        draft.write_at(0, parts)?;
        draft.publish()
    }

    /// As [`erase`](StoreWriter::erase), for the holder of `lock`: see [`draft_under`](StoreWriter::draft_under).
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn erase_under(&self, lock: &dyn Lock, durability: Durability) -> Result<bool> {
        self.erase(lock.key(), durability)
    }

    /// As [`set`](StoreWriter::set), or as [`erase`](StoreWriter::erase) where `parts` is `None`, for who does not hold
    /// the lock of `key` and did not read its value: once this has returned it is never undone by another who holds the
    /// lock, has read the value before and sets it after.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set), and what `pass` gives, which is asked where it has to wait.
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

    /// Takes the value under `key` away; says whether there was one. Another who holds the lock of `key` may have read it
    /// before and set it after: [`overwrite`](StoreWriter::overwrite) with `None` excludes that.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn erase(&self, key: &str, durability: Durability) -> Result<bool>;

    /// Erases the values under `keys`, as [`overwrite`](StoreWriter::overwrite) with `None` does. Prefixes stay.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set). Some of the values may be erased already.
    fn erase_each(&self, keys: Vec<String>, durability: Durability) -> Result<()> {
        keys.iter().try_for_each(|key| self.overwrite(key, None, durability, &|| Ok(())))
    }

    /// Takes all values below `prefix` away, which is a path without a slash at its end, `""` for all of the store; says
    /// whether there was anything. Below a prefix that is not empty they go in one step.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set), and where something is left that is no longer a value, with its place.
    fn erase_prefix(&self, prefix: &str, durability: Durability) -> Result<bool> {
        match self.detach(prefix, durability, &[])? {
            Some(detached) => detached.clear().map(|()| true),
            None => Ok(false),
        }
    }

    /// As [`erase_prefix`](StoreWriter::erase_prefix), but what is taken away need not be removed yet; `None` where there
    /// was nothing. Where values do not go in one step, those of the names `marks` directly below go first.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn detach<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>>;

    /// A place for values that are to be below `prefix`, which nobody sees until they are published there, together.
    /// `None` where the store has no such places.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn stage<'a>(&'a self, prefix: &str, durability: Durability) -> Result<Option<Box<dyn Stage<'a> + 'a>>> {
        let _ = (prefix, durability);
        Ok(None)
    }

    /// The lock of `key`, which need not have a value: until it is dropped no other thread and no other process gets it;
    /// `None` where somebody has it. A process that ends, however it ends, holds no lock.
    ///
    /// Reading and setting need no lock: it is for a writer that reads a value, changes it and sets it, by
    /// [`set_under`](StoreWriter::set_under) and its like. Who holds
    /// the lock of a chunk or of a document takes no other; a change of the shape of an array holds one around these.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set); [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the place of the
    /// value has no locks.
    fn try_lock(&self, key: &str) -> Result<Option<Box<dyn Lock + '_>>>;

    /// As [`lock`](StoreWriter::lock), with the value that is there then, in `store`, which is the one that this changes: in one
    /// request, where the lock is the version of the value.
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

    /// As [`lock`](StoreWriter::lock), for who sets the value without having read it.
    ///
    /// # Errors
    /// As [`lock`](StoreWriter::lock).
    fn lock_to_replace(&self, key: &str, pass: &dyn Fn() -> Result<()>) -> Result<Box<dyn Lock + '_>> {
        self.lock(key, pass)
    }

    /// Removes what writers left behind that were killed, below `prefix` at any depth; returns how many things that were.
    /// What writers at work need is left to them.
    ///
    /// Nothing has to call it: leftovers are neither keys nor values, block nobody, and those beside a value go when a
    /// process first writes there.
    ///
    /// # Errors
    /// As [`set`](StoreWriter::set).
    fn sweep(&self, prefix: &str) -> Result<usize>;

    /// Numbers that tell the present holder of the lock of `key` from the next one, if the store knows any.
    fn holder(&self, key: &str) -> Option<[u64; 4]> {
        let _ = key;
        None
    }

    /// The lock of `key`, waited for. While waiting, `pass` is asked now and then, and an error of it ends the wait.
    ///
    /// # Errors
    /// As [`try_lock`](StoreWriter::try_lock), and what `pass` gives; [`ErrorKind::Write`](crate::ErrorKind::Write) after
    /// an hour with the same holder, or after seconds in a codec.
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

/// Numbers that tell one holder of a lock from the next.
type Holder = Option<[u64; 4]>;

/// A wait for a lock.
pub(super) struct LockWait {
    retry: Retry,
    holder: Option<Holder>,
}

impl Default for LockWait {
    fn default() -> LockWait {
        LockWait { retry: Retry::lock(), holder: None }
    }
}

impl LockWait {
    /// Pauses before the next attempt at the lock of `key`. The wait begins anew with each holder.
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

/// A lock that is held, and the value that was there when it was taken.
pub type Locked<'a> = (Box<dyn Lock + 'a>, Option<Box<dyn Value + 'a>>);

/// A value that nobody sees yet. It goes away when it is dropped and was not published.
pub trait Draft: Send + Sync {
    /// Writes the `parts`, one behind the other, from `offset` on. What nobody writes below the end is zero.
    ///
    /// # Errors
    /// As [`StoreWriter::set`].
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()>;

    /// Makes it the value of its key, whole and in one step.
    ///
    /// # Errors
    /// As [`StoreWriter::set`].
    fn publish(self: Box<Self>) -> Result<()>;
}

/// Values that nobody sees yet. They go away when this is dropped and was not published.
pub trait Stage<'a>: Send + Sync {
    /// The store that has them, by keys without the prefix.
    fn store(&self) -> &Arc<dyn Store>;

    /// Makes them the values below the prefix: in the place of all that are there, or beside those. That is one step,
    /// except at the store's root and beside others: there the values of the names `marks`, directly below, are taken
    /// away first and come last, in their order from the last one to the first.
    ///
    /// # Errors
    /// As [`StoreWriter::set`].
    fn publish(self: Box<Self>, replace: bool, marks: &[&str]) -> Result<Box<dyn Detached + 'a>>;
}

/// What is below no key any more, and not removed yet. Where this is dropped it is removed as far as that can be.
pub trait Detached: Send + Sync {
    /// Removes it.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write) where something is left, with its place.
    fn clear(self: Box<Self>) -> Result<()>;
}

/// A lock that is held, until it is dropped.
pub trait Lock: Send {
    /// The key.
    fn key(&self) -> &str;

    /// What the store knows the lock by, where it numbers its locks.
    fn number(&self) -> Option<u64> {
        None
    }

    /// What has to be there still when the value is set under the lock, where the store is
    /// [optimistic](StoreWriter::is_optimistic).
    fn condition(&self) -> Option<&Condition> {
        None
    }

    /// The folder that the value lay in when the lock was taken, where the store is one of folders.
    fn folder(&self) -> Option<&Arc<OwnedFd>> {
        None
    }
}
