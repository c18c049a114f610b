//! Builder for the metadata of a new array.
//!
//! 1. The given properties are combined into metadata; `chunk_shape` and `codec::choice` choose the others.
//! 2. The metadata is written as documents and read back with the parser for all stores, so that every created array
//!    can be opened; the codecs are compiled for the same reason.

use super::chunk_shape;
use crate::codec::{CodecKind, DecodeLimits, KnownCodecs, compile, parse_v2_array, parse_v3};
use crate::error::{ErrorKind, Result};
use crate::metadata::{
    ARRAY_DIMENSIONS, ArrayMetadata, Attributes, ChunkGrid, ChunkKeyEncoding, CodecMetadata, Document,
    FillValue, JsonText, MetadataError, MetadataLimits, NodeMetadata, ZARRAY, ZATTRS, ZarrFormat,
    dimension_names,
};
use serde_json::{Value, json};
use zarrow_array::DataType;

/// Builder for the metadata of a new array: its shape and data type, and properties that differ from the defaults.
///
/// ```
/// use zarrow::ArrayBuilder;
/// use zarrow_array::Number;
/// let metadata = ArrayBuilder::new([1000, 1000], Number::Float32).shard_shape([500, 500]).build()?;
/// assert_eq!(metadata.codecs[0].name, "sharding_indexed");
/// assert!(ArrayBuilder::new([4], Number::Float32).chunk_shape([0]).build().is_err());
/// # Ok::<(), zarrow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ArrayBuilder {
    zarr_format: ZarrFormat,
    shape: Vec<u64>,
    data_type: DataType,
    chunk_shape: Option<Vec<u64>>,
    shard_shape: Option<Vec<u64>>,
    has_automatic_shards: bool,
    fill_value: Option<NewFillValue>,
    has_fill_value: bool,
    filters: Vec<CodecMetadata>,
    serializer: Option<CodecMetadata>,
    compressors: Option<Vec<CodecMetadata>>,
    codecs: Option<Vec<CodecMetadata>>,
    column_major: bool,
    big_endian: bool,
    chunk_key_encoding: Option<ChunkKeyEncoding>,
    dimension_names: Option<Vec<Option<String>>>,
    attributes: Attributes,
    limits: DecodeLimits,
}

impl ArrayBuilder {
    /// Creates a builder for an array of Zarr version 3, compressed with zstd.
    pub fn new(shape: impl Into<Vec<u64>>, data_type: impl Into<DataType>) -> ArrayBuilder {
        ArrayBuilder {
            zarr_format: ZarrFormat::V3,
            shape: shape.into(),
            data_type: data_type.into(),
            chunk_shape: None,
            shard_shape: None,
            has_automatic_shards: false,
            fill_value: None,
            has_fill_value: true,
            filters: Vec::new(),
            serializer: None,
            compressors: None,
            codecs: None,
            column_major: false,
            big_endian: false,
            chunk_key_encoding: None,
            dimension_names: None,
            attributes: Attributes::default(),
            limits: DecodeLimits::default(),
        }
    }

    /// Sets the format version.
    #[must_use]
    pub fn zarr_format(self, zarr_format: ZarrFormat) -> Self {
        ArrayBuilder { zarr_format, ..self }
    }

    /// Sets the chunk shape. By default chunks have about 1 MiB, or 4 MiB in whole rows if they are not compressed.
    #[must_use]
    pub fn chunk_shape(self, chunk_shape: impl Into<Vec<u64>>) -> Self {
        ArrayBuilder { chunk_shape: Some(chunk_shape.into()), ..self }
    }

    /// Sets the shard shape, a multiple of the chunk shape. The chunks of a shard are stored in one value.
    #[must_use]
    pub fn shard_shape(self, shard_shape: impl Into<Vec<u64>>) -> Self {
        ArrayBuilder { shard_shape: Some(shard_shape.into()), ..self }
    }

    /// Sets whether an array without an explicit shard shape is sharded, with shards of at most 64 MiB of elements in
    /// whole chunks.
    #[must_use]
    pub fn automatic_shards(self, has_automatic_shards: bool) -> Self {
        ArrayBuilder { has_automatic_shards, ..self }
    }

    /// Sets the value of unwritten elements, as a [`FillValue`], a number, a bool or a text. The default is zero, NaT
    /// for times, the empty string, or missing.
    ///
    /// ```
    /// use zarrow::{ArrayBuilder, Number};
    /// let metadata = ArrayBuilder::new([3], Number::Float32).fill_value(f32::NAN).build()?;
    /// assert_eq!(metadata.fill_value, zarrow::metadata::FillValue::Fixed(f32::NAN.to_ne_bytes().to_vec()));
    /// assert!(ArrayBuilder::new([3], Number::UInt8).fill_value(-1).build().is_err());
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    #[must_use]
    pub fn fill_value(self, fill_value: impl Into<NewFillValue>) -> Self {
        ArrayBuilder { fill_value: Some(fill_value.into()), ..self }
    }

