//! An array that is open for reading.

use crate::codec::{ArrayToBytes, Chain};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Reader, read};
use crate::metadata::{ArrayMetadata, ChunkGrid};
use crate::selection::{Index, Selection};
use crate::store::Store;
use std::sync::Arc;
use zarrow_array::{DataType, DecodedArray, shape};

/// A Zarr array: checked metadata, compiled codecs, and the store that has its chunks.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::MemoryStore;
/// use zarrow::{Index, Node, Selection};
/// let metadata = br#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16",
///   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
///   "chunk_key_encoding": {"name": "default"}, "fill_value": 7,
///   "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}"#;
/// let store = MemoryStore::new([("zarr.json", metadata.to_vec()), ("c/0", vec![1, 0, 2, 0])])?;
/// let Node::Array(array) = zarrow::open(Arc::new(store), "")? else { panic!() };
/// let backwards = Index::Slice { start: None, stop: None, step: Some(-1) };
/// let decoded = array.read(&Selection::new(array.shape(), &[backwards])?, &|| false)?;
/// let zarrow_array::DecodedArray::Tensor(tensor) = decoded else { panic!() };
/// assert_eq!(tensor.bytes(), [7, 0, 7, 0, 2, 0, 1, 0]);
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Array {
    store: Arc<dyn Store>,
    path: String,
    metadata: Arc<ArrayMetadata>,
    chain: Arc<Chain>,
}

impl Array {
    /// Compiles the codecs of an array at `path`.
    pub(crate) fn new(store: Arc<dyn Store>, path: String, metadata: ArrayMetadata) -> Result<Array> {
        let largest = metadata.chunk_grid.largest_chunk();
        let chain = Chain::new(&metadata.codecs, &metadata.data_type, &largest, &metadata.fill_value)
            .map_err(|error| error.in_array(store.name(), &path))?;
        Ok(Array { store, path, metadata: Arc::new(metadata), chain: Arc::new(chain) })
    }

    /// The store that has the chunks.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The path in the store, `""` for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The checked metadata.
    #[must_use]
    pub fn metadata(&self) -> &ArrayMetadata {
        &self.metadata
    }

    /// Extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.metadata.shape
    }

    /// The type of the elements.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.metadata.data_type
    }

    /// The shape of the chunks that are decoded by themselves: the inner chunks where the array is sharded (the
    /// innermost, where shards are nested). `None` on a grid of unequal chunks.
    #[must_use]
    pub fn chunk_shape(&self) -> Option<Vec<u64>> {
        let mut shape = self.outer_chunk_shape()?;
        let mut chain = &*self.chain;
        while let ArrayToBytes::Sharding(sharding) = &chain.array_to_bytes {
            shape.clone_from(&sharding.chunk_shape);
            if let Some(order) = &chain.order {
                // Inner extents are those of the stored axes.
                for (stored, axis) in order.iter().enumerate() {
                    shape[*axis] = sharding.chunk_shape[stored];
                }
            }
            chain = &sharding.inner;
        }
        Some(shape)
    }

    /// The shape of the shards, where the array is sharded and all have one shape.
    #[must_use]
    pub fn shard_shape(&self) -> Option<Vec<u64>> {
        match self.chain.array_to_bytes {
            ArrayToBytes::Sharding(_) => self.outer_chunk_shape(),
            _ => None,
        }
    }

    fn outer_chunk_shape(&self) -> Option<Vec<u64>> {
        match &self.metadata.chunk_grid {
            ChunkGrid::Regular { chunk_shape } => Some(chunk_shape.clone()),
            ChunkGrid::Rectilinear { .. } => None,
        }
    }

    /// The bytes of the whole array in memory; `None` where elements have no fixed size.
    #[must_use]
    pub fn nbytes(&self) -> Option<u64> {
        let nbytes = shape::nbytes(self.shape(), self.data_type().item_size()?).ok()?;
        u64::try_from(nbytes).ok()
    }

    /// The bytes that the store holds for this array, metadata included. Looks at every chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn stored_nbytes(&self) -> Result<u64> {
        self.store.nbytes(&self.path).map_err(|error| self.place(error))
    }

    /// Reads `selection` into fresh memory, aligned to 64 bytes, on as many threads as [`crate::num_threads`] says.
    ///
    /// `interrupted` is asked now and then, on the calling thread; where it says true the read stops.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for a selection of another shape than the array's; any kind for chunks that cannot
    /// be read or decoded, with store, array, chunk and codec.
    pub fn read(&self, selection: &Selection, interrupted: &dyn Fn() -> bool) -> Result<DecodedArray> {
        let inside = selection.axes().len() == self.shape().len()
            && selection.axes().iter().zip(self.shape()).all(|(axis, extent)| {
                let reach = axis.count.saturating_sub(1).checked_mul(axis.step.unsigned_abs());
                axis.count == 0
                    || axis.start < *extent
                        && reach.is_some_and(|reach| match axis.step > 0 {
                            true => axis.start.checked_add(reach).is_some_and(|last| last < *extent),
                            false => reach <= axis.start,
                        })
            });
        if !inside {
            let text = format!("the selection does not fit an array of shape {:?}", self.shape());
            return Err(self.place(ErrorKind::Index(text).into()));
        }
        let reader =
            Reader { store: &*self.store, path: &self.path, metadata: &self.metadata, chain: &self.chain };
        read(&reader, selection, interrupted).map_err(|error| self.place(error))
    }

    /// Reads the chunk at `indices` of the grid (the shard, where the array is sharded), as far as it lies inside
    /// the array.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for indices outside the grid, and as [`read`](Array::read).
    pub fn retrieve_chunk(&self, indices: &[u64], interrupted: &dyn Fn() -> bool) -> Result<DecodedArray> {
        let grid = &self.metadata.chunk_grid;
        let count = grid.grid_shape(self.shape());
        if indices.len() != count.len() || indices.iter().zip(&count).any(|(index, count)| index >= count) {
            let text = format!("chunk {indices:?} is outside the chunk grid of shape {count:?}");
            return Err(self.place(ErrorKind::Index(text).into()));
        }
        let slices = indices.iter().enumerate().map(|(axis, index)| {
            let (start, length) = grid.chunk_extent(axis, *index);
            let bound = |position: u64| i64::try_from(position).ok();
            Index::Slice { start: bound(start), stop: bound(start.saturating_add(length)), step: None }
        });
        let selection = Selection::new(self.shape(), &slices.collect::<Vec<_>>())?;
        self.read(&selection, interrupted)
    }

    fn place(&self, error: Error) -> Error {
        error.in_array(self.store.name(), &self.path)
    }
}
