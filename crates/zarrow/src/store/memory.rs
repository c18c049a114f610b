//! A store in memory, for tests and for small hierarchies that never touch a disk.
//!
//! 1. Everything happens under one lock, the lock of the values: a value is set, or a prefix erased or replaced, in one
//!    step.
//! 2. A store of a subtree uses the same values through a *pin* on its prefix. Erasing or replacing the prefix removes
//!    the pin. Without the pin the store is empty, and writes through it are dropped.
//! 3. A lock of a key is a number in the set of held locks. Erasing a prefix removes the numbers of the keys below it,
//!    and writes under a removed lock are dropped.

use crate::error::{ErrorKind, Result};
use crate::store::fault_point::step;
use crate::store::{Store, StoreWriter, Value, Version, check_key, join, read_bytes};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zarrow_array::allocation::{self, Grow};
use zarrow_array::fork::{Mutex, MutexGuard};

/// Values in memory: the initial values of the store, and later changes.
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
    shared: Arc<SharedValues>,
    /// Prefix of the store, if it is not the root (step 2).
    pin: Option<Arc<Pin>>,
}

/// State shared by all stores of the same values.
#[derive(Debug, Default)]
struct SharedValues {
    state: Mutex<State>,
    /// Numbers of versions and of locks.
    next: AtomicU64,
}

/// Prefix of a store of a subtree.
#[derive(Debug)]
struct Pin {
    prefix: String,
    /// Whether the prefix was erased or replaced; this changes under the lock of the values.
    is_gone: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    values: Values,
    /// Locked keys: each with the locking process, since a forked child has separate locks, and the lock's number.
    pub(super) locked: HashMap<String, (u64, u64)>,
    pins: Vec<Arc<Pin>>,
}

pub(super) type Values = BTreeMap<String, Arc<Stored>>;

/// A value. It never changes: setting a key replaces the value.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) bytes: Vec<u8>,
    pub(super) version: u64,
}

impl MemoryStore {
    /// Creates a store with these values.
    ///
    /// # Errors
    /// [`ErrorKind::BadKey`]; [`ErrorKind::Write`] if the key of one value is a folder of another's, such as `a` of
    /// `a/b`.
    pub fn new<K: Into<String>>(values: impl IntoIterator<Item = (K, Vec<u8>)>) -> Result<MemoryStore> {
        let store = MemoryStore::default();
        for (key, bytes) in values {
            let key = key.into();
            check_key(&key)?;
            store.put(&key, bytes, None).map_err(|error| error.in_array(store.name(), &key))?;
        }
        Ok(store)
    }

    /// Locks the values and the key locks until the returned guard is dropped.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        step("lock the values");
        self.shared.state.lock()
    }

    /// Returns a new number for a version or a lock.
    pub(super) fn number(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the key relative to the root.
    pub(super) fn full<'k>(&'k self, key: &'k str) -> Cow<'k, str> {
        match &self.pin {
            None => Cow::Borrowed(key),
            Some(pin) if key.is_empty() => Cow::Borrowed(&pin.prefix),
            Some(pin) => Cow::Owned(join(&pin.prefix, key)),
        }
    }

    /// Whether the store's prefix has not been erased or replaced. This cannot change while the values are locked.
    pub(super) fn is_there(&self, _locked: &State) -> bool {
        self.pin.as_ref().is_none_or(|pin| !pin.is_gone.load(Ordering::Relaxed))
    }

    /// Creates a value to be stored.
    pub(super) fn stored(&self, bytes: Vec<u8>) -> Arc<Stored> {
        Arc::new(Stored { bytes, version: self.number() })
    }

    /// Sets a value, under the lock with this number if there is one.
    pub(super) fn put(&self, key: &str, bytes: Vec<u8>, lock: Option<u64>) -> Result<()> {
        let (key, stored) = (self.full(key), self.stored(bytes));
        let mut state = self.state();
        if !self.is_there(&state) || !state.allows(&key, lock) {
            return Ok(());
        }
        let before = state.set(&key, stored)?;
        drop(state);
        // Free the old value after unlocking.
        drop(before);
        Ok(())
    }

    /// Erases a value, under the lock with this number if there is one; returns whether there was a value.
    pub(super) fn take(&self, key: &str, lock: Option<u64>) -> bool {
        let key = self.full(key);
        let mut state = self.state();
        let may = self.is_there(&state) && state.allows(&key, lock);
        let before = if may { state.values.remove(&*key) } else { None };
        drop(state);
        before.is_some()
    }

    fn find(&self, key: &str) -> Result<Option<Arc<Stored>>> {
        check_key(key)?;
        let key = self.full(key);
        let state = self.state();
        Ok(if self.is_there(&state) { state.values.get(&*key).cloned() } else { None })
    }
}