    /// Leaves the fill value undefined, which only version 2 allows: every chunk is stored, and readers mask no
    /// element. xarray masks the elements equal to a defined fill value of version 2.
    #[must_use]
    pub fn without_fill_value(self) -> Self {
        ArrayBuilder { fill_value: None, has_fill_value: false, ..self }
    }

    /// Sets the first codecs, from arrays to arrays. In version 2 any codec can be a filter.
    #[must_use]
    pub fn filters(self, filters: impl Into<Vec<CodecMetadata>>) -> Self {
        ArrayBuilder { filters: filters.into(), ..self }
    }

    /// Sets the codec from array to bytes; the default depends on the data type. Not for version 2.
    #[must_use]
    pub fn serializer(self, serializer: CodecMetadata) -> Self {
        ArrayBuilder { serializer: Some(serializer), ..self }
    }

    /// Sets the last codecs, from bytes to bytes. An empty list makes a raw array: its files hold the uncompressed
    /// elements.
    #[must_use]
    pub fn compressors(self, compressors: impl Into<Vec<CodecMetadata>>) -> Self {
        ArrayBuilder { compressors: Some(compressors.into()), ..self }
    }

    /// Sets all codecs of the array, replacing filters, serializer, compressors, order and shards.
    #[must_use]
    pub fn codecs(self, codecs: impl Into<Vec<CodecMetadata>>) -> Self {
        ArrayBuilder { codecs: Some(codecs.into()), ..self }
    }

    /// Sets whether the first axis is contiguous in a chunk (order `F`).
    #[must_use]
    pub fn column_major(self, column_major: bool) -> Self {
        ArrayBuilder { column_major, ..self }
    }

    /// Sets whether elements are stored big-endian.
    #[must_use]
    pub fn big_endian(self, big_endian: bool) -> Self {
        ArrayBuilder { big_endian, ..self }
    }

    /// Sets the encoding of chunk keys. The default is that of the format: `c/0/1` in version 3, `0.1` in version 2.
    #[must_use]
    pub fn chunk_key_encoding(self, encoding: ChunkKeyEncoding) -> Self {
        ArrayBuilder { chunk_key_encoding: Some(encoding), ..self }
    }

    /// Sets the dimension names, `None` for an unnamed dimension. Version 2 keeps them in the attribute
    /// `_ARRAY_DIMENSIONS`, with a name for every dimension. Without this call, a valid `_ARRAY_DIMENSIONS` among the
    /// attributes sets them.
    ///
    /// ```
    /// use zarrow::{ArrayBuilder, Number};
    /// let metadata = ArrayBuilder::new([3, 4], Number::Float32).dimension_names(&["y", "x"]).build()?;
    /// assert_eq!(metadata.dimension_names, Some(vec![Some("y".to_owned()), Some("x".to_owned())]));
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    #[must_use]
    pub fn dimension_names<N: DimensionName>(self, names: impl IntoIterator<Item = N>) -> Self {
        ArrayBuilder { dimension_names: Some(names.into_iter().map(N::into_name).collect()), ..self }
    }

    /// Sets the attributes.
    #[must_use]
    pub fn attributes(self, attributes: impl Into<Attributes>) -> Self {
        ArrayBuilder { attributes: attributes.into(), ..self }
    }

    /// Sets the limits for the checks in [`build`](ArrayBuilder::build).
    #[must_use]
    pub fn limits(self, limits: DecodeLimits) -> Self {
        ArrayBuilder { limits, ..self }
    }

