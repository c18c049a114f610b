//! Describes an array as its creator would: filters, serializer, compressors, order, and the number of stored chunks.

use crate::codec::CodecStages;
use crate::error::Result;
use crate::node::array::Array;
use crate::node::hierarchy;

impl Array {
    /// Returns the codecs by stage.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`](crate::ErrorKind::BadCodec), which cannot happen for an opened array.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use zarrow::{ArrayBuilder, Existing, create_array, store::MemoryStore};
    /// use zarrow_array::Number;
    /// let metadata = ArrayBuilder::new([8], Number::Float32).shard_shape([4]).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let array = create_array(store, "a", metadata, Existing::Refuse, &Default::default())?;
    /// let stages = array.codec_stages()?;
    /// assert_eq!((stages.serializer.name.as_str(), stages.compressors[0].name.as_str()), ("bytes", "zstd"));
    /// assert_eq!(array.stored_chunk_count()?, 0);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn codec_stages(&self) -> Result<CodecStages> {
        CodecStages::new(self.metadata())
    }

    /// Whether each chunk is stored in column-major order (order `F`).
    #[must_use]
    pub fn is_column_major(&self) -> bool {
        let reversed = (0..self.shape().len()).rev();
        self.stored_order().is_some_and(|order| order.iter().copied().eq(reversed))
    }

    /// Counts the stored chunks, or shards if there are any, that hold elements of the array. Lists them all.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the store cannot be listed;
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) and [`ErrorKind::Stale`](crate::ErrorKind::Stale) if the
    /// array was erased or replaced since.
    pub fn stored_chunk_count(&self) -> Result<u64> {
        let count = hierarchy::stored_count(self);
        count
            .and_then(|count| self.check_presence().map(|()| count))
            .map_err(|error| error.in_array(self.store().name(), self.path()))
    }

    /// Whether this handle cannot write to the array.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.store().writer().is_none()
    }
}
