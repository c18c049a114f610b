//! `packbits`: elements of fewer bits than a byte, packed from the lowest bit on.
//!
//! 1. Source: zarr-extensions `packbits`. `first_bit` and `last_bit` choose bits of each part of an element. The other
//!    bits are decoded to zero; in signed integers, those above the last bit repeat the sign.
//! 2. Parts of whole bytes, with all their bits, are stored as little-endian bytes without a padding byte, as zarrs
//!    does.

use crate::codec::chain::ArrayToBytes;
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::codec::{ChunkElements, Codecs, EncodedChunk, Uninit};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::CodecMetadata;
use zarrow_array::allocation;
use zarrow_array::{DataType, Number};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["packbits"],
    parameters: &[
        ("padding_encoding", ParameterType::Text),
        ("first_bit", ParameterType::Integer),
        ("last_bit", ParameterType::Integer),
    ],
    stage: Stage::Serializer(|metadata, layout| {
        layout.only_if(layout.has_fixed_elements())?;
        Ok(Box::new(PackBits::parse(metadata, layout.data_type)?))
    }),
    ..Definition::PLAIN
};

/// Place of the number of unused bits in the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Padding {
    None,
    FirstByte,
    LastByte,
}

/// The packing of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackBits {
    padding: Padding,
    /// Numbers of a part's first stored bit, and of the bit after the last one.
    bits: (u32, u32),
    /// Bytes of a part in memory.
    word_nbytes: usize,
    /// Words of an element.
    words: usize,
    is_bool: bool,
    is_signed: bool,
}

impl PackBits {
    /// Parses the configuration.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for types other than numbers and times, [`ErrorKind::BadCodec`].
    pub fn parse(metadata: &CodecMetadata, data_type: &DataType) -> Result<PackBits> {
        let number = match data_type {
            DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => Some(Number::Int64),
            data_type => data_type.as_number(),
        };
        let Some(number) = number else {
            return Err(ErrorKind::Unsupported(format!("packbits of {data_type}")).into());
        };
        let names = number.names();
        let wrong = |key: &str, expected: &str| wrong_parameter(&metadata.configuration, key, expected);
        let bit = |key: &str, default: u32| match metadata.configuration.get(key) {
            None | Some(serde_json::Value::Null) => Ok(default),
            Some(value) => {
                let bit = value.as_u64().and_then(|bit| u32::try_from(bit).ok());
                bit.filter(|bit| *bit < names.bits)
                    .ok_or_else(|| wrong(key, &format!("a bit of {}: 0 to {}", names.zarr, names.bits - 1)))
            }
        };
        let (first, last) = (bit("first_bit", 0)?, bit("last_bit", names.bits - 1)?);
        if last < first {
            return Err(wrong("last_bit", &format!("at least first_bit, which is {first}")));
        }
        let padding = match metadata.configuration.get("padding_encoding").map(serde_json::Value::as_str) {
            None | Some(Some("none")) => Padding::None,
            Some(Some("first_byte" | "start_byte")) => Padding::FirstByte,
            Some(Some("last_byte" | "end_byte")) => Padding::LastByte,
            Some(_) => {
                return Err(wrong("padding_encoding", "\"none\", \"first_byte\" or \"last_byte\""));
            }
        };
        // Step 2.
        let is_whole = first == 0 && last + 1 == names.bits && names.bits.is_multiple_of(8);
        Ok(PackBits {
            padding: if is_whole { Padding::None } else { padding },
            bits: (first, last + 1),
            word_nbytes: names.word_size,
            words: names.item_size / names.word_size,
            is_bool: number == Number::Bool,
            is_signed: names.zarr.starts_with("int"),
        })
    }

    /// Returns the stored bits of an element.
    fn element_bits(self) -> usize {
        (self.bits.1 - self.bits.0) as usize * self.words
    }

