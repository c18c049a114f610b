//! A store in memory, for tests and for small hierarchies that never touch a disk.
//!
//! A lock of a key is a number among those that are taken. Erasing a prefix takes the numbers of the keys below it away, and
//! what is set under a lock that is gone goes with it.

use crate::error::Result;
use crate::store::{Draft, Durability, Lock, Store, StoreWriter, Value, check_key};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::fork::{Mutex, generation};

/// Values in memory: those that the store was made with, and those that were set since.
///
/// ```
/// use zarrow::store::{MemoryStore, Store};
/// let store = MemoryStore::new([("a/zarr.json", b"{}".to_vec()), ("a/c/0", vec![1, 2])])?;
/// assert_eq!(store.list("a")?, ["c", "zarr.json"]);
/// assert_eq!(store.nbytes("a")?, 4);
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    /// Numbers of versions and of locks.
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    values: BTreeMap<String, Arc<Stored>>,
    /// Keys that are locked, each with the process that did, since a forked child has its own locks, and the lock's number.
    locked: HashMap<String, (u64, u64)>,
}

/// A value, which never changes: the next one takes its place.
#[derive(Debug)]
struct Stored {
    bytes: Vec<u8>,
    version: u64,
}

impl MemoryStore {
    /// A store of these values.
    ///
    /// # Errors
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey).
    pub fn new<K: Into<String>>(values: impl IntoIterator<Item = (K, Vec<u8>)>) -> Result<MemoryStore> {
        let store = MemoryStore::default();
        for (key, bytes) in values {
            store.insert(key.into(), bytes)?;
        }
        Ok(store)
    }

    fn insert(&self, key: String, bytes: Vec<u8>) -> Result<()> {
        check_key(&key)?;
        self.put(key, bytes, None);
        Ok(())
    }

    /// Sets a value, under the lock of this number, where it has one.
    fn put(&self, key: String, bytes: Vec<u8>, lock: Option<u64>) {
        let stored = Arc::new(Stored { bytes, version: self.next.fetch_add(1, Ordering::Relaxed) });
        let mut state = self.state.lock();
        let before = if state.allows(&key, lock) { state.values.insert(key, stored) } else { None };
        drop(state);
        // What was there is freed after the lock.
        drop(before);
    }

    fn take(&self, key: &str, lock: Option<u64>) -> bool {
        let mut state = self.state.lock();
        let before = if state.allows(key, lock) { state.values.remove(key) } else { None };
        drop(state);
        before.is_some()
    }
}

impl State {
    /// Whether who has this lock may still change the value, or has none.
    fn allows(&self, key: &str, lock: Option<u64>) -> bool {
        lock.is_none_or(|number| self.locked.get(key).is_some_and(|(_, locked)| *locked == number))
    }
}

/// `key` without `prefix`, where it lies below it.
fn below<'a>(key: &'a str, prefix: &str) -> Option<&'a str> {
    match prefix {
        "" => Some(key),
        prefix => key.strip_prefix(prefix)?.strip_prefix('/'),
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &str {
        "memory"
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        check_key(key)?;
        let stored = self.state.lock().values.get(key).cloned();
        Ok(stored.map(|stored| Box::new(stored) as Box<dyn Value>))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let state = self.state.lock();
        let below = state.values.keys().filter_map(|key| below(key, prefix));
        let names: BTreeSet<&str> = below.filter_map(|key| key.split('/').next()).collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        let state = self.state.lock();
        let below = state.values.iter().filter(|(key, _)| below(key, prefix).is_some());
        Ok(below.map(|(_, stored)| stored.bytes.len() as u64).sum())
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }
}

impl StoreWriter for MemoryStore {
    fn draft(&self, key: &str, _durability: Durability) -> Result<Box<dyn Draft + '_>> {
        check_key(key)?;
        Ok(Box::new(MemoryDraft { store: self, key: key.to_owned(), lock: None, bytes: Mutex::default() }))
    }

    fn draft_under(&self, lock: &dyn Lock, _durability: Durability) -> Result<Box<dyn Draft + '_>> {
        let (key, lock) = (lock.key().to_owned(), lock.number());
        Ok(Box::new(MemoryDraft { store: self, key, lock, bytes: Mutex::default() }))
    }

    fn erase(&self, key: &str, _durability: Durability) -> Result<bool> {
        check_key(key)?;
        Ok(self.take(key, None))
    }

    fn erase_under(&self, lock: &dyn Lock, _durability: Durability) -> Result<bool> {
        Ok(self.take(lock.key(), lock.number()))
    }

    fn erase_prefix(&self, prefix: &str, _durability: Durability) -> Result<bool> {
        if !prefix.is_empty() {
            check_key(prefix)?;
        }
        let mut state = self.state.lock();
        let is_erased = |key: &str| key == prefix || below(key, prefix).is_some();
        state.locked.retain(|key, _| !is_erased(key));
        let erased: Vec<_> = state.values.extract_if(.., |key, _| is_erased(key)).collect();
        drop(state);
        Ok(!erased.is_empty())
    }

    fn try_lock(&self, key: &str) -> Result<Option<Box<dyn Lock + '_>>> {
        check_key(key)?;
        let own = (generation(), self.next.fetch_add(1, Ordering::Relaxed));
        let mut state = self.state.lock();
        if state.locked.get(key).is_some_and(|(process, _)| *process == own.0) {
            return Ok(None);
        }
        state.locked.insert(key.to_owned(), own);
        Ok(Some(Box::new(KeyLock { store: self, key: key.to_owned(), own })))
    }

    fn sweep(&self, _prefix: &str) -> Result<usize> {
        Ok(0)
    }
}

/// A value that is being written.
struct MemoryDraft<'a> {
    store: &'a MemoryStore,
    key: String,
    /// The number of the lock under which it is set.
    lock: Option<u64>,
    bytes: Mutex<Vec<u8>>,
}

impl Draft for MemoryDraft<'_> {
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let mut bytes = self.bytes.lock();
        let mut at = usize::try_from(offset).unwrap_or(usize::MAX);
        for part in parts {
            let nbytes = at.saturating_add(part.len());
            if nbytes > bytes.len() {
                let more = nbytes - bytes.len();
                bytes.try_reserve(more).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
                let start = at.max(bytes.len());
                bytes.resize(start, 0);
            }
            let over = part.len().min(bytes.len() - at);
            bytes[at..at + over].copy_from_slice(&part[..over]);
            bytes.extend_from_slice(&part[over..]);
            at = nbytes;
        }
        Ok(())
    }

    fn publish(self: Box<Self>) -> Result<()> {
        let MemoryDraft { store, key, lock, bytes } = *self;
        store.put(key, bytes.into_inner(), lock);
        Ok(())
    }
}

/// The lock of a key.
struct KeyLock<'a> {
    store: &'a MemoryStore,
    key: String,
    own: (u64, u64),
}

impl Lock for KeyLock<'_> {
    fn key(&self) -> &str {
        &self.key
    }

    fn number(&self) -> Option<u64> {
        Some(self.own.1)
    }
}

impl Drop for KeyLock<'_> {
    fn drop(&mut self) {
        let mut state = self.store.state.lock();
        // It may be gone already, and another's by now.
        if state.locked.get(&self.key) == Some(&self.own) {
            state.locked.remove(&self.key);
        }
    }
}

impl Value for Arc<Stored> {
    fn nbytes(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let rest = &self.bytes[start..];
        let length = rest.len().min(destination.len());
        Ok(destination[..length].write_copy_of_slice(&rest[..length]))
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    /// Each value of a store has a number of its own.
    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(Some([self.version, 0, 0, 0]))
    }
}
