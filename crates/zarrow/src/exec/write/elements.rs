//! The elements of a chunk of any layout, as they are to be encoded: for the layouts and the codecs that know no way
//! straight from the caller's memory.
//!
//! 1. They begin as what stands there: the old chunk, or the fill value.
//! 2. Those that are written take their places.
//! 3. An optional type is encoded as a mask and the elements that are there, each by codecs of its own.

use crate::codec::{
    ArrayToBytes, Chain, Encoded, INDEXED_VLEN, OptionalCodec, Swap, check_text, encode, encode_variable,
};
use crate::error::{ErrorKind, Result};
use crate::exec::part::AxisPart;
use crate::exec::scratch::{Codecs, Scratch};
use crate::exec::sink::{Decoded, c_strides};
use crate::exec::write::fill::is_filled;
use crate::exec::write::values::{Data, Level, Memory, mismatch};
use crate::metadata::FillValue;
use zarrow_array::{DataType, shape};

/// The elements of a chunk in the C order of its stored axes.
pub enum Elements<'a> {
    /// Elements of a fixed size, in the machine's byte order.
    Fixed(Vec<u8>),
    /// Strings or bytes.
    Variable(Vec<&'a [u8]>),
    /// Elements of which some are missing.
    Optional {
        /// 1 where one is missing.
        missing: Vec<u8>,
        /// The elements, with room for the missing ones.
        data: Box<Elements<'a>>,
    },
}

