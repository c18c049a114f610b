//! Changes a remote store through its adapter: each value is put as a whole.
//!
//! 1. Locks are optimistic. A lock is the version of the value at the time when it was taken, and a value is set under
//!    it on the condition that this version is still stored. If another writer was faster, that is
//!    [`ErrorKind::Conflict`], and a caller that reads, changes and sets a value starts again.
//! 2. A value set without a lock is put unconditionally: a writer that read the older value cannot undo it, because its
//!    condition fails.
//! 3. A store without conditions has no locks.
//! 4. A draft is collected in memory, and put when it is published.
//! 5. The values below a prefix are listed, and deleted many at a time, the documents of nodes first.

use super::adapter::{RemoteAdapter, RemoteValue};
use super::{ByteRange, Condition, Listing, ObjectVersion, Put, RemoteWriter, wait};
use crate::error::{Error, ErrorKind, Result};
use crate::store::memory_writer::copy_parts;
use crate::store::remote::body::{Fetched, fetch};
use crate::store::remote::{Request, RequestClass};
use crate::store::{Detached, Draft, Durability, Lock, Locked, Store, StoreWriter, Value, check_key, join};
use zarrow_array::allocation::concatenated;
use zarrow_array::fork::Mutex;

/// Number of keys deleted by one call.
const KEYS_PER_DELETE: usize = 10_000;

impl RemoteAdapter {
    fn remote_writer(&self) -> Result<&dyn RemoteWriter> {
        self.remote_store().writer().ok_or_else(|| ErrorKind::ReadOnly.into())
    }

    /// Puts a value; returns its version, if the store reports one.
    pub(super) fn put(
        &self,
        key: &str,
        body: Vec<Vec<u8>>,
        condition: &Condition,
    ) -> Result<Option<ObjectVersion>> {
        check_key(key)?;
        let (writer, condition) = (self.remote_writer()?, condition.clone());
        match wait(|done| writer.put(key, body.into(), condition, done), &|| Ok(()))? {
            Put::Done(version) => Ok(version),
            Put::Conflict => Err(ErrorKind::Conflict.into()),
        }
    }

    fn delete(&self, mut keys: Vec<String>) -> Result<()> {
        let writer = self.remote_writer()?;
        self.put_documents().forget(&keys);
        while !keys.is_empty() {
            let rest = keys.split_off(keys.len().min(KEYS_PER_DELETE));
            let some = std::mem::replace(&mut keys, rest);
            wait(|done| writer.delete(some, done), &|| Ok(()))?;
        }
        Ok(())
    }

    /// Step 5, for the listed keys.
    pub(super) fn detach_listed<'a>(
        &'a self,
        prefix: &str,
        listing: Listing,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>> {
        let marks: Vec<String> = marks.iter().map(|name| join(prefix, name)).collect();
        let (first, rest): (Vec<String>, Vec<String>) =
            listing.values.into_iter().map(|value| value.key).partition(|key| marks.contains(key));
        if first.is_empty() && rest.is_empty() {
            return Ok(None);
        }
        self.delete(first)?;
        Ok(Some(Box::new(RemoteDetached { store: self, keys: rest })))
    }

    /// Returns the condition that the value now under `key` is still stored; `None` if the store has no versions for
    /// it.
    fn present(&self, key: &str) -> Result<Option<Condition>> {
        let request = Request::new(key, ByteRange::Range(0..0)).with_class(RequestClass::Metadata);
        Ok(match fetch(self.remote_store(), request, 0, &|| Ok(()))? {
            Fetched::Body(body) => body.version.map(Condition::IfVersion),
            Fetched::Missing => Some(Condition::IfAbsent),
            Fetched::Changed | Fetched::TooLarge(_) => None,
        })
    }
}

/// Returns the error for a store that cannot exclude a second writer of a value (step 3).
fn no_conditions() -> Error {
    let text = "this store has no conditional writes: changing part of a chunk, attributes or a \
                shape could undo another writer's change";
    Error::from(ErrorKind::Unsupported(text.into())).with_hint(
        "write whole chunks (multiples of write_unit); if there is no other writer, pass \
         zarrow.PythonStore(store, sole_writer=True) in Python",
    )
}

impl StoreWriter for RemoteAdapter {
    fn is_optimistic(&self) -> bool {
        true
    }

    fn needs_documents_first(&self) -> bool {
        self.remote_writer().is_ok_and(RemoteWriter::needs_documents_first)
    }

    fn set(&self, key: &str, parts: &[&[u8]], _: Durability) -> Result<()> {
        self.put(key, vec![concatenated(parts)?], &Condition::Always).map(drop)
    }