    /// Returns the checked metadata.
    ///
    /// # Errors
    /// [`ErrorKind::Metadata`] for inconsistent shapes, chunks, names and fill values; [`ErrorKind::BadCodec`],
    /// [`ErrorKind::UnknownCodec`] and [`ErrorKind::Unsupported`] for codecs that do not fit the data type, each other
    /// or the format.
    pub fn build(&self) -> Result<ArrayMetadata> {
        self.limits.metadata.check_item(&self.data_type)?;
        // Step 1.
        let chunk_shape = self.inner_chunk_shape()?;
        if self.has_automatic_shards && self.shard_shape.is_none() {
            let item_nbytes = self.item_nbytes();
            let shard_shape = chunk_shape::shards(&self.shape, &chunk_shape, item_nbytes);
            return self.clone().chunk_shape(chunk_shape).shard_shape(shard_shape).build();
        }
        let (attributes, dimension_names) = self.named_dimensions()?;
        let outer_shape = self.shard_shape.as_ref().unwrap_or(&chunk_shape);
        // Readers repair documents of other writers; a new array must be valid.
        if outer_shape.iter().zip(&self.shape).any(|(chunk, extent)| *chunk == 0 && *extent > 0) {
            return Err(MetadataError::expected("chunks", "extents above 0", &json!(outer_shape)).into());
        }
        let metadata = ArrayMetadata {
            has_fill_value: self.has_fill_value || self.zarr_format == ZarrFormat::V3,
            zarr_format: self.zarr_format,
            shape: self.shape.clone(),
            data_type: self.data_type.clone(),
            chunk_grid: ChunkGrid::Regular { chunk_shape: outer_shape.clone() },
            chunk_key_encoding: self.chunk_key_encoding.unwrap_or(match self.zarr_format {
                ZarrFormat::V2 => ChunkKeyEncoding::V2 { separator: '.' },
                ZarrFormat::V3 => ChunkKeyEncoding::Default { separator: '/' },
            }),
            fill_value: match &self.fill_value {
                Some(given) => given.to_value(&self.data_type)?,
                None => FillValue::open(&self.data_type),
            },
            codecs: self.chain(&chunk_shape)?,
            attributes,
            dimension_names,
        };
        // Step 2.
        let metadata = reread(&metadata.documents()?, &self.limits)?;
        let largest = metadata.chunk_grid.largest_chunk();
        compile(&metadata.codecs, &metadata.data_type, &largest, &self.limits)?
            .check_settings(&metadata.fill_value)?;
        Ok(metadata)
    }

    /// Returns attributes and dimension names as stored in this format version.
    fn named_dimensions(&self) -> Result<(Attributes, Option<Vec<Option<String>>>)> {
        let found = dimension_names(&self.attributes, self.shape.len());
        let Some(names) = &self.dimension_names else { return Ok((self.attributes.clone(), found)) };
        if self.zarr_format == ZarrFormat::V3 || found.as_ref() == Some(names) {
            return Ok((self.attributes.clone(), Some(names.clone())));
        }
        let invalid = |text: String| MetadataError::invalid("dimension_names", text).into();
        if self.attributes.contains_key(ARRAY_DIMENSIONS) {
            let other = &self.attributes[ARRAY_DIMENSIONS];
            return Err(invalid(format!(
                "expected the names of the attribute {ARRAY_DIMENSIONS:?}, {other}"
            )));
        }
        if names.iter().any(Option::is_none) {
            let text =
                "expected a name for every dimension: version 2 has no unnamed dimensions beside named ones";
            return Err(invalid(text.to_owned()));
        }
        let mut text = JsonText::parse(self.attributes.text().as_bytes().to_vec(), u64::MAX)?;
        text.set(ARRAY_DIMENSIONS, &json!(names))?;
        let limits = MetadataLimits { max_metadata_nbytes: u64::MAX, ..self.limits.metadata };
        Ok((Attributes::parse(text.as_bytes(), &limits)?, Some(names.clone())))
    }

    /// Returns the size of an element in bytes. For strings and bytes of variable length it is the size of a short one.
    fn item_nbytes(&self) -> u64 {
        self.data_type.item_size().unwrap_or(32) as u64
    }

    /// Returns the shape of the chunks that are encoded separately: inside the shards, if there are any.
    fn inner_chunk_shape(&self) -> Result<Vec<u64>> {
        let item_nbytes = self.item_nbytes();
        let is_raw = self.codecs.is_none()
            && !self.has_automatic_shards
            && self.compressors.as_ref().is_some_and(Vec::is_empty);
        let Some(shards) = &self.shard_shape else {
            return Ok(match &self.chunk_shape {
                Some(chunk_shape) => chunk_shape.clone(),
                None if is_raw => chunk_shape::raw(&self.shape, item_nbytes),
                None => chunk_shape::compressed(&self.shape, item_nbytes),
            });
        };
        let chunks =
            self.chunk_shape.clone().unwrap_or_else(|| chunk_shape::inside_shards(shards, item_nbytes));
        let divides = |(shard, chunk): (&u64, &u64)| *chunk > 0 && shard.is_multiple_of(*chunk) && *shard > 0;
        if self.codecs.is_some() || chunks.len() != shards.len() || !shards.iter().zip(&chunks).all(divides) {
            let text = match &self.codecs {
                Some(_) => {
                    "codecs= and shards= exclude each other: list \"sharding_indexed\" among the codecs"
                        .to_owned()
                }
                None => format!(
                    "shards is {shards:?}, expected a multiple of the chunks {chunks:?} along each axis"
                ),
            };
            return Err(ErrorKind::BadCodec(text).into());
        }
        Ok(chunks)
    }

