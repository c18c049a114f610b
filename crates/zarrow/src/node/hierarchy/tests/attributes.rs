//! Writes concurrent with changes of attributes.

use super::erasures::{on_disk, opened_array, values};
use super::*;
use crate::store::{StoreWriter, Value, Version};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A store that changes the attributes of the array `x` before each of the next calls of `version_of`.
#[derive(Debug)]
struct Restless {
    store: Arc<dyn Store>,
    looks: AtomicUsize,
}

impl Store for Restless {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn open(&self, key: &str) -> crate::Result<Option<Box<dyn Value + '_>>> {
        self.store.open(key)
    }

    fn list(&self, prefix: &str) -> crate::Result<Vec<String>> {
        self.store.list(prefix)
    }

    fn nbytes(&self, prefix: &str) -> crate::Result<u64> {
        self.store.nbytes(prefix)
    }

    fn version_of(&self, key: &str) -> crate::Result<Version> {
        let looks = self.looks.load(Ordering::Relaxed);
        if looks > 0 {
            self.looks.store(looks - 1, Ordering::Relaxed);
            let own = Map::from_iter([("look".to_owned(), looks.into())]);
            opened_array(&self.store, "x").change_attributes(&crate::AttributeChange::Update(own.into()))?;
        }
        self.store.version_of(key)
    }

    fn subtree(&self, prefix: &str) -> crate::Result<Option<Arc<dyn Store>>> {
        self.store.subtree(prefix)
    }

    fn writer(&self) -> Option<&dyn StoreWriter> {
        self.store.writer()
    }
}

/// A change of attributes gives the document another version, but the array keeps its layout.
#[test]
fn a_write_beside_changes_of_attributes_is_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), on_disk(&folder)] {
        array(&store, "x", ZarrFormat::V3).unwrap();
        let restless = Arc::new(Restless { store: Arc::clone(&store), looks: AtomicUsize::new(0) });
        let written = opened_array(&(Arc::clone(&restless) as _), "x");
        restless.looks.store(7, Ordering::Relaxed);
        written.write(.., values(&[1; 24], &[6, 4])).unwrap();
        assert_eq!(restless.looks.load(Ordering::Relaxed), 0);
        let stored = opened_array(&store, "x").read(..).unwrap().into_tensor().unwrap();
        assert_eq!(stored.as_slice::<i16>().unwrap(), [1; 24]);
    }
}
