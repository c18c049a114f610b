//! Byte order: which bytes of each stored element are reversed for this machine.
//!
//! 1. `endian` of the `bytes` codec is one order for all words of an element. In Zarr version 2 each field of a
//!    structure has its own; the metadata then hold a list with one entry for each run of
//!    [`DataType::words`](zarrow_array::DataType::words).
//! 2. If every word is native-endian, nothing is reversed. If no word is, whole elements are reversed. Otherwise a list
//!    gives the positions of the words to reverse.
//! 3. Reversing is its own inverse, so encoding does the same.

use crate::codec::parameter::wrong_parameter;
use crate::error::Result;
use crate::metadata::CodecMetadata;
use serde_json::Value;
use std::sync::Arc;
use zarrow_array::{DataType, WordRun};

/// The bytes to reverse in each element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// Nothing.
    None,
    /// Every word of this many bytes; elements consist of words of this size only.
    Words(usize),
    /// The words of a structure at these positions.
    Fields(Arc<[WordRun]>),
}

impl Swap {
    /// Returns the reversal that the `bytes` codec needs on this machine.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] if the codec gives no byte order and the elements need one.
    pub fn new(metadata: &CodecMetadata, data_type: &DataType) -> Result<Swap> {
        let words = data_type.words();
        let is_foreign = |order: &Value| match order.as_str() {
            Some("little") => Some(cfg!(target_endian = "big")),
            Some("big") => Some(cfg!(target_endian = "little")),
            _ => None,
        };
        let foreign = match metadata.configuration.get("endian") {
            Some(Value::Array(orders)) => orders.iter().map(is_foreign).collect::<Option<Vec<bool>>>(),
            Some(order) if !order.is_null() => is_foreign(order).map(|foreign| vec![foreign; words.len()]),
            // One byte has no order, and zarr-python leaves the setting out. It does so for structures too, which it
            // writes in little-endian order (zarr-extensions, `structured`).
            _ if words.iter().all(|words| words.size == 1) => Some(vec![false; words.len()]),
            _ if matches!(data_type, DataType::Struct(_)) => {
                Some(vec![cfg!(target_endian = "big"); words.len()])
            }
            _ => None,
        };
        match foreign {
            Some(foreign) if foreign.len() == words.len() => {
                Ok(Swap::from_words(data_type, &words, &foreign))
            }
            _ => Err(wrong_parameter(&metadata.configuration, "endian", "\"little\" or \"big\"")),
        }
    }

    /// Reverses every word of elements of this type.
    pub fn all(data_type: &DataType) -> Swap {
        let words = data_type.words();
        Swap::from_words(data_type, &words, &vec![true; words.len()])
    }

    /// Combines this reversal with `other`, for elements of one type: words reversed twice are unchanged.
    pub fn and(&self, other: &Swap) -> Swap {
        match (self, other) {
            (Swap::None, swap) | (swap, Swap::None) => swap.clone(),
            (Swap::Fields(first), Swap::Fields(second)) => {
                let only = |these: &[WordRun], others: &[WordRun]| {
                    these.iter().filter(|words| !others.contains(words)).copied().collect::<Vec<_>>()
                };
                let fields = [only(first, second), only(second, first)].concat();
                if fields.is_empty() { Swap::None } else { Swap::Fields(fields.into()) }
            }
            // Words of one size are either all reversed or all kept.
            _ => Swap::None,
        }
    }

    /// Returns the reversal of the field of type `data_type` at `offset` in each element.
    pub fn part(&self, offset: usize, data_type: &DataType) -> Swap {
        let Swap::Fields(fields) = self else { return self.clone() };
        let part = offset..offset.saturating_add(data_type.item_size().unwrap_or(0));
        let inside = fields.iter().filter(|words| part.contains(&words.offset));
        Swap::from_fields(
            data_type,
            inside.map(|words| WordRun { offset: words.offset - offset, ..*words }).collect(),
        )
    }

    /// Step 2.
    fn from_words(data_type: &DataType, words: &[WordRun], foreign: &[bool]) -> Swap {
        let swapped = |(words, foreign): (&WordRun, &bool)| (*foreign && words.size > 1).then_some(*words);
        Swap::from_fields(data_type, words.iter().zip(foreign).filter_map(swapped).collect())
    }

    /// Reverses these words in elements of `data_type`.
    fn from_fields(data_type: &DataType, fields: Vec<WordRun>) -> Swap {
        match (fields.as_slice(), data_type) {
            ([], _) => Swap::None,
            ([words], data_type) if !matches!(data_type, DataType::Struct(_)) => Swap::Words(words.size),
            _ => Swap::Fields(fields.into()),
        }
    }

