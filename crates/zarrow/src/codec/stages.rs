//! The codecs of an array by stage, as its creator chose them.

use crate::codec::order;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{ArrayMetadata, CodecKind, CodecMetadata, ZarrFormat};
use serde_json::Value;

/// The codecs of an array by stage. If the array has nothing but shards, these are the codecs inside the shards.
#[derive(Debug, Clone, PartialEq)]
pub struct CodecStages {
    /// Array-to-array codecs.
    pub filters: Vec<CodecMetadata>,
    /// Array-to-bytes codec.
    pub serializer: CodecMetadata,
    /// Bytes-to-bytes codecs.
    pub compressors: Vec<CodecMetadata>,
}

impl CodecStages {
    /// Splits the codecs at the array-to-bytes codec.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] if the list has no array-to-bytes codec.
    pub(crate) fn new(metadata: &ArrayMetadata) -> Result<CodecStages> {
        let inner = match metadata.codecs.as_slice() {
            [shards] if shards.name == "sharding_indexed" => {
                let item_size = metadata.data_type.item_size().unwrap_or(1);
                let inner = shards.configuration.get("codecs").unwrap_or(&Value::Null);
                Some(CodecMetadata::parse_chain(inner, item_size).map_err(Error::from)?)
            }
            _ => None,
        };
        let codecs = inner.as_deref().unwrap_or(&metadata.codecs);
        let is_serializer = |codec: &CodecMetadata| order::kind(&codec.name) == Some(CodecKind::ArrayToBytes);
        let found = codecs.iter().position(is_serializer).and_then(|at| codecs.split_at_checked(at));
        let Some((filters, [serializer, compressors @ ..])) = found else {
            return Err(ErrorKind::BadCodec("no codec from array to bytes".into()).into());
        };
        // In version 2 the order of axes is a separate key, not a filter.
        let is_filter =
            |codec: &&CodecMetadata| metadata.zarr_format == ZarrFormat::V3 || codec.name != "transpose";
        Ok(CodecStages {
            filters: filters.iter().filter(is_filter).cloned().collect(),
            serializer: serializer.clone(),
            compressors: compressors.to_vec(),
        })
    }
}
