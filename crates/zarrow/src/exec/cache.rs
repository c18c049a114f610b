//! A cache bounded by bytes, the least recently used going first: of shard indexes, and of decoded chunks.
//!
//! A key ends with the version of the value that the entry came from, so that an entry of a value that was rewritten
//! since is never found, and in time goes. The lock is only ever tried: who does not get it does without the cache.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use zarrow_array::fork::{CacheGuard, CacheMutex};

/// Where a chunk is, and which version of it.
pub type Key = Vec<u64>;

/// Entries of type `V`.
#[derive(Debug)]
pub struct Cache<V> {
    limit: usize,
    state: CacheMutex<State<V>>,
}

#[derive(Debug)]
struct State<V> {
    entries: HashMap<Key, Entry<V>>,
    /// The keys by when they were last used.
    order: BTreeMap<u64, Key>,
    nbytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    nbytes: usize,
    used: u64,
}

impl<V> Default for State<V> {
    fn default() -> State<V> {
        State { entries: HashMap::new(), order: BTreeMap::new(), nbytes: 0, clock: 0 }
    }
}

impl<V> Cache<V> {
    /// A cache of at most `limit` bytes.
    pub fn new(limit: usize) -> Cache<V> {
        Cache { limit, state: CacheMutex::new(State::default()) }
    }

    /// No critical section here leaves the state half changed.
    fn state(&self) -> Option<CacheGuard<'_, State<V>>> {
        self.state.try_lock()
    }

    /// The entry under `key`, which is then the most recently used.
    pub fn get(&self, key: &Key) -> Option<Arc<V>> {
        let mut state = self.state()?;
        let State { entries, order, clock, .. } = &mut *state;
        let entry = entries.get_mut(key)?;
        *clock += 1;
        order.remove(&entry.used);
        entry.used = *clock;
        order.insert(*clock, key.clone());
        Some(Arc::clone(&entry.value))
    }

    /// Keeps `value`, which takes `nbytes` bytes, under `key`, if the limit allows it at all.
    pub fn insert(&self, key: Key, value: Arc<V>, nbytes: usize) {
        if nbytes > self.limit {
            return;
        }
        let Some(mut state) = self.state() else { return };
        let State { entries, order, nbytes: sum, clock } = &mut *state;
        *clock += 1;
        if let Some(before) = entries.insert(key.clone(), Entry { value, nbytes, used: *clock }) {
            order.remove(&before.used);
            *sum -= before.nbytes;
        }
        order.insert(*clock, key);
        *sum += nbytes;
        while *sum > self.limit
            && let Some((_, oldest)) = order.pop_first()
        {
            *sum -= entries.remove(&oldest).map_or(0, |entry| entry.nbytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = Cache::new(100);
        for key in 0..4u64 {
            cache.insert(vec![key], Arc::new(key), 30);
            assert!(cache.get(&vec![0]).is_some() || key > 0);
        }
        assert_eq!(cache.get(&vec![1]).as_deref(), None);
        assert_eq!(cache.get(&vec![0]).as_deref(), Some(&0));
        assert_eq!(cache.get(&vec![3]).as_deref(), Some(&3));
        cache.insert(vec![9], Arc::new(9), 101);
        assert_eq!(cache.get(&vec![9]).as_deref(), None);
        cache.insert(vec![3], Arc::new(33), 100);
        assert_eq!(cache.get(&vec![3]).as_deref(), Some(&33));
        assert_eq!(cache.get(&vec![0]).as_deref(), None);
    }
}