impl<'a> Elements<'a> {
    /// `count` times the fill value (step 1).
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`]; [`ErrorKind::Internal`] where value and type do not go together, which the
    /// metadata's check rules out.
    pub fn repeated(data_type: &DataType, value: &'a FillValue, count: usize) -> Result<Elements<'a>> {
        Ok(match (data_type, value) {
            (DataType::Optional(inner), FillValue::Present(value)) => Elements::Optional {
                missing: with_room(count, 0u8)?,
                data: Box::new(Self::repeated(inner, value, count)?),
            },
            (DataType::Optional(inner), FillValue::Missing) => Elements::Optional {
                missing: with_room(count, 1u8)?,
                data: Box::new(Self::nothing(inner, count)?),
            },
            (_, FillValue::Fixed(item)) => {
                let mut bytes = with_room(shape::nbytes(&[count as u64], item.len())?, 0u8)?;
                for place in bytes.chunks_exact_mut(item.len().max(1)) {
                    place.copy_from_slice(item);
                }
                Elements::Fixed(bytes)
            }
            (_, FillValue::Variable(item)) => Elements::Variable(with_room(count, &item[..])?),
            _ => return Err(mismatch()),
        })
    }

    /// Room for `count` missing elements.
    fn nothing(data_type: &DataType, count: usize) -> Result<Elements<'a>> {
        Ok(match (data_type, data_type.item_size()) {
            (DataType::Optional(inner), _) => Elements::Optional {
                missing: with_room(count, 1u8)?,
                data: Box::new(Self::nothing(inner, count)?),
            },
            (_, None) => Elements::Variable(with_room(count, &[][..])?),
            (_, Some(size)) => Elements::Fixed(with_room(shape::nbytes(&[count as u64], size)?, 0u8)?),
        })
    }

    /// The elements of a decoded chunk (step 1).
    pub fn of(decoded: &'a Decoded, count: usize) -> Elements<'a> {
        match decoded {
            Decoded::Fixed { bytes, swap } => {
                let (mut bytes, item_size) = (bytes.clone(), bytes.len() / count.max(1));
                swap.in_place(&mut bytes, item_size);
                Elements::Fixed(bytes)
            }
            Decoded::Variable(chunk) => {
                Elements::Variable((0..count).map(|index| chunk.element(index)).collect())
            }
            Decoded::Optional { missing, data } => {
                Elements::Optional { missing: missing.clone(), data: Box::new(Self::of(data, count)) }
            }
        }
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
            (Elements::Optional { missing, data }, _) => {
                let (mask, values) = values.split();
                let present = Memory::nothing_missing(part);
                mask.unwrap_or(&present).gather_over(part, missing, &c_strides(shape, 1), &Swap::None)?;
                missing.iter_mut().for_each(|missing| *missing = u8::from(*missing != 0));
                data.put(values, part, shape, (offset, item_size))
            }
            (Elements::Fixed(bytes), Data::Fixed(memory, swap)) => {
                let bytes = bytes.get_mut(offset..).ok_or_else(mismatch)?;
                memory.gather_over(part, bytes, &c_strides(shape, item_size), swap)
            }
            (Elements::Variable(elements), Data::Variable(words)) => {
                words.each(part, &c_strides(shape, 1), |place, element| {
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
            (Elements::Fixed(bytes), FillValue::Fixed(item)) => is_filled(bytes, item),
            (Elements::Variable(elements), FillValue::Variable(item)) => {
                elements.iter().all(|element| *element == &item[..])
            }
            (Elements::Optional { missing, .. }, FillValue::Missing) => {
                missing.iter().all(|missing| *missing != 0)
            }
            (Elements::Optional { missing, data }, FillValue::Present(value)) => {
                missing.iter().all(|missing| *missing == 0) && data.are(value)
            }
            _ => false,
        }
    }

    /// Those that are not missing.
    fn present(self, missing: &[u8], item_size: usize) -> Elements<'a> {
        let here = |(_, missing): &(&[u8], &u8)| **missing == 0;
        match self {
            Elements::Fixed(bytes) => {
                let mut present = Vec::with_capacity(bytes.len());
                for (item, _) in
                    bytes.chunks_exact(item_size.max(1)).zip(missing).filter(|(_, missing)| **missing == 0)
                {
                    present.extend_from_slice(item);
                }
                Elements::Fixed(present)
            }
            Elements::Variable(elements) => Elements::Variable(
                elements.into_iter().zip(missing).filter(here).map(|(item, _)| item).collect(),
            ),
            Elements::Optional { missing: inner, data } => Elements::Optional {
                data: Box::new(data.present(missing, item_size)),
                missing: inner
                    .iter()
                    .zip(missing)
                    .filter(|(_, missing)| **missing == 0)
                    .map(|(item, _)| *item)
                    .collect(),
            },
        }
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
            (ArrayToBytes::Bytes { swap }, Elements::Fixed(bytes)) => {
                let mut bytes = bytes;
                swap.in_place(&mut bytes, chain.item_size().unwrap_or(0));
                bytes
            }
            (ArrayToBytes::PackBits(packing), Elements::Fixed(bytes)) => packing.pack(&bytes),
            (ArrayToBytes::Fallback(fallback), Elements::Fixed(bytes)) => fallback.encode(&bytes, shape)?,
            (ArrayToBytes::Pcodec(pcodec), Elements::Fixed(bytes)) => pcodec.encode(&bytes)?,
            (ArrayToBytes::IndexedVlen(vlen), Elements::Variable(elements)) => {
                let count = elements.len() as u64 + 1;
                let offsets = vlen.offsets(&elements).map_err(|error| error.in_codec(INDEXED_VLEN))?;
                let index = Elements::Fixed(offsets).encode(&vlen.index, &[count], codecs)?;
                let data = match elements.concat() {
                    none if none.is_empty() => none,
                    data => {
                        let nbytes = data.len() as u64;
                        Elements::Fixed(data).encode(&vlen.data, &[nbytes], codecs)?
                    }
                };
                vlen.joined(&index, &data)
            }
            (ArrayToBytes::Vlen, Elements::Variable(elements)) => {
                let encoded = encode_variable(&elements).and_then(|bytes| match chain.data_type {
                    DataType::String => check_text(&bytes).map(|()| bytes),
                    _ => Ok(bytes),
                });
                encoded.map_err(|error| error.in_codec(chain.vlen_name()))?
            }
            (ArrayToBytes::Optional(optional), Elements::Optional { missing, data }) => {
                encode_optional(optional, &missing, *data, codecs)
                    .map_err(|error| error.in_codec("zarrs.optional"))?
            }
            _ => return Err(mismatch()),
        };
        let mut scratch = Scratch::default();
        let Encoded { body, tail } = encode(chain.compressors()?, &bytes, &mut scratch, codecs)?;
        Ok([body, &tail].concat())
    }
}

/// Step 3.
fn encode_optional(
    optional: &OptionalCodec,
    missing: &[u8],
    data: Elements<'_>,
    codecs: &mut Codecs,
) -> Result<Vec<u8>> {
    // Stored as 1 where an element is there.
    let valid: Vec<u8> = missing.iter().map(|missing| u8::from(*missing == 0)).collect();
    let given = missing.iter().filter(|missing| **missing == 0).count();
    let mask = Elements::Fixed(valid).encode(&optional.mask, &[missing.len() as u64], codecs)?;
    let data = match given {
        0 => Vec::new(),
        given => {
            let item_size = optional.data.item_size().unwrap_or(0);
            data.present(missing, item_size).encode(&optional.data, &[given as u64], codecs)?
        }
    };
    let lengths = [mask.len() as u64, data.len() as u64].map(u64::to_le_bytes);
    Ok([lengths.as_flattened(), &mask, &data].concat())
}

fn with_room<T: Clone>(count: usize, item: T) -> Result<Vec<T>> {
    let mut items = Vec::new();
    let nbytes = count.saturating_mul(size_of::<T>());
    items
        .try_reserve_exact(count)
        .map_err(|_| ErrorKind::Array(zarrow_array::Error::OutOfMemory { nbytes }))?;
    items.resize(count, item);
    Ok(items)
}
