//! Changing a store in memory.

use crate::error::Result;
use crate::store::fault_point::step;
use crate::store::memory::{MemoryStore, Values};
use crate::store::writer::LockWait;
use crate::store::{Detached, Draft, Durability, Lock, Stage, Store, StoreWriter, check_key};
use std::sync::Arc;
use zarrow_array::allocation::{self, Grow};
use zarrow_array::fork::{Mutex, generation};

impl StoreWriter for MemoryStore {
    fn draft(&self, key: &str, _durability: Durability) -> Result<Box<dyn Draft + '_>> {
        check_key(key)?;
        Ok(Box::new(MemoryDraft { store: self, key: key.to_owned(), lock: None, bytes: Mutex::default() }))
    }

    fn draft_under(&self, lock: &dyn Lock, _durability: Durability) -> Result<Box<dyn Draft + '_>> {
        let (key, lock) = (lock.key().to_owned(), lock.number());
        Ok(Box::new(MemoryDraft { store: self, key, lock, bytes: Mutex::default() }))
    }

    /// One step if the lock is free: a later holder of the lock reads this value.
    fn overwrite(
        &self,
        key: &str,
        parts: Option<&[&[u8]]>,
        _durability: Durability,
        pass: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        check_key(key)?;
        let (key, own) = (self.full(key), generation());
        let new = match parts {
            Some(parts) => Some(self.stored(allocation::concatenated(parts)?)),
            None => None,
        };
        let mut retry = LockWait::default();
        loop {
            let mut state = self.state();
            if !self.is_there(&state) {
                return Ok(());
            }
            let Some(holder) = state.holder(&key, own) else {
                let before = match new {
                    Some(stored) => state.set(&key, stored)?,
                    None => state.remove(&key),
                };
                drop(state);
                // Free the old value after unlocking.
                drop(before);
                return Ok(());
            };
            drop(state);
            retry.again(&key, &|| Some(holder), pass)?;
        }
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
        let prefix = self.full(prefix);
        let mut state = self.state();
        let taken = if self.is_there(&state) { state.take(&prefix, marks) } else { Values::new() };
        drop(state);
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
        let (full, own) = (self.full(key), (generation(), self.number()));
        let mut state = self.state();
        // After the prefix was erased there is nothing to protect: writes under this lock are dropped.
        if self.is_there(&state) {
            if state.holder(&full, own.0).is_some() {
                return Ok(None);
            }
            state.locked.insert(full.into_owned(), own);
        }
        drop(state);
        Ok(Some(Box::new(KeyLock { store: self, key: key.to_owned(), own })))
    }

    fn holder(&self, key: &str) -> Option<[u64; 4]> {
        self.state().locked.get(&*self.full(key)).map(|(process, number)| [*process, *number, 0, 0])
    }

    fn sweep(&self, _prefix: &str) -> Result<usize> {
        Ok(0)
    }
}

/// Values of a separate store, until they are published.
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

    /// One step, also at the root: everything happens under the lock of the values.
    fn publish(self: Box<Self>, replace: bool, marks: &[&str]) -> Result<Box<dyn Detached + 'a>> {
        let new = self.inside.state().take_all();
        let prefix = self.store.full(&self.prefix);
        let mut state = self.store.state();
        if !self.store.is_there(&state) {
            drop(state);
            return Ok(Box::new(MemoryRemains(new)));
        }
        let taken = if replace { state.take(&prefix, marks) } else { Values::new() };
        state.set_all(new, &prefix, &|| self.store.number());
        drop(state);
        Ok(Box::new(MemoryRemains(taken)))
    }
}

/// Detached values, freed on drop.
struct MemoryRemains(#[allow(dead_code, reason = "dropped outside of the lock")] Values);

impl Detached for MemoryRemains {
    fn clear(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Copies the concatenated parts to `bytes`, from `offset` on. Bytes between the end and `offset` become 0.
///
/// # Errors
/// [`zarrow_array::Error::OutOfMemory`].
pub(super) fn copy_parts(bytes: &mut Vec<u8>, offset: u64, parts: &[&[u8]]) -> Result<()> {
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

/// A value that is being written.
struct MemoryDraft<'a> {
    store: &'a MemoryStore,
    key: String,
    /// Number of the lock, if the value is set under a lock.
    lock: Option<u64>,
    bytes: Mutex<Vec<u8>>,
}

impl Draft for MemoryDraft<'_> {
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        copy_parts(&mut self.bytes.lock(), offset, parts)
    }

    fn publish(self: Box<Self>) -> Result<()> {
        let MemoryDraft { store, key, lock, bytes } = *self;
        store.put(&key, bytes.into_inner(), lock)
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
        let key = self.store.full(&self.key);
        let mut state = self.store.state();
        // The lock may already have been removed, and taken by another holder.
        if state.locked.get(&*key) == Some(&self.own) {
            state.locked.remove(&*key);
        }
        drop(state);
        step("unlock");
    }
}
