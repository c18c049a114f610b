//! A least-recently-used cache that is bounded in bytes: for shard indexes, and for decoded chunks.
//!
//! A key ends with the version of the value that produced the entry. After a rewrite, the old entry is never found
//! again and is eventually evicted.
//!
//! An entry is charged for its value, its key, its slots in the table and the order, and the allocator's overhead for
//! each allocation. With small chunks that is many times the value's size.

use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use zarrow_array::fork::{Mutex, MutexGuard, generation};

/// A chunk's location and version.
pub type Key = Vec<u64>;

/// Entries of type `V`.
#[derive(Debug)]
pub struct Cache<V> {
    limit: usize,
    /// Whether a dropped entry is found until [`Cache::forget`].
    is_in_front: bool,
    state: Mutex<State<V>>,
}

/// An entry that was dropped.
pub type Dropped<V> = (Arc<[u64]>, Arc<V>);

#[derive(Debug)]
struct State<V> {
    entries: HashMap<Arc<[u64]>, Entry<V>>,
    /// The keys by time of last use.
    order: BTreeMap<u64, Arc<[u64]>>,
    /// Dropped entries that the cache behind does not have yet.
    leaving: HashMap<Arc<[u64]>, Arc<V>>,
    nbytes: usize,
    /// Bytes of the [`Room`]s of this process.
    reserved: usize,
    generation: u64,
    clock: u64,
}

/// Room for an entry, until it is dropped: its value is being made.
pub struct Room<'a, V> {
    cache: &'a Cache<V>,
    nbytes: usize,
    generation: u64,
}

impl<V> Drop for Room<'_, V> {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        if state.generation == self.generation {
            state.reserved -= self.nbytes;
        }
    }
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    nbytes: usize,
    used: u64,
}

impl<V> Default for State<V> {
    fn default() -> State<V> {
        State {
            entries: HashMap::new(),
            order: BTreeMap::new(),
            leaving: HashMap::new(),
            nbytes: 0,
            reserved: 0,
            generation: generation(),
            clock: 0,
        }
    }
}

impl<V> Cache<V> {
    /// A cache of at most `limit` bytes.
    pub fn new(limit: usize) -> Cache<V> {
        Cache { limit, is_in_front: false, state: Mutex::new(State::default()) }
    }

    /// A cache of at most `limit` bytes in front of a slower one. A dropped entry is found here until the caller has
    /// stored it there and calls [`Cache::forget`], so that a reader finds it in one of both at every moment.
    pub fn in_front(limit: usize) -> Cache<V> {
        Cache { is_in_front: true, ..Cache::new(limit) }
    }

    /// Bytes of an entry besides the value's own content.
    fn overhead(key: &[u64]) -> usize {
        /// The allocator's overhead per allocation, including rounding.
        const PIECE_NBYTES: usize = 32;
        /// The two counts of an `Arc`.
        const COUNTS_NBYTES: usize = 2 * size_of::<usize>();
        // A table is at least 7/16 full, with a byte for each place; nodes of the order at least 5/11.
        let place = (size_of::<(Arc<[u64]>, Entry<V>)>() + 1) * 16 / 7;
        let node = (size_of::<(u64, Arc<[u64]>)>() + PIECE_NBYTES / 5) * 11 / 5;
        let (key, value) =
            (size_of_val(key) + COUNTS_NBYTES + PIECE_NBYTES, size_of::<V>() + COUNTS_NBYTES + PIECE_NBYTES);
        place + node + key + value
    }

    /// The entry under `key`, which is then the most recently used.
    pub fn get(&self, key: &Key) -> Option<Arc<V>> {
        let mut state = self.state.lock();
        let State { entries, order, leaving, clock, .. } = &mut *state;
        let Some(entry) = entries.get_mut(key.as_slice()) else {
            return leaving.get(key.as_slice()).map(Arc::clone);
        };
        *clock += 1;
        let key = order.remove(&entry.used)?;
        entry.used = *clock;
        order.insert(*clock, key);
        Some(Arc::clone(&entry.value))
    }