impl State {
    /// Whether the holder of this lock may still change the value; true without a lock.
    fn allows(&self, key: &str, lock: Option<u64>) -> bool {
        lock.is_none_or(|number| self.locked.get(key).is_some_and(|(_, locked)| *locked == number))
    }

    /// Returns numbers that identify the lock of `key` if this process holds it.
    pub(super) fn holder(&self, key: &str, generation: u64) -> Option<[u64; 4]> {
        let (process, number) = self.locked.get(key)?;
        (*process == generation).then_some([*process, *number, 0, 0])
    }

    /// Sets a value, and returns the old one.
    pub(super) fn set(&mut self, key: &str, stored: Arc<Stored>) -> Result<Option<Arc<Stored>>> {
        if let Some(place) = self.values.get_mut(key) {
            return Ok(Some(std::mem::replace(place, stored)));
        }
        check_place(&self.values, key)?;
        Ok(self.values.insert(key.to_owned(), stored))
    }

    /// Removes a value.
    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Stored>> {
        self.values.remove(key)
    }

    /// Removes and returns the value under `prefix` and all values below it. Also removes their pins and their locks,
    /// except the locks of the `marks` at the root: their holder is replacing the prefix.
    pub(super) fn take(&mut self, prefix: &str, marks: &[&str]) -> Values {
        let is_taken = |key: &str| key == prefix || below(key, prefix).is_some();
        let is_kept = |key: &str| prefix.is_empty() && marks.contains(&key);
        self.locked.retain(|key, _| !is_taken(key) || is_kept(key));
        for pin in self.pins.iter().filter(|pin| is_taken(&pin.prefix)) {
            pin.is_gone.store(true, Ordering::Relaxed);
        }
        self.values.extract_if(.., |key, _| is_taken(key)).collect()
    }

    /// Whether there is a value below `prefix`.
    fn has_below(&self, prefix: &str) -> bool {
        let folder = format!("{prefix}/");
        let first = self.values.range::<str, _>((Bound::Included(folder.as_str()), Bound::Unbounded)).next();
        first.is_some_and(|(key, _)| key.starts_with(&folder))
    }

    /// Sets several values together, with versions that the store has not used before.
    pub(super) fn set_all(&mut self, values: Values, prefix: &str, number: &dyn Fn() -> u64) {
        for (key, mut stored) in values {
            let version = number();
            match Arc::get_mut(&mut stored) {
                Some(stored) => stored.version = version,
                None => stored = Arc::new(Stored { bytes: stored.bytes.clone(), version }),
            }
            self.values.insert(join(prefix, &key), stored);
        }
    }

    /// Removes and returns all values.
    pub(super) fn take_all(&mut self) -> Values {
        std::mem::take(&mut self.values)
    }
}

/// Checks that no prefix of `key` has a value, and that there is no value below `key`: as in a folder, a key with a
/// value has no values below it. So `open`, `list` and `erase` interpret keys in the same way, and a hierarchy can be
/// copied to a folder.
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

