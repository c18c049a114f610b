//! A store in memory, for tests and for small hierarchies that never touch a disk.
//!
//! A lock of a key is a number among those that are taken. Erasing a prefix takes the numbers of the keys below it away, and
//! what is set under a lock that is gone goes with it.

use crate::error::{ErrorKind, Result};
use crate::store::{
    Detached, Draft, Durability, Lock, Stage, Store, StoreWriter, Value, Version, check_key, join,
};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::allocation::{self, Grow};
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
    values: Values,
    /// Keys that are locked, each with the process that did, since a forked child has its own locks, and the lock's number.
    locked: HashMap<String, (u64, u64)>,
}

type Values = BTreeMap<String, Arc<Stored>>;

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
    /// [`ErrorKind::BadKey`]; [`ErrorKind::Write`] where the key of one value is a folder of another's, as `a` of `a/b`.
    pub fn new<K: Into<String>>(values: impl IntoIterator<Item = (K, Vec<u8>)>) -> Result<MemoryStore> {
        let store = MemoryStore::default();
        for (key, bytes) in values {
            store.insert(key.into(), bytes)?;
        }
        Ok(store)
    }

    fn insert(&self, key: String, bytes: Vec<u8>) -> Result<()> {
        check_key(&key)?;
        self.put(key, bytes, None)
    }

    /// Sets a value, under the lock of this number, where it has one.
    fn put(&self, key: String, bytes: Vec<u8>, lock: Option<u64>) -> Result<()> {
        let stored = Arc::new(Stored { bytes, version: self.next.fetch_add(1, Ordering::Relaxed) });
        let mut state = self.state.lock();
        if !state.allows(&key, lock) {
            return Ok(());
        }
        check_place(&state.values, &key)?;
        let before = state.values.insert(key, stored);
        drop(state);
        // What was there is freed after the lock.
        drop(before);
        Ok(())
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

    /// Takes the value under `prefix` and those below it out, and their locks, but for those of the `marks` at the root:
    /// who replaces it holds them.
    fn take(&mut self, prefix: &str, marks: &[&str]) -> Values {
        let is_taken = |key: &str| key == prefix || below(key, prefix).is_some();
        let is_kept = |key: &str| prefix.is_empty() && marks.contains(&key);
        self.locked.retain(|key, _| !is_taken(key) || is_kept(key));
        self.values.extract_if(.., |key, _| is_taken(key)).collect()
    }
}

/// Checks that `key` lies below no value, and that no value lies below it: as in a folder, what has a value has no values
/// below it. So `open`, `list` and `erase` all mean the same by a key, and a hierarchy can be copied to a folder.
fn check_place(values: &BTreeMap<String, Arc<Stored>>, key: &str) -> Result<()> {
    let refused = |kind: io::ErrorKind| Err(ErrorKind::Write(kind.into()).into());
    if key.match_indices('/').any(|(end, _)| values.contains_key(&key[..end])) {
        return refused(io::ErrorKind::NotADirectory);
    }
    let folder = format!("{key}/");
    match values.range::<str, _>((Bound::Included(folder.as_str()), Bound::Unbounded)).next() {
        Some((next, _)) if next.starts_with(&folder) => refused(io::ErrorKind::IsADirectory),
        _ => Ok(()),
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

    fn version_of(&self, key: &str) -> Result<Version> {
        check_key(key)?;
        let state = self.state.lock();
        Ok(state.values.get(key).map_or(Version::Missing, |stored| Version::Of([stored.version, 0, 0, 0])))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let state = self.state.lock();
        let below = state.values.keys().filter_map(|key| below(key, prefix));
        let mut names: Vec<&str> = Vec::new();
        for name in below.filter_map(|key| key.split('/').next()) {
            if names.last() != Some(&name) {
                names.try_push(name)?;
            }
        }
        // The keys are sorted, and so are names but for those that others begin with: "a.b" is between "a" and "a/b".
        names.sort_unstable();
        names.dedup();
        Ok(allocation::collected(names.into_iter().map(str::to_owned))?)
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

    fn detach<'a>(
        &'a self,
        prefix: &str,
        _durability: Durability,
        marks: &[&str],
    ) -> Result<Option<Box<dyn Detached + 'a>>> {
        if !prefix.is_empty() {
            check_key(prefix)?;
        }
        let taken = self.state.lock().take(prefix, marks);
        Ok((!taken.is_empty()).then(|| Box::new(MemoryRemains(taken)) as Box<dyn Detached>))
    }

    fn stage<'a>(&'a self, prefix: &str, _durability: Durability) -> Result<Option<Box<dyn Stage<'a> + 'a>>> {
        if !prefix.is_empty() {
            check_key(prefix)?;
        }
        let inside: Arc<MemoryStore> = Arc::default();
        let shown = Arc::clone(&inside) as Arc<dyn Store>;
        Ok(Some(Box::new(MemoryStage { store: self, prefix: prefix.to_owned(), inside, shown })))
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

/// Values of a store of their own, until they are published.
struct MemoryStage<'a> {
    store: &'a MemoryStore,
    prefix: String,
    inside: Arc<MemoryStore>,
    shown: Arc<dyn Store>,
}

