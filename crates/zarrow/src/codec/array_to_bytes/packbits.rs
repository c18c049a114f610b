//! `packbits`: elements of fewer bits than a byte, side by side, the lowest bit first.
//!
//! Source: zarr-extensions `packbits`. Elements here are bytes in memory; a range of bits of wider elements
//! (`first_bit`, `last_bit`) is refused but for the whole element.

use crate::codec::chain::ArrayToBytes;
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::CodecMetadata;
use std::mem::MaybeUninit;
use zarrow_array::allocation;
use zarrow_array::{DataType, Number};

/// The codec. What is no bool is another library's.
pub const DEFINITION: Definition = Definition {
    names: &["packbits"],
    parameters: &[
        ("padding_encoding", ParameterType::Text),
        ("first_bit", ParameterType::Integer),
        ("last_bit", ParameterType::Integer),
    ],
    stage: Stage::Serializer(|metadata, layout| {
        layout.only_if(layout.has_fixed_elements())?;
        match PackBits::parse(metadata, layout.data_type) {
            Ok(packing) => Ok(Some(ArrayToBytes::PackBits(packing))),
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }),
    ..Definition::PLAIN
};

/// Where the number of unused bits of the last byte is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Padding {
    None,
    FirstByte,
    LastByte,
}

/// The packing of bools: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackBits {
    padding: Padding,
}

impl PackBits {
    /// Reads the configuration.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for other types than bool, [`ErrorKind::BadCodec`].
    pub fn parse(metadata: &CodecMetadata, data_type: &DataType) -> Result<PackBits> {
        if data_type.as_number() != Some(Number::Bool) {
            return Err(ErrorKind::Unsupported(format!("packbits of {data_type}")).into());
        }
        let bit = |key: &str| match metadata.configuration.get(key) {
            None | Some(serde_json::Value::Null) => Some(0),
            Some(value) => value.as_u64(),
        };
        let wrong = |key: &str, expected: &str| wrong_parameter(&metadata.configuration, key, expected);
        if let Some(key) = ["first_bit", "last_bit"].into_iter().find(|key| bit(key) != Some(0)) {
            return Err(wrong(key, "0, the only bit of a bool"));
        }
        let padding = match metadata.configuration.get("padding_encoding").map(serde_json::Value::as_str) {
            None | Some(Some("none")) => Padding::None,
            Some(Some("first_byte" | "start_byte")) => Padding::FirstByte,
            Some(Some("last_byte" | "end_byte")) => Padding::LastByte,
            Some(_) => {
                return Err(wrong("padding_encoding", "\"none\", \"first_byte\" or \"last_byte\""));
            }
        };
        Ok(PackBits { padding })
    }

    /// The bytes of `count` packed elements.
    pub fn encoded_nbytes(self, count: usize) -> usize {
        count.div_ceil(8) + usize::from(self.padding != Padding::None)
    }

    /// Unpacks `packed` to one byte an element, 0 or 1.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`], [`ErrorKind::Corrupt`] where the padding is not what the count asks for.
    pub fn unpack(self, packed: &[u8], elements: &mut [MaybeUninit<u8>]) -> Result<()> {
        let (expected, actual) = (self.encoded_nbytes(elements.len()), packed.len());
        if expected != actual {
            let kind = ErrorKind::WrongSize { expected: expected as u64, actual: actual as u64 };
            return Err(Error::from(kind).in_codec("packbits"));
        }
        let (bits, padding) = match self.padding {
            Padding::None => (packed, None),
            Padding::FirstByte => (&packed[1..], packed.first()),
            Padding::LastByte => (&packed[..actual - 1], packed.last()),
        };
        let unused = (8 - elements.len() % 8) % 8;
        if padding.is_some_and(|padding| usize::from(*padding) != unused) {
            let kind = ErrorKind::Corrupt(format!(
                "its padding byte says {} unused bits, expected {unused}",
                padding.unwrap_or(&0)
            ));
            return Err(Error::from(kind).in_codec("packbits"));
        }
        for (element, at) in elements.iter_mut().zip(0usize..) {
            element.write((bits[at / 8] >> (at % 8)) & 1);
        }
        Ok(())
    }
}

impl PackBits {
    /// Packs elements of one byte, which are 0 or not.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub fn pack(self, elements: &[u8]) -> Result<Vec<u8>> {
        let unused = ((8 - elements.len() % 8) % 8) as u8;
        let byte = |elements: &[u8]| {
            elements.iter().zip(0..8).fold(0, |byte, (element, bit)| byte | u8::from(*element != 0) << bit)
        };
        let mut packed = allocation::with_capacity(self.encoded_nbytes(elements.len()))?;
        packed.extend((self.padding == Padding::FirstByte).then_some(unused));
        packed.extend(elements.chunks(8).map(byte));
        packed.extend((self.padding == Padding::LastByte).then_some(unused));
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_unpacking_agree() {
        for padding in [Padding::None, Padding::FirstByte, Padding::LastByte] {
            for count in 0..40 {
                let elements: Vec<u8> = (0..count).map(|at| u8::from(at % 3 == 0 || at % 7 == 2)).collect();
                let packed = PackBits { padding }.pack(&elements).unwrap();
                assert_eq!(unpack(padding, &packed, elements.len()).unwrap(), elements);
            }
        }
    }

    fn unpack(padding: Padding, packed: &[u8], count: usize) -> Result<Vec<u8>> {
        let mut elements = vec![MaybeUninit::uninit(); count];
        PackBits { padding }.unpack(packed, &mut elements)?;
        // SAFETY: unpacking without an error writes every element.
        Ok(elements.into_iter().map(|element| unsafe { element.assume_init() }).collect())
    }

    #[test]
    fn bits_come_lowest_first() {
        assert_eq!(unpack(Padding::None, &[0b101, 0b1], 9).unwrap(), [1, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(unpack(Padding::FirstByte, &[7, 1], 1).unwrap(), [1]);
        assert_eq!(unpack(Padding::LastByte, &[1, 7], 1).unwrap(), [1]);
    }

    #[test]
    fn sizes_and_padding_are_checked() {
        assert!(unpack(Padding::None, &[1], 9).is_err());
        assert!(unpack(Padding::None, &[1, 1, 1], 9).is_err());
        assert!(unpack(Padding::FirstByte, &[6, 1], 1).is_err());
        assert!(unpack(Padding::LastByte, &[], 0).is_err());
    }
}