    fn set_new(&self, key: &str, parts: &[&[u8]], durability: Durability) -> Result<()> {
        if !self.remote_writer()?.has_conditions() {
            return self.set(key, parts, durability);
        }
        match self.put(key, vec![concatenated(parts)?], &Condition::IfAbsent) {
            // The server turned out to have no conditions.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported(_)) => {
                self.set(key, parts, durability)
            }
            put => put.map(drop),
        }
    }

    fn draft(&self, key: &str, _: Durability) -> Result<Box<dyn Draft + '_>> {
        check_key(key)?;
        Ok(RemoteDraft::boxed(self, key, Condition::Always))
    }

    fn draft_under(&self, lock: &dyn Lock, _: Durability) -> Result<Box<dyn Draft + '_>> {
        let condition = lock.condition().cloned().unwrap_or(Condition::Always);
        Ok(RemoteDraft::boxed(self, lock.key(), condition))
    }

    fn set_under(&self, lock: &dyn Lock, parts: &[&[u8]], _: Durability) -> Result<()> {
        let condition = lock.condition().unwrap_or(&Condition::Always);
        self.put(lock.key(), vec![concatenated(parts)?], condition).map(drop)
    }

    fn erase_under(&self, lock: &dyn Lock, durability: Durability) -> Result<bool> {
        match lock.condition() {
            None | Some(Condition::Always) => self.erase(lock.key(), durability),
            Some(Condition::IfAbsent) => Ok(false),
            // No service deletes on a condition: a change between the check and the deletion counts as later.
            Some(version) if self.present(lock.key())?.as_ref() == Some(version) => {
                self.erase(lock.key(), durability)
            }
            Some(_) => Err(ErrorKind::Conflict.into()),
        }
    }

    /// Step 2.
    fn overwrite(
        &self,
        key: &str,
        parts: Option<&[&[u8]]>,
        durability: Durability,
        _: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        match parts {
            Some(parts) => self.set(key, parts, durability),
            None => self.delete(vec![key.to_owned()]),
        }
    }

    fn erase_each(&self, keys: Vec<String>, _: Durability) -> Result<()> {
        self.delete(keys)
    }

    fn erase(&self, key: &str, _: Durability) -> Result<bool> {
        check_key(key)?;
        let is_there = self.present(key)? != Some(Condition::IfAbsent);
        if is_there {
            self.delete(vec![key.to_owned()])?;
        }
        Ok(is_there)
    }

    /// Step 5.
    fn detach<'a>(
        &'a self,
        prefix: &str,
        _: Durability,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>> {
        let store = self.remote_store();
        let listing = wait(|done| store.list(prefix, true, done), &|| Ok(()))?;
        self.detach_listed(prefix, listing, marks)
    }

    /// Step 1.
    fn try_lock(&self, key: &str) -> Result<Option<Box<dyn Lock + '_>>> {
        check_key(key)?;
        if !self.remote_writer()?.has_conditions() {
            return Err(no_conditions());
        }
        let condition = self.present(key)?.ok_or_else(no_conditions)?;
        Ok(Some(Box::new(RemoteLock::new(key, condition))))
    }

    fn lock_and_open<'a>(
        &'a self,
        _: &'a dyn Store,
        key: &str,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<Locked<'a>> {
        let boxed = |value| Box::new(value) as Box<dyn Value>;
        let writer = self.remote_writer()?;
        if !writer.has_conditions() {
            return Err(no_conditions());
        }
        if !writer.tells_versions() {
            let lock = self.lock(key, pass)?;
            return Ok((lock, self.opened(key)?.map(RemoteValue::locked).map(boxed)));
        }
        let value = self.opened(key)?.map(RemoteValue::locked);
        let condition = match &value {
            Some(value) => value.object_version().map(Condition::IfVersion).ok_or_else(no_conditions)?,
            None => Condition::IfAbsent,
        };
        let lock = Box::new(RemoteLock::new(key, condition));
        Ok((lock, value.map(boxed)))
    }

    fn lock_to_replace(&self, key: &str, _: &dyn Fn() -> Result<()>) -> Result<Box<dyn Lock + '_>> {
        check_key(key)?;
        Ok(Box::new(RemoteLock::new(key, Condition::Always)))
    }

    fn sweep(&self, _: &str) -> Result<usize> {
        // A killed put leaves only parts that belong to no key.
        Ok(0)
    }
}

/// Version at the time of locking (step 1).
pub(super) struct RemoteLock {
    key: String,
    condition: Condition,
}

impl RemoteLock {
    /// Creates the lock of `key` with this condition.
    pub(super) fn new(key: &str, condition: Condition) -> RemoteLock {
        RemoteLock { key: key.to_owned(), condition }
    }
}

impl Lock for RemoteLock {
    fn key(&self) -> &str {
        &self.key
    }

    fn condition(&self) -> Option<&Condition> {
        Some(&self.condition)
    }
}

/// Step 4.
struct RemoteDraft<'a> {
    store: &'a RemoteAdapter,
    key: String,
    condition: Condition,
    bytes: Mutex<Vec<u8>>,
}

impl<'a> RemoteDraft<'a> {
    fn boxed(store: &'a RemoteAdapter, key: &str, condition: Condition) -> Box<dyn Draft + 'a> {
        Box::new(RemoteDraft { store, key: key.to_owned(), condition, bytes: Mutex::new(Vec::new()) })
    }
}

impl Draft for RemoteDraft<'_> {
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        copy_parts(&mut self.bytes.lock(), offset, parts)
    }

    fn publish(self: Box<Self>) -> Result<()> {
        let bytes = std::mem::take(&mut *self.bytes.lock());
        self.store.put(&self.key, vec![bytes], &self.condition).map(drop)
    }
}

/// Values below a prefix after its documents were deleted.
struct RemoteDetached<'a> {
    store: &'a RemoteAdapter,
    keys: Vec<String>,
}

impl Detached for RemoteDetached<'_> {
    fn clear(mut self: Box<Self>) -> Result<()> {
        self.store.delete(std::mem::take(&mut self.keys))
    }
}

impl Drop for RemoteDetached<'_> {
    fn drop(&mut self) {
        if !self.keys.is_empty() {
            // There is no caller left to report an error to.
            let _ = self.store.delete(std::mem::take(&mut self.keys));
        }
    }
}
