//! Store wrapper that allows only reads.

use crate::error::Result;
use crate::store::remote::RemoteStore;
use crate::store::{Got, Listed, Store, Value, Version};
use std::sync::Arc;

/// Another store without write access: writing is [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly).
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::{MemoryStore, ReadOnlyStore, Store};
/// let store = ReadOnlyStore::new(Arc::new(MemoryStore::new([("a", vec![1])])?));
/// assert!(store.writer().is_none());
/// assert_eq!(store.get("a", 1)?, Some(vec![1]));
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug)]
pub struct ReadOnlyStore(Arc<dyn Store>);

impl ReadOnlyStore {
    /// Wraps the store `inner`.
    pub fn new(inner: Arc<dyn Store>) -> ReadOnlyStore {
        ReadOnlyStore(inner)
    }

    /// Returns the wrapped store.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.0
    }
}

/// Forwards everything except [`writer`](Store::writer) to the wrapped store.
impl Store for ReadOnlyStore {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        self.0.open(key)
    }

    fn version_of(&self, key: &str) -> Result<Version> {
        self.0.version_of(key)
    }

    fn version_without_opening(&self, key: &str) -> Result<Option<[u64; 4]>> {
        self.0.version_without_opening(key)
    }

    fn remote(&self) -> Option<&dyn RemoteStore> {
        self.0.remote()
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.0.list(prefix)
    }

    fn list_ahead<'a>(&'a self, prefix: &str) -> Listed<'a> {
        self.0.list_ahead(prefix)
    }

    fn dangling_link(&self, path: &str) -> Option<String> {
        self.0.dangling_link(path)
    }

    fn folder_number(&self, path: &str) -> Option<[u64; 2]> {
        self.0.folder_number(path)
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        self.0.nbytes(prefix)
    }

    fn get(&self, key: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        self.0.get(key, limit)
    }

    fn get_each(&self, keys: &[(String, u64)]) -> Vec<Got> {
        self.0.get_each(keys)
    }
}
