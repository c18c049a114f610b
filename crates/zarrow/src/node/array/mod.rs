//! An open array.

pub(crate) mod bare;
pub(crate) mod description;
pub(crate) mod detached;
pub(crate) mod detached_read;
pub(crate) mod detached_write;
pub(crate) mod field;
pub(crate) mod read_as;
pub(crate) mod request;
pub(crate) mod stored_chunks;
pub(crate) mod write_many;
pub(crate) mod write_request;

use crate::codec::{Chain, Layout, ShardIndex, compile};
use crate::decode::cache::Cache;
use crate::decode::chunk_cache::{CacheCounts, ChunkCache};
use crate::decode::disk_cache::DiskCache;
use crate::decode::missing_chunk::{MissingChunks, Presence};
use crate::decode::reader::Reader;
use crate::decode::reader::SeenVersion;
use crate::decode::stage_times::StageTimes;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{ArrayMetadata, Attributes, ChunkGrid, NodeMetadata};
use crate::node::hierarchy::attributes::StoredNode;
use crate::node::hierarchy::{AttributeChange, revision};
use crate::node::open_options::OpenOptions;
use crate::plan::field::FieldPlace;
use crate::selection::{Index, IntoSelection, Selection};
use crate::store::Store;
use crate::write::Writer;
use crate::write::options::WriteOptions;
use crate::write::staged::Guard;
use crate::write::values::Values;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zarrow_array::{DataType, shape};

/// A Zarr array: checked metadata, compiled codecs, and the store with its chunks.
///
/// ```
/// use std::sync::Arc;
/// use zarrow::store::MemoryStore;
/// use zarrow::Index;
/// let metadata = br#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16",
///   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
///   "chunk_key_encoding": {"name": "default"}, "fill_value": 7,
///   "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}"#;
/// let store = MemoryStore::new([("zarr.json", metadata.to_vec()), ("c/0", vec![1, 0, 2, 0])])?;
/// let array = zarrow::open(Arc::new(store), "")?.into_array()?;
/// let backwards = array.read(Index::from(..).step_by(-1))?.into_tensor()?;
/// assert_eq!(backwards.as_slice::<i16>()?, [7, 7, 2, 1]);
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Clone)]
pub struct Array {
    store: Arc<dyn Store>,
    path: String,
    options: OpenOptions,
    metadata: Arc<ArrayMetadata>,
    /// Metadata of the document if the array is [read as another type](Array::read_as).
    stored: Option<Arc<ArrayMetadata>>,
    chain: Arc<Chain>,
    indexes: Arc<Cache<ShardIndex>>,
    versions: Arc<Cache<SeenVersion>>,
    chunks: Option<Arc<ChunkCache>>,
    /// Version of the document with this handle's shape and layout, as a number; 0 if none was seen.
    seen: Arc<AtomicU64>,
    /// Whether the array's own document was read. An array opened from consolidated metadata may lack one.
    has_document: bool,
    /// Revision that the metadata reflect.
    revision: u64,
    /// For a [bare](Array::bare) array: the chunks that its reads missed.
    bare: Option<Arc<MissingChunks>>,
    times: Option<Arc<StageTimes>>,
}

impl fmt::Debug for Array {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Array")
            .field("store", &self.store.name())
            .field("path", &self.path)
            .field("shape", &self.metadata.shape)
            .field("data_type", &format_args!("{}", self.metadata.data_type))
            .finish_non_exhaustive()
    }
}

/// Maximum bytes of shard indexes that an array caches.
const INDEXES_NBYTES: usize = 16 << 20;

/// Maximum bytes of the versions of chunks, beside a cache of this size.
fn versions_nbytes(cache_nbytes: usize) -> usize {
    INDEXES_NBYTES / 16 + cache_nbytes / 64
}

