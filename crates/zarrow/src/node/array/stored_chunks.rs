//! Counts the stored chunks of an array, and the inner chunks of its shards.

use crate::codec::Worker;
use crate::decode::chunk::stored_part;
use crate::decode::shard::inner_chunk_parts;
use crate::error::{ErrorKind, Result};
use crate::node::array::Array;
use crate::plan::axis_part::PerAxis;
use crate::pool::job::Checkpoint;
use crate::pool::run;
use crate::store::remote::{RemoteStore, wait};
use crate::store::{Version, join};
use std::collections::HashSet;
use zarrow_array::fork::Mutex;

/// Number of an array's chunks, or of its shards; or of the inner chunks of a shard.
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

    /// Counts the inner chunks of the shard at `chunk_index` by its index. Chunks outside the array do not count.
    /// Returns `None` if the shard is not stored, or if the array has no shards. A nested shard counts as one chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a place outside the grid, [`ErrorKind::Interrupted`] if `interrupted` returns true, and
    /// any kind for an index that cannot be read.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::store::MemoryStore;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, create_array};
    /// let metadata = ArrayBuilder::new([100], zarrow_array::Number::Int16).chunk_shape([10]).shard_shape([60]).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// array.write(60..80, &[7i16; 20])?;
    /// let counted = array.inner_chunks_of(&[1], &|| false)?.expect("it is stored");
    /// assert_eq!((counted.count, counted.stored), (4, Some(2)));
    /// assert!(array.inner_chunks_of(&[0], &|| false)?.is_none());
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn inner_chunks_of(
        &self,
        chunk_index: &[u64],
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<StoredChunks>> {
        self.chunk(chunk_index)?;
        let reader = self.reader();
        let Some(inner_chunks) = reader.inner_chunks() else { return Ok(None) };
        let counted = Mutex::new(None);
        let count = |_: u64, worker: &mut Worker, checkpoint: &Checkpoint<'_>| {
            let open = reader.open(chunk_index, worker, checkpoint)?;
            if open.is_stored() {
                let part = stored_part(reader.chain, &reader.part_inside(chunk_index));
                let inside = inner_chunk_parts(inner_chunks, &part)?;
                let shape = reader.chunk_shape(chunk_index);
                let grid = inner_chunks.grid(&reader.chunk_of(&shape, checkpoint).stored_shape())?;
                let mut stored = 0;
                let (mut place, mut part) = (PerAxis::new(), PerAxis::new());
                for at in 0..inside.count() {
                    inside.get(at, &mut place, &mut part);
                    let number =
                        place.iter().zip(&grid).fold(0u64, |at, (index, extent)| at * extent + index);
                    stored += u64::from(open.locate(number).is_some());
                }
                *counted.lock() = Some(StoredChunks { count: inside.count(), stored: Some(stored) });
            }
            Ok(())
        };
        run(1, 1, interrupted, &count).map_err(|error| self.place(error.in_chunk(chunk_index)))?;
        Ok(counted.into_inner())
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