    /// Stores `value` under `key`, if it fits the limit beside the values that are being made, and there is memory for
    /// the entry. `nbytes` is the size of the memory that `value` owns. Returns the dropped entries: older ones, or the
    /// new one.
    pub fn insert(&self, key: &Key, value: Arc<V>, nbytes: usize) -> SmallVec<[Dropped<V>; 1]> {
        let nbytes = nbytes.saturating_add(Self::overhead(key));
        let mut dropped = SmallVec::new();
        let mut replaced = SmallVec::<[Arc<V>; 1]>::new();
        if nbytes > self.limit {
            dropped.push((key.as_slice().into(), value));
            return dropped;
        }
        let mut state = self.state();
        // Older ones go first, so that the limit holds at every moment.
        self.drop_oldest(&mut state, nbytes, &mut dropped, &mut replaced);
        let State { entries, order, nbytes: sum, reserved, clock, .. } = &mut *state;
        if sum.saturating_add(*reserved) > self.limit - nbytes {
            dropped.push((key.as_slice().into(), value));
            return dropped;
        }
        if entries.capacity() / 4 > entries.len() + 64 {
            entries.shrink_to(2 * entries.len());
        }
        if entries.try_reserve(1).is_err() {
            return dropped;
        }
        *clock += 1;
        let key: Arc<[u64]> = key.as_slice().into();
        let before = entries.insert(Arc::clone(&key), Entry { value, nbytes, used: *clock });
        if let Some(before) = &before {
            order.remove(&before.used);
            *sum -= before.nbytes;
        }
        order.insert(*clock, key);
        *sum += nbytes;
        drop(state);
        // Another library may own a value's memory: its destructors run without the lock.
        drop((before, replaced));
        dropped
    }

    /// Makes room for an entry under `key` with `nbytes` bytes before its value is made. `None` if it does not fit the limit
    /// beside the values that are being made: then nothing is dropped. Also returns the dropped entries.
    pub fn make_room(&self, key: &Key, nbytes: usize) -> (Option<Room<'_, V>>, SmallVec<[Dropped<V>; 1]>) {
        let nbytes = nbytes.saturating_add(Self::overhead(key));
        let (mut dropped, mut replaced) = (SmallVec::new(), SmallVec::new());
        let mut state = self.state();
        if nbytes > self.limit.saturating_sub(state.reserved) {
            return (None, dropped);
        }
        self.drop_oldest(&mut state, nbytes, &mut dropped, &mut replaced);
        state.reserved += nbytes;
        let room = Room { cache: self, nbytes, generation: state.generation };
        drop(state);
        (Some(room), dropped)
    }