impl Array {
    /// Compiles the codecs of an array at `path`.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        path: String,
        metadata: ArrayMetadata,
        options: &OpenOptions,
    ) -> Result<Array> {
        let largest = metadata.chunk_grid.largest_chunk();
        let chain = compile(&metadata.codecs, &metadata.data_type, &largest, &options.limits)
            .map_err(|error| error.in_array(store.name(), &path))?;
        let versions = Arc::new(Cache::new(versions_nbytes(options.cache_nbytes)));
        let indexes = Arc::new(Cache::new(INDEXES_NBYTES));
        let (metadata, chain) = (Arc::new(metadata), Arc::new(chain));
        let (seen, has_document, revision) = (Arc::default(), false, revision::present());
        let options = *options;
        let mut array = Array {
            store,
            path,
            options,
            metadata,
            stored: None,
            chain,
            indexes,
            versions,
            chunks: None,
            seen,
            has_document,
            revision,
            bare: None,
            times: None,
        };
        array.chunks = array.chunk_cache(options.cache_nbytes, None);
        Ok(array)
    }

    /// Creates a cache of decoded chunks, if it may have any bytes.
    fn chunk_cache(&self, nbytes: usize, disk: Option<DiskCache>) -> Option<Arc<ChunkCache>> {
        if nbytes == 0 && disk.is_none() {
            return None;
        }
        let shape = self.innermost_chunk_shape();
        let chunk_nbytes = shape.and_then(|shape| shape::nbytes(&shape, self.data_type().item_size()?).ok());
        Some(Arc::new(ChunkCache::new(nbytes, chunk_nbytes, disk)))
    }

    /// Marks the array's own document as read or written.
    pub(crate) fn with_document(self) -> Array {
        Array { has_document: true, ..self }
    }

    /// Whether the array's document is known to have existed.
    pub(crate) fn had_document(&self) -> bool {
        self.has_document || self.seen.load(Ordering::Relaxed) != 0
    }

    /// Returns the array after a change that keeps the chunk layout.
    pub(crate) fn renewed(&self, metadata: ArrayMetadata, revision: u64) -> Array {
        Array { metadata: Arc::new(metadata), seen: Arc::default(), revision, ..self.clone() }
    }

    /// Returns the same array at another location.
    pub(crate) fn moved(&self, store: Arc<dyn Store>, path: String) -> Array {
        Array { store, path, ..self.clone() }
    }

    /// Whether the document had this version when its shape and layout were last equal to this handle's.
    pub(crate) fn has_seen(&self, version: u64) -> bool {
        self.seen.load(Ordering::Relaxed) == version
    }

    pub(crate) fn has_seen_any(&self) -> bool {
        self.seen.load(Ordering::Relaxed) != 0
    }

    /// Remembers such a version.
    pub(crate) fn see(&self, version: u64) {
        self.seen.store(version, Ordering::Relaxed);
    }

    /// Returns the revision of this process's changes that this handle reflects. Of two handles of one array, the one
    /// with the larger revision has the later state.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the options that the array was opened with.
    #[must_use]
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Returns how many chunks the reads of this handle and its copies found in the cache of
    /// [`cache_nbytes`](OpenOptions::cache_nbytes), and how many they decoded; `None` without a cache.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, CacheCounts, Existing, OpenOptions, create_array, store::MemoryStore};
    /// let metadata = ArrayBuilder::new([4], zarrow_array::Number::Int16).chunk_shape([2]).build()?;
    /// let options = OpenOptions::default().cache_nbytes(1 << 20);
    /// let array = create_array(Arc::new(MemoryStore::default()), "", metadata, Existing::Refuse, &options)?;
    /// array.write(.., &zarrow::Values::slice(&[1i16, 2, 3, 4], &[4])?)?;
    /// array.read(..)?;
    /// array.read(..)?;
    /// assert_eq!(array.cache_counts(), Some(CacheCounts { hits: 2, misses: 2, disk_hits: 0 }));
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    #[must_use]
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        self.chunks.as_ref().map(|chunks| chunks.counts())
    }

    /// Returns this array with a new cache of decoded chunks: `nbytes` bytes in memory, and, if a folder is given, behind
    /// it up to a number of bytes of a file there, for chunks that memory drops.
    ///
    /// The file has no name, and is gone with the last handle or the process. Forked children do not use it. Chunks
    /// below 4 KiB are not written. If the disk is full, they are decoded again. No request is sent.
    ///
    /// # Errors
    /// [`ErrorKind::Write`](crate::ErrorKind::Write): the file cannot be created.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, create_array, store::MemoryStore};
    /// let metadata = ArrayBuilder::new([4], zarrow_array::Number::Int16).chunk_shape([2]).build()?;
    /// let array = create_array(
    ///     Arc::new(MemoryStore::default()), "", metadata, Existing::Refuse, &OpenOptions::default(),
    /// )?;
    /// array.write(.., &zarrow::Values::slice(&[1i16, 2, 3, 4], &[4])?)?;
    /// let cached = array.with_cache(1 << 20, Some((&std::env::temp_dir(), 1 << 30)))?;
    /// cached.read(..)?;
    /// cached.read(..)?;
    /// assert_eq!(cached.cache_counts().map(|counts| counts.hits), Some(2));
    /// assert_eq!(array.cache_counts(), None);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn with_cache(&self, nbytes: usize, disk: Option<(&std::path::Path, u64)>) -> Result<Array> {
        let disk = disk
            .map(|(folder, nbytes)| DiskCache::new(folder, nbytes, self.shape().len()))
            .transpose()
            .map_err(crate::ErrorKind::Write)?;
        let chunks = self.chunk_cache(nbytes, disk);
        let options = OpenOptions { cache_nbytes: nbytes, ..self.options };
        Ok(Array { options, chunks, versions: Arc::new(Cache::new(versions_nbytes(nbytes))), ..self.clone() })
    }

    /// Returns this array; its reads add their time to `times`, which other arrays may share.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use zarrow::{ArrayBuilder, Existing, OpenOptions, StageTimes, create_array, store::MemoryStore};
    /// let metadata = ArrayBuilder::new([4], zarrow_array::Number::Int16).chunk_shape([2]).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let array = create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default())?;
    /// let times = Arc::new(StageTimes::default());
    /// array.with_stage_times(Arc::clone(&times)).read(..)?;
    /// let seconds = times.seconds();
    /// assert!(seconds.store + seconds.decode + seconds.placement > 0.0);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    #[must_use]
    pub fn with_stage_times(&self, times: Arc<StageTimes>) -> Array {
        Array { times: Some(times), ..self.clone() }
    }

    /// Returns the store with the chunks.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the attributes that the user stored with the array.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.metadata.attributes
    }

    /// Returns the path in the store, `""` for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the checked metadata.
    #[must_use]
    pub fn metadata(&self) -> &ArrayMetadata {
        &self.metadata
    }

    /// Returns the extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.metadata.shape
    }

    /// Changes the attributes. Afterwards this handle has the attributes as stored, including changes by others.
    ///
    /// # Errors
    /// [`ErrorKind::ReadOnly`], [`ErrorKind::Write`]; [`ErrorKind::NotFound`] if the array was erased in the meantime,
    /// and [`ErrorKind::Stale`] if it was replaced.
    pub fn change_attributes(&mut self, change: &AttributeChange) -> Result<()> {
        let changed = self.stored_node().change_attributes(change).map_err(|error| self.place(error))?;
        if let (NodeMetadata::Array(metadata), revision) = changed {
            *self = self.renewed(metadata, revision);
        }
        Ok(())
    }

    /// Returns the array's documents.
    pub(crate) fn stored_node(&self) -> StoredNode<'_> {
        StoredNode {
            store: &*self.store,
            path: &self.path,
            zarr_format: self.metadata.zarr_format,
            array: Some(self.stored.as_ref().unwrap_or(&self.metadata)),
            is_consolidated: !self.had_document(),
            options: &self.options,
        }
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.metadata.data_type
    }

    /// Returns the shape of the chunks; in a sharded array, of the chunks inside a shard, which may themselves be
    /// shards. `None` on a grid of unequal chunks.
    #[must_use]
    pub fn chunk_shape(&self) -> Option<Vec<u64>> {
        self.chunk_shape_within(1)
    }

    /// Returns the shape of the chunks that are decoded independently: the innermost of nested shards. `None` on a
    /// grid of unequal chunks.
    #[must_use]
    pub fn innermost_chunk_shape(&self) -> Option<Vec<u64>> {
        self.chunk_shape_within(usize::MAX)
    }

    /// Returns the shape of the chunks within at most `levels` levels of shards.
    fn chunk_shape_within(&self, levels: usize) -> Option<Vec<u64>> {
        let mut shape = self.outer_chunk_shape()?;
        let mut chain = &*self.chain;
        // The array's axis for each stored axis, through the transposes of all levels.
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        let mut level = 0;
        while level < levels
            && let Layout::InnerChunks(inner_chunks) = chain.layout()
        {
            level += 1;
            if let Some(order) = &chain.order {
                axes = order.iter().map(|axis| axes[*axis]).collect();
            }
            for (axis, extent) in axes.iter().zip(&inner_chunks.chunk_shape) {
                shape[*axis] = *extent;
            }
            chain = &inner_chunks.chain;
        }
        Some(shape)
    }

    /// Returns the shape of the shards if the array is sharded and all shards have the same shape.
    #[must_use]
    pub fn shard_shape(&self) -> Option<Vec<u64>> {
        match self.chain.layout() {
            Layout::InnerChunks(_) => self.outer_chunk_shape(),
            _ => None,
        }
    }

    fn outer_chunk_shape(&self) -> Option<Vec<u64>> {
        match &self.metadata.chunk_grid {
            ChunkGrid::Regular { chunk_shape } => Some(chunk_shape.clone()),
            ChunkGrid::Rectilinear { .. } => None,
        }
    }

    /// Returns the array's axis for each stored axis, inside the shards if there are any; `None` if the order is the
    /// same.
    pub(crate) fn stored_order(&self) -> Option<&[usize]> {
        let mut chain = &*self.chain;
        while let Layout::InnerChunks(inner_chunks) = chain.layout() {
            chain = &inner_chunks.chain;
        }
        chain.order.as_deref()
    }

    /// Returns the size of the whole array in memory, in bytes; `None` if elements have no fixed size.
    #[must_use]
    pub fn nbytes(&self) -> Option<u64> {
        let nbytes = shape::nbytes(self.shape(), self.data_type().item_size()?).ok()?;
        u64::try_from(nbytes).ok()
    }

    /// Returns the number of bytes that the store holds for this array, metadata included. Looks at every chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn stored_nbytes(&self) -> Result<u64> {
        self.store.nbytes(&self.path).map_err(|error| self.place(error))
    }

    /// Returns the elements of the chunks selected by `indices` in the grid of chunks, or of shards if the array is
    /// sharded.
    ///
    /// # Errors
    /// As [`Selection::blocks`].
    pub fn blocks(&self, indices: &[Index]) -> Result<Selection> {
        Selection::blocks(&self.metadata.chunk_grid, self.shape(), indices).map_err(|error| self.place(error))
    }

    /// Returns the default options of a write, as set at opening.
    pub(crate) fn write_options(&self) -> WriteOptions<'static> {
        WriteOptions::default().durability(self.options.durability)
    }

    /// Refuses values of another type.
    pub(crate) fn check_values(&self, values: &Values<'_>) -> Result<()> {
        let (own, depth) = (self.data_type().without_optional(), self.data_type().optional_depth());
        if values.dtype() != own || values.mask_depth() > depth {
            let masks = if values.mask_depth() > depth { "masked " } else { "" };
            let text = format!(
                "writing {masks}{} to an array of {}: cast the values first",
                values.dtype(),
                self.data_type()
            );
            return Err(ErrorKind::Unsupported(text).into());
        }
        Ok(())
    }

    /// Writes without checking that the array still exists, unless `guard` checks.
    pub(crate) fn write_elements(
        &self,
        selection: &Selection,
        values: &Values<'_>,
        guard: Option<&dyn Guard>,
        options: &WriteOptions<'_>,
    ) -> Result<()> {
        self.check_values(values)?;
        self.put(selection, None, values, guard, options, false)
    }

    /// Writes to stored chunks only. A chunk that cannot be decoded is left unchanged, since none of its elements can
    /// be read.
    pub(crate) fn clear_elements(
        &self,
        selection: &Selection,
        values: &Values<'_>,
        options: &WriteOptions<'_>,
    ) -> Result<()> {
        self.put(selection, None, values, None, options, true)
    }

    /// Writes to a field, or to whole elements.
    pub(crate) fn put(
        &self,
        selection: &Selection,
        field: Option<&FieldPlace>,
        values: &Values<'_>,
        guard: Option<&dyn Guard>,
        options: &WriteOptions<'_>,
        only_clears: bool,
    ) -> Result<()> {
        let values = values.broadcast(&selection.shape())?;
        let store = self.store.writer().ok_or(ErrorKind::ReadOnly)?;
        let reader = Reader { field, ..self.reader() };
        let writer = Writer::new(reader, store, options, only_clears);
        writer.write(selection, &values, guard, options.interrupted())
    }

    /// Returns the default durability when a write returns, as set at opening.
    #[must_use]
    pub fn durability(&self) -> crate::store::Durability {
        self.options.durability
    }

    /// Returns the shape of the smallest region that can be written independently: a shard if the array is sharded,
    /// else a chunk. Writers of different regions never wait for each other; writers within one region do. `None` on a
    /// grid of unequal chunks.
    #[must_use]
    pub fn write_unit(&self) -> Option<Vec<u64>> {
        self.outer_chunk_shape()
    }

    /// Returns the compiled codecs.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Returns the input of the executor's reads.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            store: &*self.store,
            path: &self.path,
            metadata: &self.metadata,
            chain: &self.chain,
            indexes: &self.indexes,
            versions: &self.versions,
            chunks: self.chunks.as_deref(),
            field: None,
            missing: None,
            coalescing: self.options.coalescing,
            presence: self,
            missed: None,
            times: self.times.as_deref(),
        }
    }

    /// Whether both handles are the same array of the same store, with the same metadata.
    pub(crate) fn is(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.metadata, &other.metadata)
            || Arc::ptr_eq(&self.store, &other.store)
                && self.path == other.path
                && self.metadata == other.metadata
    }

    /// Resolves `selection`, and checks that it is inside the array.
    pub(crate) fn selection<'s>(&self, selection: impl IntoSelection<'s>) -> Result<Cow<'s, Selection>> {
        let selection = selection.into_selection(self.shape()).map_err(|error| self.place(error))?;
        self.check(&selection)?;
        Ok(selection)
    }

    /// Checks that every position of `selection` lies inside the array.
    pub(crate) fn check(&self, selection: &Selection) -> Result<()> {
        if selection.fits(self.shape()) {
            return Ok(());
        }
        let text = format!("the selection does not fit an array of shape {:?}", self.shape());
        Err(self.place(ErrorKind::Index(text).into()))
    }

    /// Returns the elements of the chunk (in a sharded array: of the shard) at `indices` of the grid, clipped to the
    /// array's shape.
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for indices outside the grid.
    pub fn chunk(&self, indices: &[u64]) -> Result<Selection> {
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
        Selection::new(self.shape(), &slices.collect::<Vec<_>>())
    }

    pub(crate) fn place(&self, error: Error) -> Error {
        error.in_array(self.store.name(), &self.path)
    }
}

impl Presence for Array {
    fn check(&self) -> Result<()> {
        if self.bare.is_some() { Ok(()) } else { self.check_presence() }
    }

    fn note_missing(&self, chunk_index: &[u64]) {
        if let Some(missing) = &self.bare {
            missing.add(chunk_index);
        }
    }
}
