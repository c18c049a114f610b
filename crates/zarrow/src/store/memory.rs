//! A store in memory, for tests and for small hierarchies that never touch a disk.

use crate::error::Result;
use crate::store::fork::generation;
use crate::store::{Draft, Durability, Lock, Store, StoreWriter, Value, check_key};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zarrow_array::allocation::{self, Grow};

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
    values: Mutex<BTreeMap<String, Arc<Stored>>>,
    /// Keys that are locked, each with the process that did: a forked child has its own locks.
    locked: Mutex<HashMap<String, u64>>,
    version: AtomicU64,
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
        let version = self.version.fetch_add(1, Ordering::Relaxed);
        self.values().insert(key, Arc::new(Stored { bytes, version }));
        Ok(())
    }

    /// The values; every change of the map is one call, so that a panic leaves it whole.
    fn values(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Stored>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
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
        Ok(self.values().get(key).map(|stored| Box::new(Arc::clone(stored)) as Box<dyn Value>))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let values = self.values();
        let below = values.keys().filter_map(|key| below(key, prefix));
        let names: BTreeSet<&str> = below.filter_map(|key| key.split('/').next()).collect();
        Ok(allocation::collected(names.into_iter().map(str::to_owned))?)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        let values = self.values();
        let below = values.iter().filter(|(key, _)| below(key, prefix).is_some());
        Ok(below.map(|(_, stored)| stored.bytes.len() as u64).sum())
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }
}

impl StoreWriter for MemoryStore {
    fn draft(&self, key: &str, _durability: Durability) -> Result<Box<dyn Draft + '_>> {
        check_key(key)?;
        Ok(Box::new(MemoryDraft { store: self, key: key.to_owned(), bytes: Mutex::default() }))
    }

    fn erase(&self, key: &str, _durability: Durability) -> Result<bool> {
        check_key(key)?;
        Ok(self.values().remove(key).is_some())
    }

    fn erase_prefix(&self, prefix: &str, _durability: Durability) -> Result<bool> {
        if !prefix.is_empty() {
            check_key(prefix)?;
        }
        let mut values = self.values();
        let before = values.len();
        values.retain(|key, _| key != prefix && below(key, prefix).is_none());
        Ok(values.len() < before)
    }

    fn try_lock(&self, key: &str) -> Result<Option<Box<dyn Lock + '_>>> {
        check_key(key)?;
        let taken = self.locked().insert(key.to_owned(), generation()) != Some(generation());
        Ok(taken.then(|| Box::new(KeyLock { store: self, key: key.to_owned() }) as Box<dyn Lock>))
    }

    fn sweep(&self, _prefix: &str) -> Result<usize> {
        Ok(0)
    }
}

/// A value that is being written.
struct MemoryDraft<'a> {
    store: &'a MemoryStore,
    key: String,
    bytes: Mutex<Vec<u8>>,
}

impl Draft for MemoryDraft<'_> {
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = usize::try_from(offset).unwrap_or(usize::MAX);
        for part in parts {
            let nbytes = at.saturating_add(part.len());
            if nbytes > bytes.len() {
                let more = nbytes - bytes.len();
                bytes.make_room(more)?;
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
        let MemoryDraft { store, key, bytes } = *self;
        store.insert(key, bytes.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The lock of a key.
struct KeyLock<'a> {
    store: &'a MemoryStore,
    key: String,
}

impl Lock for KeyLock<'_> {}

impl Drop for KeyLock<'_> {
    fn drop(&mut self) {
        self.store.locked().remove(&self.key);
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
