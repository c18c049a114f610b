//! Changes of a shape concurrent with an erasure of the array.
#![allow(clippy::disallowed_types, reason = "these tests do not fork")]

use super::*;
use crate::store::{Detached, Draft, Lock, StoreWriter, Value, Version};
use crate::{Array, Values};
use std::sync::Mutex;

pub(super) fn on_disk(folder: &tempfile::TempDir) -> Arc<dyn Store> {
    Arc::new(FilesystemStore::create(folder.path().join("store")).unwrap())
}

pub(super) fn opened_array(store: &Arc<dyn Store>, path: &str) -> Array {
    open(Arc::clone(store), path).unwrap().into_array().unwrap()
}

pub(super) fn values(elements: &'static [i16], shape: &[u64]) -> Values<'static> {
    Values::slice(elements, shape).unwrap()
}

fn create(store: &Arc<dyn Store>) -> crate::Result<Array> {
    let metadata = builder(ZarrFormat::V3).chunk_shape([4, 4]).build()?;
    create_array(Arc::clone(store), "a", metadata, Existing::Refuse, &OpenOptions::default())
}

/// A store that erases its array `a` before the n-th call, unless that call needs the locks of nodes.
#[derive(Debug)]
struct ErasedAt {
    store: Arc<dyn Store>,
    left: Mutex<Option<usize>>,
}

impl ErasedAt {
    fn call(&self) {
        let mut left = self.left.lock().unwrap();
        let is_due = *left == Some(0);
        *left = left.and_then(|left| left.checked_sub(1));
        drop(left);
        if is_due {
            opened(&self.store, "").erase("a").unwrap();
        }
    }
}

impl Store for ErasedAt {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn open(&self, key: &str) -> crate::Result<Option<Box<dyn Value + '_>>> {
        self.call();
        self.store.open(key)
    }

    fn list(&self, prefix: &str) -> crate::Result<Vec<String>> {
        self.call();
        self.store.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> crate::Result<u64> {
        self.store.nbytes(prefix)
    }

    fn version_of(&self, key: &str) -> crate::Result<Version> {
        self.call();
        self.store.version_of(key)
    }

    fn subtree(&self, prefix: &str) -> crate::Result<Option<Arc<dyn Store>>> {
        self.call();
        self.store.subtree(prefix)
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        Some(self)
    }
}

impl StoreWriter for ErasedAt {
    fn draft(&self, key: &str, durability: Durability) -> crate::Result<Box<dyn Draft + '_>> {
        self.store.writer().unwrap().draft(key, durability)
    }

    fn draft_under(&self, lock: &dyn Lock, durability: Durability) -> crate::Result<Box<dyn Draft + '_>> {
        self.store.writer().unwrap().draft_under(lock, durability)
    }

    fn erase(&self, key: &str, durability: Durability) -> crate::Result<bool> {
        self.store.writer().unwrap().erase(key, durability)
    }

    fn detach<'a>(
        &'a self,
        prefix: &str,
        durability: Durability,
        marks: &[&str],
    ) -> crate::Result<Option<Box<dyn Detached + 'a>>> {
        self.store.writer().unwrap().detach(prefix, durability, marks)
    }

    fn try_lock(&self, key: &str) -> crate::Result<Option<Box<dyn Lock + '_>>> {
        self.call();
        if key.ends_with(".json") {
            *self.left.lock().unwrap() = None;
        }
        self.store.writer().unwrap().try_lock(key)
    }

    fn sweep(&self, prefix: &str) -> crate::Result<usize> {
        self.store.writer().unwrap().sweep(prefix)
    }
}

/// If the array is erased at any point of a change of its shape, the change reports it and leaves no chunks.
#[test]
fn a_change_of_shape_beside_an_erasure_leaves_nothing() {
    type Change = fn(&mut Array) -> crate::Result<()>;
    let append: Change = |array| array.append(&values(&[5; 40], &[10, 4]), 0).map(drop);
    let changes: [Change; 3] = [append, |array| array.resize(&[9, 4]), |array| array.resize(&[3, 4])];
    for change in changes {
        for is_on_disk in [false, true] {
            let mut erasures = 0;
            for at in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let store = if is_on_disk { on_disk(&folder) } else { memory() };
                let made = create(&store).unwrap();
                made.write(.., &values(&[1; 24], &[6, 4])).unwrap();
                let watched = Arc::new(ErasedAt { store: Arc::clone(&store), left: Mutex::new(None) });
                let mut array = opened_array(&(Arc::clone(&watched) as Arc<dyn Store>), "a");
                *watched.left.lock().unwrap() = Some(at);
                let changed = change(&mut array);
                if open(Arc::clone(&store), "a").is_ok() {
                    changed.unwrap();
                    break;
                }
                erasures += 1;
                let said = format!("{changed:?}");
                assert!(matches!(code(changed), "not_found" | "stale"), "{at}: {said}");
                let names: Vec<String> = store.list("a").unwrap();
                assert!(names.is_empty(), "{at}: {names:?}");
                create(&store).unwrap();
            }
            assert!(erasures > 3, "{erasures}");
        }
    }
}
