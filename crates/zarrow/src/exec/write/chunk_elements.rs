//! The elements of a chunk of any layout, as they are to be encoded: for the layouts and the codecs that know no way
//! straight from the caller's memory.
//!
//! 1. They begin as what stands there: the old chunk, or the fill value.
//! 2. Those that are written take their places.
//! 3. An optional type is encoded as a mask and the elements that are there, each by codecs of its own.

use crate::codec::{
    ArrayToBytes, Chain, ChunkDescription, ChunkElements, Codecs, Decoded, Encoded, INDEXED_VLEN,
    OptionalCodec, Scratch, Swap, check_text, encode, encode_variable,
};
use crate::error::{ErrorKind, Result};
use crate::exec::output_strides::c_strides;
use crate::exec::part::AxisPart;
use crate::exec::write::fill::is_filled;
use crate::exec::write::values::{Data, Level, Memory, mismatch};
use crate::metadata::FillValue;
use zarrow_array::{DataType, allocation, shape};

impl<'a> ChunkElements<'a> {
    /// `count` times the fill value (step 1).
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`]; [`ErrorKind::Internal`] where value and type do not go together, which the
    /// metadata's check rules out.
    pub fn repeated(data_type: &DataType, value: &'a FillValue, count: usize) -> Result<ChunkElements<'a>> {
        Ok(match (data_type, value) {
            (DataType::Optional(inner), FillValue::Present(value)) => ChunkElements::Optional {
                missing: allocation::filled(0u8, count)?,
                data: Box::new(Self::repeated(inner, value, count)?),
            },
            (DataType::Optional(inner), FillValue::Missing) => ChunkElements::Optional {
                missing: allocation::filled(1u8, count)?,
                data: Box::new(Self::nothing(inner, count)?),
            },
            (_, FillValue::Fixed(item)) => {
                let mut bytes = allocation::filled(0u8, shape::nbytes(&[count as u64], item.len())?)?;
                for place in bytes.chunks_exact_mut(item.len().max(1)) {
                    place.copy_from_slice(item);
                }
                ChunkElements::Fixed(bytes)
            }
            (_, FillValue::Variable(item)) => ChunkElements::Variable(allocation::filled(&item[..], count)?),
            _ => return Err(mismatch()),
        })
    }

    /// Room for `count` missing elements.
    fn nothing(data_type: &DataType, count: usize) -> Result<ChunkElements<'a>> {
        Ok(match (data_type, data_type.item_size()) {
            (DataType::Optional(inner), _) => ChunkElements::Optional {
                missing: allocation::filled(1u8, count)?,
                data: Box::new(Self::nothing(inner, count)?),
            },
            (_, None) => ChunkElements::Variable(allocation::filled(&[][..], count)?),
            (_, Some(size)) => {
                ChunkElements::Fixed(allocation::filled(0u8, shape::nbytes(&[count as u64], size)?)?)
            }
        })
    }

    /// The elements of a decoded chunk (step 1).
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn of(decoded: &'a Decoded, count: usize) -> Result<ChunkElements<'a>> {
        Ok(match decoded {
            Decoded::Fixed { bytes, swap } => {
                let (mut bytes, item_size) = (allocation::copied(bytes)?, bytes.len() / count.max(1));
                swap.in_place(&mut bytes, item_size);
                ChunkElements::Fixed(bytes)
            }
            Decoded::Variable(chunk) => ChunkElements::Variable(allocation::try_collected(
                (0..count).map(|index| chunk.element(index)),
            )?),
            Decoded::Optional { missing, data } => {
                let missing = allocation::copied(missing)?;
                ChunkElements::Optional { missing, data: Box::new(Self::of(data, count)?) }
            }
        })
    }

    /// Puts the values of `part` to their places in a chunk of `shape` (step 2); `offset` bytes behind the start of each
    /// element, where they have a fixed size.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where values lie outside of their memory; [`ErrorKind::Internal`] for values of another
    /// layout.
    pub(super) fn put(
        &mut self,
        values: Level<'_, 'a>,
        part: &[AxisPart<'_>],
        shape: &[u64],
        (offset, item_size): (usize, usize),
    ) -> Result<()> {
        match (self, values.data) {
            (ChunkElements::Optional { missing, data }, _) => {
                let (mask, values) = values.split();
                let present = Memory::nothing_missing(part);
                mask.unwrap_or(&present).gather_over(part, missing, &c_strides(shape, 1), &Swap::None)?;
                missing.iter_mut().for_each(|missing| *missing = u8::from(*missing != 0));
                data.put(values, part, shape, (offset, item_size))
            }
            (ChunkElements::Fixed(bytes), Data::Fixed(memory, swap)) => {
                let bytes = bytes.get_mut(offset..).ok_or_else(mismatch)?;
                memory.gather_over(part, bytes, &c_strides(shape, item_size), swap)
            }
            (ChunkElements::Variable(elements), Data::Variable(values)) => {
                values.each(part, &c_strides(shape, 1), |place, element| {
                    *elements.get_mut(place).ok_or_else(mismatch)? = element;
                    Ok(())
                })
            }
            _ => Err(mismatch()),
        }
    }

    /// Whether all are the fill value, bit by bit.
    pub fn are(&self, value: &FillValue) -> bool {
        match (self, value) {
            (ChunkElements::Fixed(bytes), FillValue::Fixed(item)) => is_filled(bytes, item),
            (ChunkElements::Variable(elements), FillValue::Variable(item)) => {
                elements.iter().all(|element| *element == &item[..])
            }
            (ChunkElements::Optional { missing, .. }, FillValue::Missing) => {
                missing.iter().all(|missing| *missing != 0)
            }
            (ChunkElements::Optional { missing, data }, FillValue::Present(value)) => {
                missing.iter().all(|missing| *missing == 0) && data.are(value)
            }
            _ => false,
        }
    }

    /// Those that are not missing.
    fn present(self, missing: &[u8], item_size: usize) -> Result<ChunkElements<'a>> {
        /// The items move together in the memory that they have.
        fn keep<T: Copy>(items: &mut Vec<T>, missing: &[u8], size: usize) {
            let mut kept = 0;
            for at in missing.iter().enumerate().filter(|(_, missing)| **missing == 0).map(|(at, _)| at) {
                items.copy_within(at * size..(at + 1) * size, kept);
                kept += size;
            }
            items.truncate(kept);
        }
        Ok(match self {
            ChunkElements::Fixed(mut bytes) => {
                keep(&mut bytes, missing, item_size);
                ChunkElements::Fixed(bytes)
            }
            ChunkElements::Variable(mut elements) => {
                keep(&mut elements, missing, 1);
                ChunkElements::Variable(elements)
            }
            ChunkElements::Optional { missing: mut inner, data } => {
                keep(&mut inner, missing, 1);
                ChunkElements::Optional { data: Box::new(data.present(missing, item_size)?), missing: inner }
            }
        })
    }

    /// Encodes the elements, of which there are as many as `shape` has, by `chain`.
    ///
    /// # Errors
    /// What the codecs give, with their names.
    pub fn encode(self, chain: &Chain, shape: &[u64], codecs: &mut Codecs) -> Result<Vec<u8>> {
        let bytes = match (&chain.array_to_bytes, self) {
            (ArrayToBytes::Filtered(filtered), elements) => {
                let (_, stored_shape) = filtered.stored_shape(shape)?;
                return filtered.encode(elements, shape)?.encode(&filtered.stored, &stored_shape, codecs);
            }
            (ArrayToBytes::Bytes { swap }, ChunkElements::Fixed(bytes)) => {
                let mut bytes = bytes;
                swap.in_place(&mut bytes, chain.item_size().unwrap_or(0));
                bytes
            }
            (ArrayToBytes::PackBits(packing), ChunkElements::Fixed(bytes)) => packing.pack(&bytes)?,
            #[cfg(feature = "zarrs")]
            (ArrayToBytes::Fallback(fallback), ChunkElements::Fixed(bytes)) => {
                fallback.encode(&bytes, shape)?
            }
            (ArrayToBytes::Registered(codec), ChunkElements::Fixed(bytes)) => {
                let data_type = &chain.data_type;
                codec.encode(&bytes, Some(ChunkDescription { data_type, shape }))?
            }
            (ArrayToBytes::Pcodec(pcodec), ChunkElements::Fixed(bytes)) => pcodec.encode(&bytes)?,
            (ArrayToBytes::IndexedVlen(vlen), ChunkElements::Variable(elements)) => {
                let count = elements.len() as u64 + 1;
                let offsets = vlen.offsets(&elements).map_err(|error| error.in_codec(INDEXED_VLEN))?;
                let index = ChunkElements::Fixed(offsets).encode(&vlen.index, &[count], codecs)?;
                let data = match elements.concat() {
                    none if none.is_empty() => none,
                    data => {
                        let nbytes = data.len() as u64;
                        ChunkElements::Fixed(data).encode(&vlen.data, &[nbytes], codecs)?
                    }
                };
                vlen.joined(&index, &data)
            }
            (ArrayToBytes::Vlen, ChunkElements::Variable(elements)) => {
                let limit = chain.limits.max_variable_nbytes;
                let encoded = encode_variable(&elements).and_then(|bytes| match chain.data_type {
                    _ if bytes.len() > limit => {
                        let what = "the size of a chunk of strings (DecodeLimits.max_variable_nbytes)";
                        let (actual, limit) = (bytes.len() as u64, limit as u64);
                        Err(ErrorKind::Limit { what, actual, limit }.into())
                    }
                    DataType::String => check_text(&bytes).map(|()| bytes),
                    _ => Ok(bytes),
                });
                encoded.map_err(|error| error.in_codec(chain.vlen_name()))?
            }
            (ArrayToBytes::Optional(optional), ChunkElements::Optional { missing, data }) => {
                encode_optional(optional, &missing, *data, codecs)
                    .map_err(|error| error.in_codec("zarrs.optional"))?
            }
            _ => return Err(mismatch()),
        };
        let compressors = chain.compressors()?;
        if compressors.is_empty() {
            return Ok(bytes);
        }
        let mut scratch = Scratch::default();
        let Encoded { body, tail } = encode(compressors, &bytes, &mut scratch, codecs)?;
        Ok(allocation::concatenated(&[body, &tail])?)
    }
}

/// Step 3.
fn encode_optional(
    optional: &OptionalCodec,
    missing: &[u8],
    data: ChunkElements<'_>,
    codecs: &mut Codecs,
) -> Result<Vec<u8>> {
    // Stored as 1 where an element is there.
    let valid: Vec<u8> = allocation::collected(missing.iter().map(|missing| u8::from(*missing == 0)))?;
    let given = missing.iter().filter(|missing| **missing == 0).count();
    let mask = ChunkElements::Fixed(valid).encode(&optional.mask, &[missing.len() as u64], codecs)?;
    let data = match given {
        0 => Vec::new(),
        given => {
            let item_size = optional.data.item_size().unwrap_or(0);
            data.present(missing, item_size)?.encode(&optional.data, &[given as u64], codecs)?
        }
    };
    let lengths = [mask.len() as u64, data.len() as u64].map(u64::to_le_bytes);
    Ok(allocation::concatenated(&[lengths.as_flattened(), &mask, &data])?)
}
