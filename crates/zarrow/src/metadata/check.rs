//! All shape arithmetic on metadata: metadata that pass these checks cannot overflow later.

use super::{ArrayMetadata, MetadataError};
use zarrow_array::DataType;

/// Limits on metadata, which no honest store reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataLimits {
    /// Maximum number of axes of an array.
    pub max_ndim: usize,
    /// Maximum bytes of one element in memory.
    pub max_item_nbytes: u64,
    /// Maximum bytes of one decoded chunk (of a sharded array: one shard).
    pub max_chunk_nbytes: u64,
    /// Maximum bytes of one metadata document.
    pub max_metadata_nbytes: u64,
    /// Maximum bytes of a document with consolidated metadata.
    pub max_consolidated_nbytes: u64,
}

impl Default for MetadataLimits {
    fn default() -> Self {
        MetadataLimits {
            max_ndim: 32,
            max_item_nbytes: 16 << 20,
            max_chunk_nbytes: 1 << 40,
            max_metadata_nbytes: 16 << 20,
            max_consolidated_nbytes: 256 << 20,
        }
    }
}

impl MetadataLimits {
    /// Sets the maximum number of axes of an array.
    #[must_use]
    pub fn max_ndim(self, max_ndim: usize) -> Self {
        MetadataLimits { max_ndim, ..self }
    }

    /// Sets the maximum bytes of one element in memory.
    #[must_use]
    pub fn max_item_nbytes(self, max_item_nbytes: u64) -> Self {
        MetadataLimits { max_item_nbytes, ..self }
    }

    /// Sets the maximum bytes of one decoded chunk.
    #[must_use]
    pub fn max_chunk_nbytes(self, max_chunk_nbytes: u64) -> Self {
        MetadataLimits { max_chunk_nbytes, ..self }
    }

    /// Sets the maximum bytes of one metadata document.
    #[must_use]
    pub fn max_metadata_nbytes(self, max_metadata_nbytes: u64) -> Self {
        MetadataLimits { max_metadata_nbytes, ..self }
    }

    /// Sets the maximum bytes of a document with consolidated metadata.
    #[must_use]
    pub fn max_consolidated_nbytes(self, max_consolidated_nbytes: u64) -> Self {
        MetadataLimits { max_consolidated_nbytes, ..self }
    }

    /// Checks the size of one element, before a fill value of that size is created.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] for an element of zero bytes, [`MetadataError::TooLarge`].
    pub fn check_item(&self, data_type: &DataType) -> Result<(), MetadataError> {
        match data_type.item_size() {
            Some(0) => Err(MetadataError::invalid("data_type", "expected elements of at least one byte")),
            Some(size) if size as u64 > self.max_item_nbytes => {
                let limit = self.max_item_nbytes;
                Err(MetadataError::TooLarge { what: "the size of one element in bytes", limit })
            }
            _ => Ok(()),
        }
    }
}

/// Checks the length of a document before it is parsed.
pub(super) fn metadata_nbytes(bytes: &[u8], limit: u64) -> Result<(), MetadataError> {
    if bytes.len() as u64 > limit {
        return Err(MetadataError::TooLarge {
            what: "the size of the metadata in bytes (DecodeLimits.max_metadata_nbytes)",
            limit,
        });
    }
    Ok(())
}

/// Checks the number of axes, before anything is computed along them.
pub(super) fn ndim(shape: &[u64], limits: &MetadataLimits) -> Result<(), MetadataError> {
    if shape.len() > limits.max_ndim {
        let limit = limits.max_ndim as u64;
        return Err(MetadataError::TooLarge { what: "the number of axes (DecodeLimits.max_ndim)", limit });
    }
    Ok(())
}

/// Checks the sizes of a whole array, after [`ndim`] and [`MetadataLimits::check_item`].
pub(super) fn array(array: &ArrayMetadata, limits: &MetadataLimits) -> Result<(), MetadataError> {
    let ndim = array.shape.len();
    if array.chunk_grid.ndim() != ndim {
        return Err(MetadataError::invalid(
            "chunk_grid",
            format!("expected one chunk extent for each of the {ndim} axes of the array"),
        ));
    }
    if array.dimension_names.as_ref().is_some_and(|names| names.len() != ndim) {
        return Err(MetadataError::invalid(
            "dimension_names",
            format!("expected a name for each of the {ndim} axes"),
        ));
    }
    let item_nbytes = element_nbytes(&array.data_type);
    // Every counted chunk has at least one element, so that this bounds the number of chunks as well.
    let limit = i64::MAX as u64;
    product(array.shape.iter().copied(), item_nbytes)
        .filter(|nbytes| *nbytes <= limit)
        .ok_or(MetadataError::TooLarge { what: "the size of the array in bytes", limit })?;
    let limit = limits.max_chunk_nbytes;
    product(array.chunk_grid.largest_chunk().into_iter(), item_nbytes)
        .filter(|nbytes| *nbytes <= limit)
        .ok_or(MetadataError::TooLarge {
            what: "the decoded size of one chunk in bytes (DecodeLimits.max_chunk_nbytes)",
            limit,
        })?;
    Ok(())
}

/// Returns the memory of one element in bytes: its item, or one offset, and a mask for each optional level.
fn element_nbytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::Optional(inner) => element_nbytes(inner).saturating_add(1),
        other => other.item_size().map_or(size_of::<i64>() as u64, |size| size as u64),
    }
}

/// Returns the product; `None` if it overflows.
///
/// An empty axis counts as one: strides are products of the other axes, and must not overflow either.
fn product(extents: impl Iterator<Item = u64>, item_nbytes: u64) -> Option<u64> {
    extents.map(|extent| extent.max(1)).try_fold(item_nbytes, u64::checked_mul)
}
