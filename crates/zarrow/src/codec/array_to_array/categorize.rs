//! `numcodecs.categorize`: words as numbers, each its word's position in a list, counted from 1.
//!
//! A word missing from the list is stored as 0, and read as an empty word. A number without a word is read as one, too.
//!
//! Source: numcodecs `Categorize`, for strings of any length (`|O`) and of a fixed length (`U`).

use super::element::{self, Element, Wide, numbers, room, with_element};
use super::parameters::{Parameters, bad};
use super::{Filter, Words};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::codec::variable_chunk::{VariableChunk, encode_variable};
use crate::codec::{ChunkElements, Decoded, Swap};
use crate::error::{ErrorKind, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use zarrow_array::{DataType, Number};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.categorize"],
    parameters: &[
        ("labels", ParameterType::List),
        ("dtype", ParameterType::DecodedType),
        ("astype", ParameterType::StoredType),
    ],
    defaults: |_| json!({ "astype": "|u1" }),
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

/// The words and the type of the numbers.
#[derive(Debug)]
struct Categorize {
    /// Bytes of each word: UTF-8, or native-endian UTF-32 without padding.
    words: Vec<Vec<u8>>,
    /// Bytes of an element if all have the same size.
    padded: Option<usize>,
    stored: Number,
}

/// Parses the parameters.
///
/// # Errors
/// [`ErrorKind::BadCodec`] for elements other than text, and for `labels` that are not a list of words.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    let refused = || parameters.wrong("labels", "a list of words");
    let labels = parameters.get("labels").and_then(Value::as_array).ok_or_else(refused)?;
    let labels: Vec<&str> = labels.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(refused)?;
    let (padded, words) = match parameters.data_type {
        DataType::String => (None, labels.iter().map(|word| word.as_bytes().to_vec()).collect()),
        DataType::FixedLengthUtf32 { .. } => {
            let points = |word: &&str| {
                word.trim_end_matches('\0').chars().flat_map(|point| u32::from(point).to_ne_bytes()).collect()
            };
            (parameters.data_type.item_size(), labels.iter().map(points).collect())
        }
        other => return Err(bad(format!("dtype is {other}, expected strings"))),
    };
    let stored = parameters.number("astype")?.unwrap_or(Number::UInt8);
    Ok(Filter::Words(Box::new(Categorize { words, padded, stored }), stored.into()))
}

impl Categorize {
    /// Returns the numbers of these words.
    ///
    /// # Errors
    /// [`ErrorKind::BadValue`] if a word's number does not fit the type; [`zarrow_array::Error::OutOfMemory`].
    fn numbers<'w>(&self, words: impl ExactSizeIterator<Item = &'w [u8]>) -> Result<Vec<u8>> {
        // Of equal words the last one wins, as in numcodecs.
        let places: HashMap<&[u8], usize> = self.words.iter().map(Vec::as_slice).zip(1..).collect();
        let made = with_element!(self.stored, T => {
            let mut stored = room(words.len(), T::SIZE)?;
            for (item, word) in stored.chunks_exact_mut(T::SIZE).zip(words) {
                let wide = Wide::Integer(places.get(word).map_or(0, |place| *place as i128));
                let number = T::cast(wide);
                if number.wide().to_f64() != wide.to_f64() {
                    let text = format!("{} has fewer numbers than there are labels", self.stored.names().zarr);
                    return Err(ErrorKind::BadValue(text).into());
                }
                number.write(item);
            }
            stored
        });
        made.ok_or_else(element::not_computable)
    }
}

impl Words for Categorize {
    fn encode(&self, words: ChunkElements<'_>) -> Result<Vec<u8>> {
        if let ChunkElements::Variable(words) = &words {
            return self.numbers(words.iter().copied());
        }
        let word = |item: &'_ [u8]| {
            let points = item.as_chunks::<4>().0;
            points.iter().rposition(|point| *point != [0; 4]).map_or(0, |last| 4 * (last + 1))
        };
        let item_size = self.padded.unwrap_or(1).max(1);
        self.numbers(words.into_fixed()?.chunks_exact(item_size).map(|item| &item[..word(item)]))
    }

    fn decode(&self, stored: &[u8], limit: usize) -> Result<Decoded> {
        let places: Vec<usize> = with_element!(self.stored, T => numbers::<T>(stored).map(place).collect())
            .ok_or_else(element::not_computable)?;
        let word = |place: &usize| {
            place.checked_sub(1).and_then(|at| self.words.get(at)).map_or(&[][..], |word| word)
        };
        let Some(item_size) = self.padded else {
            let nbytes = places.iter().fold(0usize, |sum, place| sum.saturating_add(word(place).len()));
            if nbytes > limit {
                let (what, actual) = ("the decoded size", nbytes as u64);
                return Err(ErrorKind::Limit { what, actual, limit: limit as u64 }.into());
            }
            let words: Vec<&[u8]> = places.iter().map(word).collect();
            let chunk = VariableChunk::parse(encode_variable(&words)?, words.len())?;
            return Ok(Decoded::Variable(Arc::new(chunk)));
        };
        let mut padded = room(places.len(), item_size)?;
        for (item, place) in padded.chunks_exact_mut(item_size.max(1)).zip(&places) {
            item.iter_mut().zip(word(place)).for_each(|(byte, of_word)| *byte = *of_word);
        }
        Ok(Decoded::Fixed { bytes: padded, swap: Swap::None })
    }
}

/// Converts a number to a position in the list; 0 if it is not a valid position.
fn place<T: Element>(number: T) -> usize {
    match number.wide() {
        Wide::Integer(integer) => usize::try_from(integer).unwrap_or(0),
        Wide::Real(real) if real.fract() == 0.0 && real > 0.0 => real as usize,
        Wide::Real(_) => 0,
    }
}
