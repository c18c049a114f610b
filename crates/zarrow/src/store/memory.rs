//! A store in memory, for tests and for small hierarchies that never touch a disk.

use crate::error::Result;
use crate::store::{Store, Value, check_key};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Values in memory, put there when the store is made.
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
    values: BTreeMap<String, Arc<[u8]>>,
}

impl MemoryStore {
    /// A store of these values.
    ///
    /// # Errors
    /// [`ErrorKind::BadKey`](crate::ErrorKind::BadKey).
    pub fn new<K: Into<String>>(values: impl IntoIterator<Item = (K, Vec<u8>)>) -> Result<MemoryStore> {
        let mut store = MemoryStore::default();
        for (key, bytes) in values {
            let key = key.into();
            check_key(&key)?;
            store.values.insert(key, bytes.into());
        }
        Ok(store)
    }

    /// The keys below `prefix` without it, and their values.
    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Arc<[u8]>)> {
        self.values.iter().filter_map(move |(key, bytes)| match prefix {
            "" => Some((key.as_str(), bytes)),
            prefix => Some((key.strip_prefix(prefix)?.strip_prefix('/')?, bytes)),
        })
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &str {
        "memory"
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn Value + '_>>> {
        check_key(key)?;
        Ok(self.values.get(key).map(|bytes| Box::new(Bytes(bytes)) as Box<dyn Value>))
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let names: BTreeSet<&str> = self.below(prefix).filter_map(|(key, _)| key.split('/').next()).collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    fn nbytes(&self, prefix: &str) -> Result<u64> {
        Ok(self.below(prefix).map(|(_, bytes)| bytes.len() as u64).sum())
    }
}

/// A value of the store, which is in memory already.
struct Bytes<'a>(&'a [u8]);

impl Value for Bytes<'_> {
    fn nbytes(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let rest = &self.0[start..];
        let length = rest.len().min(destination.len());
        Ok(destination[..length].write_copy_of_slice(&rest[..length]))
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self.0)
    }

    /// Values of this store never change.
    fn version(&self) -> Result<Option<[u64; 4]>> {
        Ok(Some([0; 4]))
    }
}