    /// Returns the number of bytes of the packed elements, without the padding byte, and the number of unused bits in
    /// them.
    fn packed_nbytes(self, count: usize) -> Option<(usize, u8)> {
        let bits = count.checked_mul(self.element_bits())?;
        let nbytes = bits.div_ceil(8);
        Some((nbytes, (nbytes.checked_mul(8)? - bits) as u8))
    }

    /// Returns the number of bytes of `count` packed elements.
    pub fn encoded_nbytes(self, count: usize) -> usize {
        let nbytes = self.packed_nbytes(count).map_or(usize::MAX, |(nbytes, _)| nbytes);
        nbytes.saturating_add(usize::from(self.padding != Padding::None))
    }

    /// Unpacks `packed` to native-endian elements.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`], [`ErrorKind::Corrupt`] if the padding does not fit the number of elements.
    pub fn unpack(self, packed: &[u8], elements: &mut Uninit) -> Result<()> {
        let count = elements.len() / (self.word_nbytes * self.words);
        let (expected, actual) = (self.encoded_nbytes(count), packed.len());
        let Some((_, unused)) = self.packed_nbytes(count).filter(|_| expected == actual) else {
            let kind = ErrorKind::WrongSize { expected: expected as u64, actual: actual as u64 };
            return Err(Error::from(kind).in_codec("packbits"));
        };
        let (bits, padding) = match self.padding {
            Padding::None => (packed, None),
            Padding::FirstByte => (&packed[1..], packed.first()),
            Padding::LastByte => (&packed[..actual - 1], packed.last()),
        };
        if let Some(padding) = padding.filter(|padding| **padding != unused) {
            let text = format!("its padding byte gives {padding} unused bits, expected {unused}");
            return Err(Error::from(ErrorKind::Corrupt(text)).in_codec("packbits"));
        }
        if self.is_bool {
            for (element, at) in elements.iter_mut().zip(0_usize..) {
                element.write((bits[at / 8] >> (at % 8)) & 1);
            }
            return Ok(());
        }
        let (first, end) = self.bits;
        let (width, unsigned) = (end - first, u64::MAX >> (64 - (end - first)));
        // Bits read from the bytes but not yet assigned to an element.
        let (mut pending, mut pending_bits, mut bytes) = (0_u128, 0, bits.iter());
        for word in elements.chunks_exact_mut(self.word_nbytes) {
            while pending_bits < width {
                pending |= u128::from(*bytes.next().unwrap_or(&0)) << pending_bits;
                pending_bits += 8;
            }
            let mut value = pending as u64 & unsigned;
            (pending, pending_bits) = (pending >> width, pending_bits - width);
            if self.is_signed && value >> (width - 1) == 1 {
                value |= !unsigned;
            }
            write_word(value << first, word);
        }
        Ok(())
    }

    /// Packs native-endian elements. Bools are zero or nonzero.
    pub fn pack(self, elements: &[u8]) -> Result<Vec<u8>> {
        let count = elements.len() / (self.word_nbytes * self.words);
        let unused = self.packed_nbytes(count).map_or(0, |(_, unused)| unused);
        let mut packed = allocation::with_capacity(self.encoded_nbytes(count))?;
        packed.extend((self.padding == Padding::FirstByte).then_some(unused));
        if self.is_bool {
            packed.extend(elements.chunks(8).map(byte_of_bools));
        } else {
            self.pack_words(elements, &mut packed);
        }
        packed.extend((self.padding == Padding::LastByte).then_some(unused));
        Ok(packed)
    }

    fn pack_words(self, elements: &[u8], packed: &mut Vec<u8>) {
        let (first, end) = self.bits;
        let (width, unsigned) = (end - first, u64::MAX >> (64 - (end - first)));
        let (mut pending, mut pending_bits) = (0_u128, 0);
        for word in elements.chunks_exact(self.word_nbytes) {
            pending |= u128::from(read_word(word) >> first & unsigned) << pending_bits;
            pending_bits += width;
            while pending_bits >= 8 {
                packed.push(pending as u8);
                (pending, pending_bits) = (pending >> 8, pending_bits - 8);
            }
        }
        packed.extend((pending_bits > 0).then_some(pending as u8));
    }
}