    /// Locks the state. The rooms of a parent's threads do not exist in a forked child.
    fn state(&self) -> MutexGuard<'_, State<V>> {
        let mut state = self.state.lock();
        if state.generation != generation() {
            (state.generation, state.reserved) = (generation(), 0);
        }
        state
    }

    /// Drops the oldest entry, and returns it.
    pub fn pop_oldest(&self) -> Option<Dropped<V>> {
        let (mut dropped, mut replaced) = (SmallVec::new(), SmallVec::new());
        let mut state = self.state.lock();
        self.drop_one(&mut state, &mut dropped, &mut replaced);
        drop(state);
        dropped.pop()
    }

    /// Drops the oldest entries until `nbytes` more bytes fit. `replaced` gets values to free without the lock.
    fn drop_oldest(
        &self,
        state: &mut State<V>,
        nbytes: usize,
        dropped: &mut SmallVec<[Dropped<V>; 1]>,
        replaced: &mut SmallVec<[Arc<V>; 1]>,
    ) {
        while state.nbytes.saturating_add(state.reserved) > self.limit - nbytes
            && self.drop_one(state, dropped, replaced)
        {}
    }

    /// Drops the oldest entry; returns whether there was one.
    fn drop_one(
        &self,
        state: &mut State<V>,
        dropped: &mut SmallVec<[Dropped<V>; 1]>,
        replaced: &mut SmallVec<[Arc<V>; 1]>,
    ) -> bool {
        let State { entries, order, leaving, nbytes: sum, .. } = state;
        let Some((_, oldest)) = order.pop_first() else { return false };
        if let Some(entry) = entries.remove(&oldest) {
            *sum -= entry.nbytes;
            if self.is_in_front && leaving.try_reserve(1).is_ok() {
                replaced.extend(leaving.insert(Arc::clone(&oldest), Arc::clone(&entry.value)));
            }
            dropped.push((oldest, entry.value));
        }
        true
    }

    /// Forgets a dropped entry, which the cache behind has now.
    pub fn forget(&self, key: &[u64]) {
        let left = self.state.lock().leaving.remove(key);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_dropped_first() {
        let each = Cache::<u64>::overhead(&[0]);
        let cache = Cache::new(3 * (each + 30) + 10);
        for key in 0..4u64 {
            cache.insert(&vec![key], Arc::new(key), 30);
            assert!(cache.get(&vec![0]).is_some() || key > 0);
        }
        assert_eq!(cache.get(&vec![1]).as_deref(), None);
        assert_eq!(cache.get(&vec![0]).as_deref(), Some(&0));
        assert_eq!(cache.get(&vec![3]).as_deref(), Some(&3));
        cache.insert(&vec![9], Arc::new(9), cache.limit - each + 1);
        assert_eq!(cache.get(&vec![9]).as_deref(), None);
        cache.insert(&vec![3], Arc::new(33), cache.limit - each);
        assert_eq!(cache.get(&vec![3]).as_deref(), Some(&33));
        assert_eq!(cache.get(&vec![0]).as_deref(), None);
        assert!(cache.state.lock().nbytes <= cache.limit);
    }

    #[test]
    fn rooms_count_towards_the_limit() {
        let each = Cache::<u64>::overhead(&[0]) + 30;
        let cache = Cache::new(3 * each);
        for key in 0..3u64 {
            cache.insert(&vec![key], Arc::new(key), 30);
        }
        let (first, dropped) = cache.make_room(&vec![3], 30);
        assert!(first.is_some() && dropped.len() == 1 && cache.get(&vec![0]).is_none());
        let (rest, dropped) = cache.make_room(&vec![4], 2 * each);
        assert!(rest.is_none() && dropped.is_empty(), "what does not fit beside a room drops nothing");
        assert_eq!(cache.insert(&vec![5], Arc::new(5), 30).len(), 1);
        assert!(cache.get(&vec![1]).is_none() && cache.get(&vec![5]).is_some());
        drop(first);
        assert!(cache.insert(&vec![6], Arc::new(6), 30).is_empty());
        let (mut all, _) = cache.make_room(&vec![7], 3 * each - Cache::<u64>::overhead(&[0]));
        assert!(all.is_some() && cache.insert(&vec![8], Arc::new(8), 30)[0].0[..] == [8]);
        assert_eq!(cache.state().nbytes, 0);
        // A forked child has the rooms of its parent no more.
        let parent = generation().wrapping_sub(1);
        all.as_mut().unwrap().generation = parent;
        cache.state.lock().generation = parent;
        assert_eq!(cache.state().reserved, 0);
        drop(all);
        assert_eq!(cache.state().reserved, 0);
    }

    #[test]
    fn a_dropped_entry_in_front_of_another_cache_is_found_until_it_is_forgotten() {
        let cache = Cache::<u64>::in_front(Cache::<u64>::overhead(&[0]) + 30);
        cache.insert(&vec![0], Arc::new(0), 30);
        let dropped = cache.insert(&vec![1], Arc::new(1), 30);
        assert_eq!(dropped.iter().map(|(key, _)| key[0]).collect::<Vec<_>>(), [0]);
        assert_eq!([0, 1].map(|key| cache.get(&vec![key]).as_deref().copied()), [Some(0), Some(1)]);
        cache.forget(&[0]);
        assert_eq!([0, 1].map(|key| cache.get(&vec![key]).as_deref().copied()), [None, Some(1)]);
    }
}