    /// Reverses the words of elements of `item_size` bytes in place.
    pub fn in_place(&self, bytes: &mut [u8], item_size: usize) {
        match self {
            Swap::None => {}
            Swap::Words(size) => reverse(bytes, *size),
            Swap::Fields(fields) => {
                for item in bytes.chunks_exact_mut(item_size.max(1)) {
                    fields.iter().for_each(|words| words.reverse(item));
                }
            }
        }
    }
}

/// Reverses each word of `size` bytes.
fn reverse(bytes: &mut [u8], size: usize) {
    fn words<const SIZE: usize>(bytes: &mut [u8]) {
        for word in bytes.as_chunks_mut::<SIZE>().0 {
            word.reverse();
        }
    }
    match size {
        0 | 1 => {}
        2 => words::<2>(bytes),
        4 => words::<4>(bytes),
        8 => words::<8>(bytes),
        size => bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use zarrow_array::{Number, Struct};

    fn swap(endian: Value, data_type: &DataType) -> Result<Swap> {
        let configuration = [("endian".to_owned(), endian)].into_iter().collect();
        Swap::new(&CodecMetadata::new("bytes", configuration), data_type)
    }

    fn record() -> DataType {
        let field = |name: &str, number: Number| (name.into(), number.into(), [].into());
        let fields = [field("a", Number::UInt8), field("b", Number::Int16), field("c", Number::Complex64)];
        DataType::Struct(Struct::packed(fields).unwrap())
    }

    #[test]
    fn words_turn_in_place() {
        let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        Swap::Words(4).in_place(&mut bytes, 8);
        assert_eq!(bytes, [4, 3, 2, 1, 8, 7, 6, 5]);
    }

    #[test]
    fn only_foreign_fields_of_a_structure_turn() {
        let (foreign, native) =
            if cfg!(target_endian = "big") { ("little", "big") } else { ("big", "little") };
        let bytes: Vec<u8> = (0..11).collect();
        let turned = |swap: Swap| {
            let mut bytes = bytes.clone();
            swap.in_place(&mut bytes, 11);
            bytes
        };
        assert_eq!(swap(json!(native), &record()).unwrap(), Swap::None);
        let all = turned(swap(json!(foreign), &record()).unwrap());
        assert_eq!(all, [0, 2, 1, 6, 5, 4, 3, 10, 9, 8, 7]);
        let one_foreign = swap(json!([native, foreign, native]), &record()).unwrap();
        let one = turned(one_foreign.clone());
        assert_eq!(one, [0, 2, 1, 3, 4, 5, 6, 7, 8, 9, 10]);
        let rest = Swap::all(&record()).and(&swap(json!([native, foreign, native]), &record()).unwrap());
        assert_eq!(turned(rest), [0, 1, 2, 6, 5, 4, 3, 10, 9, 8, 7]);
        assert_eq!(Swap::all(&record()).and(&Swap::all(&record())), Swap::None);
        assert_eq!(Swap::Words(4).and(&Swap::Words(4)), Swap::None);
        assert_eq!(Swap::Words(4).and(&Swap::None), Swap::Words(4));
        let part = |number: Number, offset| one_foreign.part(offset, &number.into());
        assert_eq!((part(Number::Int16, 1), part(Number::Complex64, 3)), (Swap::Words(2), Swap::None));
        assert_eq!(Swap::all(&record()).part(3, &Number::Complex64.into()), Swap::Words(4));
        assert_eq!(Swap::all(&record()).part(0, &record()), Swap::all(&record()));
    }

    #[test]
    fn multi_byte_types_need_a_byte_order() {
        for number in [Number::Int8, Number::Float8E5M2, Number::ComplexFloat8E5M2] {
            assert_eq!(swap(json!(null), &number.into()).unwrap(), Swap::None);
        }
        let both = ["little", "big"].map(|order| swap(json!(order), &Number::Complex128.into()).unwrap());
        assert!(both.contains(&Swap::None) && both.contains(&Swap::Words(8)));
        assert!(swap(json!(null), &record()).is_ok());
        for endian in [json!(null), json!("middle"), json!(1), json!([]), json!(["big", "big"])] {
            assert!(swap(endian.clone(), &Number::Int16.into()).is_err(), "{endian}");
        }
        assert!(swap(json!(["big", "big"]), &record()).is_err());
    }
}
