//! How many chunks of an array are stored, of those that its grid has.

use crate::array::Array;
use crate::error::Result;
use crate::store::{Version, join};

/// The chunks of an array: shards, where it is sharded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunks {
    /// How many the grid has.
    pub count: u64,
    /// How many of them are stored; `None` where that was too many to look at.
    pub stored: Option<u64>,
}

impl Array {
    /// The number of chunks, and how many are stored where there are `most` at most: each takes one look at the store.
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
        let (mut stored, mut key) = (0, String::new());
        let mut indices = vec![0; grid.len()];
        for number in 0..count {
            let mut rest = number;
            for (index, extent) in indices.iter_mut().zip(&grid).rev() {
                (*index, rest) = (rest % extent, rest / extent);
            }
            key.clear();
            self.metadata().chunk_key_encoding.encode(&indices, &mut key);
            let version = self.store().version_of(&join(self.path(), &key));
            stored += u64::from(version.map_err(|error| self.place(error))? != Version::Missing);
        }
        Ok(StoredChunks { count, stored: Some(stored) })
    }
}