    fn chain(&self, chunk_shape: &[u64]) -> Result<Vec<CodecMetadata>> {
        if let Some(codecs) = &self.codecs {
            return Ok(codecs.clone());
        }
        let mut chain = Vec::new();
        if self.column_major && self.shape.len() > 1 {
            let order: Vec<usize> = (0..self.shape.len()).rev().collect();
            chain.push(CodecMetadata::transpose(&order));
        }
        let serializer = |data_type: &DataType, big_endian: bool| {
            let usual = || CodecMetadata::default_serializer(data_type, big_endian);
            self.serializer.clone().unwrap_or_else(usual)
        };
        // The elements after the filters so far.
        let (mut data_type, mut big_endian, mut is_bytes) = (self.data_type.clone(), self.big_endian, false);
        for filter in &self.filters {
            let filter = filter.with_types_named(&mut data_type, &mut big_endian);
            // A version 2 filter may operate on bytes, or convert the elements to bytes.
            match filter.v2_kind(&KnownCodecs) {
                CodecKind::BytesToBytes if self.zarr_format == ZarrFormat::V2 && !is_bytes => {
                    chain.push(serializer(&data_type, big_endian));
                    is_bytes = true;
                }
                CodecKind::ArrayToBytes if self.zarr_format == ZarrFormat::V2 => is_bytes = true,
                _ => {}
            }
            chain.push(filter);
        }
        if !is_bytes {
            chain.push(serializer(&data_type, big_endian));
        }
        match &self.compressors {
            Some(compressors) => chain.extend(compressors.iter().cloned()),
            None => chain.push(CodecMetadata::default_compressor()),
        }
        Ok(match self.shard_shape {
            Some(_) => vec![CodecMetadata::sharded(chunk_shape, &chain)],
            None => chain,
        })
    }
}

/// Fill value for an [`ArrayBuilder`]: a [`FillValue`], or a number, a bool or a text that is converted to the data
/// type.
#[derive(Debug, Clone)]
pub struct NewFillValue(Given);

#[derive(Debug, Clone)]
enum Given {
    Value(FillValue),
    /// The JSON form, as in a document.
    Json(Value),
}

impl NewFillValue {
    fn to_value(&self, data_type: &DataType) -> Result<FillValue> {
        match (&self.0, data_type) {
            (Given::Value(value), _) => Ok(value.clone()),
            (given @ Given::Json(_), DataType::Optional(inner)) => {
                Ok(FillValue::Present(Box::new(NewFillValue(given.clone()).to_value(inner)?)))
            }
            (Given::Json(json), plain) => Ok(FillValue::parse(json, plain, ZarrFormat::V3)?),
        }
    }
}

impl From<FillValue> for NewFillValue {
    fn from(value: FillValue) -> NewFillValue {
        NewFillValue(Given::Value(value))
    }
}

impl From<f64> for NewFillValue {
    fn from(value: f64) -> NewFillValue {
        let text = || {
            if value.is_nan() {
                "NaN"
            } else if value > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            }
        };
        NewFillValue(Given::Json(if value.is_finite() { Value::from(value) } else { text().into() }))
    }
}

impl From<f32> for NewFillValue {
    fn from(value: f32) -> NewFillValue {
        f64::from(value).into()
    }
}

macro_rules! from_json {
    ($($plain:ty),*) => {
        $(impl From<$plain> for NewFillValue {
            fn from(value: $plain) -> NewFillValue {
                NewFillValue(Given::Json(Value::from(value)))
            }
        })*
    };
}

from_json!(i8, i16, i32, i64, u8, u16, u32, u64, bool, &str, String);

/// Dimension name for an [`ArrayBuilder`]: a text, or `None` for an unnamed dimension.
pub trait DimensionName {
    /// Converts into the name in the metadata.
    fn into_name(self) -> Option<String>;
}

impl DimensionName for String {
    fn into_name(self) -> Option<String> {
        Some(self)
    }
}

impl DimensionName for &str {
    fn into_name(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl<N: Clone + DimensionName> DimensionName for &N {
    fn into_name(self) -> Option<String> {
        self.clone().into_name()
    }
}

impl<N: DimensionName> DimensionName for Option<N> {
    fn into_name(self) -> Option<String> {
        self.and_then(N::into_name)
    }
}

/// Parses these documents as a store that contains them would be opened.
fn reread(documents: &[Document], limits: &DecodeLimits) -> Result<ArrayMetadata> {
    let named = |wanted: &str| {
        documents.iter().find(|(name, _)| *name == wanted).map(|(_, document)| document.as_slice())
    };
    if let Some(zarray) = named(ZARRAY) {
        return Ok(parse_v2_array(zarray, named(ZATTRS), &limits.metadata)?);
    }
    match parse_v3(named(crate::metadata::ZARR_JSON).unwrap_or_default(), &limits.metadata)? {
        NodeMetadata::Array(array) => Ok(array),
        NodeMetadata::Group(_) => {
            Err(ErrorKind::Internal("the new array's document describes a group".to_owned()).into())
        }
    }
}
