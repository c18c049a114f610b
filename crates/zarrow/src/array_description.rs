//! What an array is made of, in the words of those who create one: filters, serializer, compressors, order, and how many
//! of its chunks are stored.

use crate::array::Array;
use crate::codec;
use crate::error::Result;
use crate::hierarchy;
use crate::metadata::{CodecMetadata, ZarrFormat};
use serde_json::Value;

/// The codecs of an array, each on its side of the border between array and bytes; inside of shards, where these are all
/// that the array has.
#[derive(Debug, Clone, PartialEq)]
pub struct CodecStages {
    /// From arrays to arrays.
    pub filters: Vec<CodecMetadata>,
    /// From array to bytes.
    pub serializer: CodecMetadata,
    /// From bytes to bytes.
    pub compressors: Vec<CodecMetadata>,
}

impl Array {
    /// The codecs by what they work on.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`](crate::ErrorKind::BadCodec), which an array that was opened does not give.
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
        let inner = match self.metadata().codecs.as_slice() {
            [shards] if shards.name == "sharding_indexed" => {
                let item_size = self.data_type().item_size().unwrap_or(1);
                let inner = shards.configuration.get("codecs").unwrap_or(&Value::Null);
                Some(CodecMetadata::parse_chain(inner, item_size).map_err(crate::Error::from)?)
            }
            _ => None,
        };
        let codecs = inner.as_deref().unwrap_or(&self.metadata().codecs);
        let (filters, serializer, compressors) = codec::stages(codecs)?;
        // In version 2 the order of axes is not a filter, but a word of its own.
        let is_filter = |codec: &&CodecMetadata| {
            self.metadata().zarr_format == ZarrFormat::V3 || codec.name != "transpose"
        };
        Ok(CodecStages {
            filters: filters.iter().filter(is_filter).cloned().collect(),
            serializer: serializer.clone(),
            compressors: compressors.to_vec(),
        })
    }

    /// Whether the elements of a chunk are stored with those of the first axis side by side (order `F`).
    #[must_use]
    pub fn is_column_major(&self) -> bool {
        let reversed = (0..self.shape().len()).rev();
        self.stored_order().is_some_and(|order| order.iter().copied().eq(reversed))
    }

    /// How many of the chunks that hold elements of the array are stored; of the shards, where there are any. Lists
    /// them all.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where the store cannot be listed;
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) and [`ErrorKind::Stale`](crate::ErrorKind::Stale) where the array
    /// was erased or replaced since.
    pub fn stored_chunk_count(&self) -> Result<u64> {
        let count = hierarchy::stored_count(self);
        count
            .and_then(|count| self.check_presence().map(|()| count))
            .map_err(|error| error.in_array(self.store().name(), self.path()))
    }

    /// Whether nothing can be written to the array by this handle.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.store().writer().is_none()
    }
}
