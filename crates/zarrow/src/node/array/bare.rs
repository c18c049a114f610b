//! Bare arrays: another library opened them and manages their documents. The caller passes the metadata.

use super::Array;
use crate::error::Result;
use crate::metadata::ArrayMetadata;
use crate::node::open_options::OpenOptions;
use crate::store::remote::Coalescing;
use crate::store::{Store, normalize_path};
use std::sync::Arc;

impl Array {
    /// Returns an array with these metadata, for a caller that manages the array's documents itself.
    ///
    /// Reads and writes request no document, and the store need not have one. They do not notice that the array was
    /// erased, replaced or resized.
    ///
    /// # Errors
    /// Errors of an invalid path, and of codecs that do not fit the metadata.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use zarrow::{Array, ArrayBuilder, OpenOptions, store::MemoryStore};
    /// let metadata = ArrayBuilder::new([4], zarrow::Number::UInt8).chunk_shape([2]).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let array = Array::bare(store, "rain", metadata, &OpenOptions::default())?.reshaped(&[6])?;
    /// array.write(2..4, &[1u8, 2])?;
    /// assert_eq!(array.read(..)?.into_tensor()?.as_slice::<u8>()?, [0, 0, 1, 2, 0, 0]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn bare(
        store: Arc<dyn Store>,
        path: &str,
        metadata: ArrayMetadata,
        options: &OpenOptions,
    ) -> Result<Array> {
        let path = normalize_path(path).map_err(|error| error.in_array(store.name(), path))?;
        let array = Array::new(store, path, metadata, options)?;
        Ok(Array { bare: Some(Arc::default()), ..array })
    }

    /// Returns the same chunks as a bare array of another shape, with its own list of missing chunks.
    ///
    /// # Errors
    /// [`ErrorKind::Metadata`](crate::ErrorKind::Metadata) for a shape with another number of axes, or beyond a grid of
    /// unequal chunks.
    pub fn reshaped(&self, shape: &[u64]) -> Result<Array> {
        let bare = Some(Arc::default());
        if shape == self.shape() {
            return Ok(Array { bare, ..self.clone() });
        }
        let array = self.with_shape(shape).map_err(|error| self.place(error))?;
        Ok(Array { bare, ..array })
    }

    /// Returns the same array with other limits for merged requests; `None` for the store's own limits.
    #[must_use]
    pub fn with_coalescing(self, coalescing: Option<Coalescing>) -> Array {
        Array { options: self.options.coalescing(coalescing), ..self }
    }

    /// Whether the array is [bare](Array::bare).
    pub(crate) fn is_bare(&self) -> bool {
        self.bare.is_some()
    }

    /// Returns the indices of the chunks that reads of this bare array missed since the last call.
    #[must_use]
    pub fn take_missing_chunks(&self) -> Vec<Vec<u64>> {
        let Some(missing) = &self.bare else { return Vec::new() };
        missing.take()
    }
}