/// Returns `key` without `prefix`; `None` if it is not below `prefix`.
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
        Ok(self.find(key)?.map(|stored| Box::new(stored) as Box<dyn Value>))
    }

    fn version_of(&self, key: &str) -> Result<Version> {
        Ok(self.find(key)?.map_or(Version::Missing, |stored| Version::Of([stored.version, 0, 0, 0])))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = self.full(prefix);
        let state = self.state();
        let below = state.values.keys().filter_map(|key| below(key, &prefix));
        let mut names: Vec<&str> = Vec::new();
        for name in below.filter(|_| self.is_there(&state)).filter_map(|key| key.split('/').next()) {
            if names.last() != Some(&name) {
                names.try_push(name)?;
            }
        }
        // The names are in the order of the sorted keys, except names that are prefixes of other names: "a.b" is
        // between "a" and "a/b".
        names.sort_unstable();
        names.dedup();
        Ok(allocation::try_collected(names.into_iter().map(allocation::text))?)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        let prefix = self.full(prefix);
        let state = self.state();
        let below = state.values.iter().filter(|(key, _)| below(key, &prefix).is_some());
        Ok(below.filter(|_| self.is_there(&state)).map(|(_, stored)| stored.bytes.len() as u64).sum())
    }

    /// Step 2. The root too is replaced in one step.
    fn subtree(&self, prefix: &str) -> Result<Option<Arc<dyn Store>>> {
        if !prefix.is_empty() {
            check_key(prefix)?;
        }
        let pin = Arc::new(Pin { prefix: self.full(prefix).into_owned(), is_gone: AtomicBool::new(false) });
        let mut state = self.state();
        let has_any = match &*pin.prefix {
            "" => !state.values.is_empty(),
            prefix => state.has_below(prefix),
        };
        if !has_any || !self.is_there(&state) {
            return Ok(None);
        }
        state.pins.try_push(Arc::clone(&pin))?;
        drop(state);
        Ok(Some(Arc::new(MemoryStore { shared: Arc::clone(&self.shared), pin: Some(pin) })))
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        if let Some(pin) = &self.pin {
            let mut state = self.shared.state.lock();
            if let Some(at) = state.pins.iter().position(|held| Arc::ptr_eq(held, pin)) {
                state.pins.swap_remove(at);
            }
        }
    }
}

impl Value for Arc<Stored> {
    fn nbytes(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        Ok(read_bytes(&self.bytes, offset, destination))
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    /// Each value of a store has a unique number.
    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(Some([self.version, 0, 0, 0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, FilesystemStore};

    /// A key is either a value or a folder, in memory as well as on disk.
    #[test]
    fn a_key_with_a_value_has_no_keys_below_it() {
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

    /// A store of a subtree does not show the values that replace its prefix.
    #[test]
    fn erased_and_replaced_values_are_invisible() {
        let store = MemoryStore::new([("a/zarr.json", vec![1]), ("a/c/0", vec![2]), ("b", vec![3])]).unwrap();
        assert!(store.subtree("none").unwrap().is_none() && store.subtree("b").unwrap().is_none());
        for prefix in ["a", ""] {
            let pinned = store.subtree(prefix).unwrap().unwrap();
            let (document, chunk) =
                if prefix.is_empty() { ("a/zarr.json", "a/c/0") } else { ("zarr.json", "c/0") };
            let writer = pinned.writer().unwrap();
            writer.overwrite(chunk, Some(&[&[4]]), Durability::None, &|| Ok(())).unwrap();
            assert_eq!(store.get("a/c/0", 1).unwrap().unwrap(), [4]);
            assert_eq!(pinned.version_of(document).unwrap(), store.version_of("a/zarr.json").unwrap());
            let lock = writer.lock(chunk, &|| Ok(())).unwrap();
            let stage = store.stage(prefix, Durability::None).unwrap().unwrap();
            stage.store().writer().unwrap().set(document, &[&[5]], Durability::None).unwrap();
            drop(stage.publish(true, &["zarr.json"]).unwrap());
            writer.set(chunk, &[&[6]], Durability::None).unwrap();
            writer.overwrite(chunk, Some(&[&[7]]), Durability::None, &|| Ok(())).unwrap();
            writer.set_under(&*lock, &[&[8]], Durability::None).unwrap();
            let late = writer.lock(chunk, &|| Ok(())).unwrap();
            writer.set_under(&*late, &[&[9]], Durability::None).unwrap();
            assert!(!writer.erase(document, Durability::None).unwrap());
            assert!(writer.detach("", Durability::None, &[]).unwrap().is_none());
            assert_eq!(store.get("a/c/0", 1).unwrap(), None);
            assert_eq!(store.get("a/zarr.json", 1).unwrap().unwrap(), [5]);
            assert_eq!(pinned.version_of(document).unwrap(), Version::Missing);
            assert!(pinned.list("").unwrap().is_empty() && pinned.nbytes("").unwrap() == 0);
            assert!(pinned.subtree("").unwrap().is_none());
            drop((lock, late));
        }
        assert!(store.state().pins.is_empty() && store.state().locked.is_empty());
    }
}