impl<'a> Stage<'a> for MemoryStage<'a> {
    fn store(&self) -> &Arc<dyn Store> {
        &self.shown
    }

    /// One step, at the root too: all is done under the lock of the values.
    fn publish(self: Box<Self>, replace: bool, marks: &[&str]) -> Result<Box<dyn Detached + 'a>> {
        let new = std::mem::take(&mut self.inside.state.lock().values);
        let mut state = self.store.state.lock();
        let taken = if replace { state.take(&self.prefix, marks) } else { Values::new() };
        for (key, mut stored) in new {
            // A version that the store has not given to another value.
            let version = self.store.next.fetch_add(1, Ordering::Relaxed);
            match Arc::get_mut(&mut stored) {
                Some(stored) => stored.version = version,
                None => stored = Arc::new(Stored { bytes: stored.bytes.clone(), version }),
            }
            state.values.insert(join(&self.prefix, &key), stored);
        }
        drop(state);
        Ok(Box::new(MemoryRemains(taken)))
    }
}

/// Values that are dropped.
struct MemoryRemains(#[allow(dead_code, reason = "dropped outside of the lock")] Values);

impl Detached for MemoryRemains {
    fn clear(self: Box<Self>) -> Result<()> {
        Ok(())
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
        let MemoryDraft { store, key, lock, bytes } = *self;
        store.put(key, bytes.into_inner(), lock)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::FilesystemStore;

    /// A key is a value or a folder, in memory as in a folder.
    #[test]
    fn a_key_with_a_value_has_none_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let stores: [Box<dyn Store>; 2] =
            [Box::new(MemoryStore::default()), Box::new(FilesystemStore::create(folder.path()).unwrap())];
        for store in stores {
            let writer = store.writer().unwrap();
            let set =
                |key: &str| writer.set(key, &[b"value"], Durability::None).map_err(|error| error.to_string());
            let names = |prefix: &str| store.list(prefix).unwrap().join(" ");
            set("a").unwrap();
            assert!(set("a/b").is_err() && set("a/b/c").is_err(), "{}", store.name());
            assert!(store.open("a").unwrap().is_some() && store.open("a/b").unwrap().is_none());
            assert_eq!((names(""), names("a"), store.nbytes("a").unwrap()), ("a".into(), String::new(), 0));
            assert!(!writer.erase("a/b", Durability::None).unwrap());
            assert!(writer.erase("a", Durability::None).unwrap());
            set("a/b").unwrap();
            set("a-b").unwrap();
            assert!(set("a").is_err());
            set("a/b").unwrap();
            assert_eq!((names(""), names("a")), ("a a-b".into(), "b".into()));
            assert!(writer.erase_prefix("a", Durability::None).unwrap());
            set("a").unwrap();
        }
        let both = [("a", vec![1]), ("a/b", vec![2])];
        assert!(matches!(MemoryStore::new(both.clone()).unwrap_err().kind(), ErrorKind::Write(_)));
        assert!(MemoryStore::new(both.into_iter().rev()).is_err());
    }
}
