//! Counts the stored chunks of an array.

use crate::error::{ErrorKind, Result};
use crate::node::array::Array;
use crate::store::remote::{RemoteStore, wait};
use crate::store::{Version, join};
use std::collections::HashSet;

/// Number of an array's chunks, or of its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunks {
    /// Number in the grid.
    pub count: u64,
    /// Number stored; `None` if there are too many to look at, or if a remote store cannot list its keys.
    pub stored: Option<u64>,
}

impl Array {
    /// Counts the chunks, and also the stored ones if the grid has at most `most` chunks. A local store looks at each
    /// chunk; a remote one lists them.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::store::MemoryStore;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, create_array};
    /// let metadata = ArrayBuilder::new([100], zarrow_array::Number::Int16).chunk_shape([30]).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// let chunks = array.stored_chunks(1000)?;
    /// assert_eq!((chunks.count, chunks.stored), (4, Some(0)));
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn stored_chunks(&self, most: u64) -> Result<StoredChunks> {
        let grid = self.metadata().chunk_grid.grid_shape(self.shape());
        let count = grid.iter().fold(1u64, |product, extent| product.saturating_mul(*extent));
        if count > most {
            return Ok(StoredChunks { count, stored: None });
        }
        let stored = match self.store().remote() {
            Some(remote) => self.listed(remote, count, &grid)?,
            None => {
                let mut stored = 0;
                self.each_chunk_key(count, &grid, &mut |key| {
                    let version = self.store().version_of(key).map_err(|error| self.place(error))?;
                    stored += u64::from(version != Version::Missing);
                    Ok(())
                })?;
                Some(stored)
            }
        };
        Ok(StoredChunks { count, stored })
    }

    /// Counts the chunks in the store's listing.
    fn listed(&self, remote: &dyn RemoteStore, count: u64, grid: &[u64]) -> Result<Option<u64>> {
        let listing = match wait(|done| remote.list(self.path(), true, done), &|| Ok(())) {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported(_)) => return Ok(None),
            other => other.map_err(|error| self.place(error))?,
        };
        let keys: HashSet<&str> = listing.values.iter().map(|value| value.key.as_str()).collect();
        let mut stored = 0;
        self.each_chunk_key(count, grid, &mut |key| {
            stored += u64::from(keys.contains(key));
            Ok(())
        })?;
        Ok(Some(stored))
    }

    /// Calls `each` with the key of each of the `count` chunks of the grid.
    fn each_chunk_key(
        &self,
        count: u64,
        grid: &[u64],
        each: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let (mut key, mut indices) = (String::new(), vec![0; grid.len()]);
        (0..count).try_for_each(|number| {
            let mut rest = number;
            for (index, extent) in indices.iter_mut().zip(grid).rev() {
                (*index, rest) = (rest % extent, rest / extent);
            }
            key.clear();
            self.metadata().chunk_key_encoding.encode(&indices, &mut key);
            each(&join(self.path(), &key))
        })
    }
}
