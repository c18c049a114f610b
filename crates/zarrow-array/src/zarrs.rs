//! [`DecodedArray`] as an output type of zarrs' retrieve methods, taking over its vectors.
//!
//! zarrs' memory keeps its own alignment; only memory allocated by this crate is aligned to 64 bytes. zarrs marks
//! valid elements, [`Mask`] marks missing ones: the mask's bytes are inverted in place.

use crate::{
    Buffer, DataType, DecodedArray, Error, Mask, MaskedTensor, MaskedVariable, Number, Tensor, TimeUnit,
    Variable,
};
use zarrs::array::{ArrayBytes, ArrayError, DataType as ZarrsType, FromArrayBytes};
use zarrs::plugin::ExtensionName;

impl FromArrayBytes for DecodedArray {
    /// Takes over the bytes of a chunk or a subset. Fixed-size data and masks are not copied; offsets are, since
    /// zarrs stores them as `usize`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use zarrow_array::DecodedArray;
    /// use zarrs::array::{ArrayBuilder, data_type};
    ///
    /// let store = Arc::new(zarrs::storage::store::MemoryStore::new());
    /// let array = ArrayBuilder::new(vec![4], vec![4], data_type::int16(), 0i16).build(store, "/")?;
    /// array.store_chunk(&[0], &[1i16, 2, 3, 4])?;
    /// let decoded = array.retrieve_chunk::<DecodedArray>(&[0])?;
    /// let DecodedArray::Tensor(tensor) = decoded else { panic!("int16 is a tensor") };
    /// assert_eq!(tensor.bytes(), [1, 0, 2, 0, 3, 0, 4, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn from_array_bytes(
        bytes: ArrayBytes<'static>,
        shape: &[u64],
        data_type: &ZarrsType,
    ) -> Result<Self, ArrayError> {
        let dtype = data_type_of(data_type)
            .ok_or_else(|| ArrayError::Other(format!("no layout for data type {data_type:?}")))?;
        decoded(bytes, shape, dtype).map_err(|error| ArrayError::Other(error.to_string()))
    }
}

fn decoded(bytes: ArrayBytes<'static>, shape: &[u64], dtype: DataType) -> crate::Result<DecodedArray> {
    let mut levels = Vec::new();
    let (mut bytes, mut dtype) = (bytes, dtype);
    loop {
        match (bytes, dtype) {
            (ArrayBytes::Optional(optional), DataType::Optional(inner)) => {
                let (data, mask) = optional.into_parts();
                let mut missing = Buffer::from(mask.into_owned());
                missing.iter_mut().for_each(|byte| *byte = u8::from(*byte == 0));
                levels.push(missing);
                (bytes, dtype) = (*data, *inner);
            }
            (ArrayBytes::Fixed(data), dtype) => {
                let tensor = Tensor::new(Buffer::from(data.into_owned()), shape.to_vec(), dtype)?;
                return Ok(match levels.is_empty() {
                    true => DecodedArray::Tensor(tensor),
                    false => DecodedArray::MaskedTensor(MaskedTensor::new(tensor, Mask::new(levels)?)?),
                });
            }
            (ArrayBytes::Variable(variable), dtype) => {
                let (data, offsets) = variable.into_parts();
                let nbytes = data.len();
                let mut words: Vec<u8> = crate::allocation::with_capacity(offsets.len().saturating_mul(8))?;
                for (index, offset) in offsets.iter().enumerate() {
                    let word = i64::try_from(*offset).map_err(|_| Error::BadOffset {
                        index,
                        value: i64::MAX,
                        nbytes,
                    })?;
                    words.extend_from_slice(&word.to_ne_bytes());
                }
                let (offsets, data) = (Buffer::copy_of(&words)?, Buffer::from(data.into_owned()));
                let variable = Variable::new(offsets, data, shape.to_vec(), dtype)?;
                return Ok(match levels.is_empty() {
                    true => DecodedArray::Variable(variable),
                    false => DecodedArray::MaskedVariable(MaskedVariable::new(variable, Mask::new(levels)?)?),
                });
            }
            (ArrayBytes::Optional(_), dtype) => {
                return Err(Error::NoSuchType { protocol: "an optional array", dtype });
            }
        }
    }
}

/// Converts zarrs' data type to ours; `None` if no layout can hold it.
fn data_type_of(data_type: &ZarrsType) -> Option<DataType> {
    if let Some(inner) = data_type.optional_inner() {
        return Some(DataType::Optional(Box::new(data_type_of(inner)?)));
    }
    let name = data_type.name_v3()?;
    let configuration = data_type.configuration_v3();
    let number = |key: &str| {
        configuration.get(key).and_then(|value| value.as_u64()).and_then(|v| u32::try_from(v).ok())
    };
    let unit = || TimeUnit::from_code(configuration.get("unit")?.as_str()?);
    match name.as_ref() {
        "string" => Some(DataType::String),
        "bytes" | "variable_length_bytes" => Some(DataType::Bytes),
        "numpy.datetime64" => Some(DataType::DateTime64 { unit: unit()?, scale: number("scale_factor")? }),
        "numpy.timedelta64" => Some(DataType::TimeDelta64 { unit: unit()?, scale: number("scale_factor")? }),
        "fixed_length_utf32" => Some(DataType::FixedLengthUtf32 { length: number("length_bytes")? / 4 }),
        name => match name.strip_prefix('r').map(str::parse::<u32>) {
            Some(Ok(bits)) if bits.is_multiple_of(8) => Some(DataType::RawBytes { length: bits / 8 }),
            _ => Number::from_zarr_name(name).map(DataType::Number),
        },
    }
}