impl ArrayToBytes for PackBits {
    fn added_nbytes(&self) -> usize {
        0
    }

    fn most_encoded(&self, chunk: &EncodedChunk<'_>) -> usize {
        // Uncompressed bytes are in memory already, and unpacking checks their number.
        let is_plain = chunk.bytes_to_bytes.is_empty();
        if is_plain { usize::MAX } else { self.encoded_nbytes(chunk.count) }
    }

    fn decode_whole(&self, encoded: &[u8], _chunk: &EncodedChunk<'_>, memory: &mut Uninit) -> Result<()> {
        self.unpack(encoded, memory)
    }

    fn encode(&self, elements: ChunkElements<'_>, _: &[u64], _: &mut Codecs) -> Result<Vec<u8>> {
        self.pack(&elements.into_fixed()?)
    }
}

fn byte_of_bools(elements: &[u8]) -> u8 {
    elements.iter().zip(0..8).fold(0, |byte, (element, bit)| byte | u8::from(*element != 0) << bit)
}

/// Reads a native-endian word of at most eight bytes.
fn read_word(word: &[u8]) -> u64 {
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    if cfg!(target_endian = "big") { word.iter().fold(0, add) } else { word.iter().rev().fold(0, add) }
}

fn write_word(value: u64, word: &mut Uninit) {
    let bytes = value.to_ne_bytes();
    let start = if cfg!(target_endian = "big") { bytes.len() - word.len() } else { 0 };
    word.write_copy_of_slice(&bytes[start..start + word.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::mem::MaybeUninit;

    fn packing(data_type: &DataType, configuration: &serde_json::Value) -> Result<PackBits> {
        let configuration = configuration.as_object().cloned().unwrap_or_default();
        PackBits::parse(&CodecMetadata::new("packbits", configuration), data_type)
    }

    fn unpack(packing: PackBits, packed: &[u8], nbytes: usize) -> Result<Vec<u8>> {
        let mut elements = vec![MaybeUninit::uninit(); nbytes];
        packing.unpack(packed, &mut elements)?;
        // SAFETY: unpacking without an error writes every element.
        Ok(elements.into_iter().map(|element| unsafe { element.assume_init() }).collect())
    }

    fn for_bools(padding: &str) -> PackBits {
        packing(&Number::Bool.into(), &json!({ "padding_encoding": padding })).unwrap()
    }

    const PADDINGS: [&str; 3] = ["none", "first_byte", "last_byte"];

    #[test]
    fn packing_and_unpacking_agree() {
        for padding in PADDINGS {
            for count in 0..40 {
                let elements: Vec<u8> = (0..count).map(|at| u8::from(at % 3 == 0 || at % 7 == 2)).collect();
                let packed = for_bools(padding).pack(&elements).unwrap();
                assert_eq!(unpack(for_bools(padding), &packed, elements.len()).unwrap(), elements);
            }
        }
    }

    #[test]
    fn bits_come_lowest_first() {
        assert_eq!(unpack(for_bools("none"), &[0b101, 0b1], 9).unwrap(), [1, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(unpack(for_bools("first_byte"), &[7, 1], 1).unwrap(), [1]);
        assert_eq!(unpack(for_bools("last_byte"), &[1, 7], 1).unwrap(), [1]);
    }

    #[test]
    fn sizes_and_padding_are_checked() {
        assert!(unpack(for_bools("none"), &[1], 9).is_err());
        assert!(unpack(for_bools("none"), &[1, 1, 1], 9).is_err());
        assert!(unpack(for_bools("first_byte"), &[6, 1], 1).is_err());
        assert!(unpack(for_bools("last_byte"), &[], 0).is_err());
    }

    #[test]
    fn bits_that_are_left_out_are_zero_or_those_of_the_sign() {
        let some = json!({ "first_bit": 4, "last_bit": 8 });
        let of = |number: Number| packing(&number.into(), &some).unwrap();
        let elements: Vec<u8> = [0x0123_i16, -1, 0x00F0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let packed = of(Number::Int16).pack(&elements).unwrap();
        assert_eq!(packed, [0b1111_0010, 0b0011_1111]);
        let words = |bytes: Vec<u8>| -> Vec<i16> {
            bytes.chunks(2).map(|word| i16::from_ne_bytes([word[0], word[1]])).collect()
        };
        assert_eq!(words(unpack(of(Number::Int16), &packed, 6).unwrap()), [-0xE0, -16, 0xF0]);
        assert_eq!(words(unpack(of(Number::UInt16), &packed, 6).unwrap()), [0x120, 0x1F0, 0xF0]);
    }

    #[test]
    fn bits_that_an_element_does_not_have_are_refused() {
        for wrong in [
            json!({ "last_bit": 8 }),
            json!({ "first_bit": 5, "last_bit": 4 }),
            json!({ "first_bit": -1 }),
            json!({ "first_bit": u64::MAX }),
        ] {
            assert!(packing(&Number::UInt8.into(), &wrong).is_err(), "{wrong}");
        }
        assert!(packing(&DataType::String, &json!({})).is_err());
    }

    /// zarrs writes the same bytes, except for the sign of chosen bits, which it extends within one byte.
    #[test]
    fn zarrs_packs_the_same_bytes() {
        use std::num::NonZeroU64;
        use zarrs::array::{ArrayBytes, ArrayToBytesCodecTraits, CodecChain, CodecOptions};
        use zarrs::metadata::v3::MetadataV3;

        let shape = [NonZeroU64::new(13).unwrap()];
        for number in Number::ALL.iter().copied() {
            let names = number.names();
            let Ok(data_type) = zarrs::array::DataType::from_metadata(&MetadataV3::new(names.zarr)) else {
                continue;
            };
            let fill_value = zarrs::array::FillValue::new(vec![0; names.item_size]);
            let nbytes = 13 * names.item_size;
            let mut elements: Vec<u8> = (0..nbytes).map(|at| (at * 37 + 11) as u8).collect();
            if names.bits < 8 {
                // The form in memory.
                let is_signed = names.zarr.starts_with("int");
                let keep = |byte: u8| {
                    if is_signed {
                        ((byte << (8 - names.bits)) as i8 >> (8 - names.bits)) as u8
                    } else {
                        byte & ((1 << names.bits) - 1)
                    }
                };
                elements.iter_mut().for_each(|byte| *byte = keep(*byte));
            }
            for padding in PADDINGS {
                for bits in [
                    json!({}),
                    json!({ "first_bit": 1.min(names.bits - 1) }),
                    json!({ "last_bit": names.bits / 2 }),
                ] {
                    let mut configuration = bits.clone();
                    configuration["padding_encoding"] = json!(padding);
                    let own = packing(&number.into(), &configuration).unwrap();
                    let metadata = MetadataV3::new_with_configuration(
                        "packbits",
                        configuration.as_object().cloned().unwrap(),
                    );
                    let chain = CodecChain::from_metadata(&[metadata]).unwrap();
                    let options = CodecOptions::default();
                    let given = ArrayBytes::new_flen(elements.clone());
                    let theirs = chain.encode(given, &shape, &data_type, &fill_value, &options).unwrap();
                    assert_eq!(own.pack(&elements).unwrap(), *theirs, "{} {configuration}", names.zarr);
                    if names.bits <= 8 || !names.zarr.starts_with("int") || bits == json!({}) {
                        let decoded = chain.decode(theirs.clone(), &shape, &data_type, &fill_value, &options);
                        let decoded = decoded.unwrap().into_fixed().unwrap();
                        assert_eq!(
                            unpack(own, &theirs, nbytes).unwrap(),
                            *decoded,
                            "{} {configuration}",
                            names.zarr
                        );
                    }
                }
            }
        }
    }
}
