//! `numcodecs.base64`: the standard alphabet of RFC 4648, padded, without line breaks.

use super::{Decoder, Encoder};
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Refusal};
use crate::codec::{Codecs, Scratch};
use crate::error::Result;
use crate::metadata::base64::{DIGITS, digit};
use std::mem::MaybeUninit;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.base64"],
    stage: Stage::Compressor { decoder: |_| Ok(Box::new(Base64)), encoder: |_| Ok(Box::new(Base64)) },
    ..Definition::PLAIN
};

#[derive(Debug)]
struct Base64;

impl Decoder for Base64 {
    fn decode(
        &self,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
        _: &mut Codecs,
    ) -> Result<usize, Failure> {
        decode(source, destination)
    }

    fn max_ratio(&self) -> usize {
        1
    }

    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        Ok(source.len())
    }

    fn encoded_size(&self, nbytes: usize) -> Option<usize> {
        encoded_size(nbytes)
    }
}

impl Encoder for Base64 {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, _: &mut Codecs) -> Result<usize> {
        let memory = scratch.take(encoded_size(source.len()).unwrap_or(usize::MAX))?;
        Ok(encode(source, memory)?)
    }
}

/// Returns the encoded size of `nbytes` bytes.
fn encoded_size(nbytes: usize) -> Option<usize> {
    nbytes.div_ceil(3).checked_mul(4)
}

/// Decodes `source` to the start of `destination`; returns the bytes written.
fn decode(source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, Failure> {
    let corrupt = || Failure::Corrupt("not valid base64".into());
    let (groups, []) = source.as_chunks::<4>() else { return Err(corrupt()) };
    let padding = source.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let nbytes = groups.len() * 3 - padding;
    let destination = destination.get_mut(..nbytes).ok_or(Failure::TooSmall)?;
    let count = groups.len();
    for (number, (group, bytes)) in groups.iter().zip(destination.chunks_mut(3)).enumerate() {
        let digits = if number + 1 == count { 4 - padding } else { 4 };
        let mut bits = 0;
        for (position, byte) in group.iter().enumerate() {
            let digit = if position < digits { digit(*byte).ok_or_else(corrupt)? } else { 0 };
            bits = bits << 6 | digit;
        }
        for (byte, decoded) in bytes.iter_mut().zip(&bits.to_be_bytes()[1..]) {
            byte.write(*decoded);
        }
    }
    Ok(nbytes)
}

/// Encodes `source` to the start of `destination`; returns the bytes written.
fn encode(source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, Refusal> {
    let nbytes = encoded_size(source.len()).filter(|nbytes| *nbytes <= destination.len());
    let nbytes = nbytes.ok_or("base64 needs more memory than its bound")?;
    for (group, text) in source.chunks(3).zip(destination.as_chunks_mut::<4>().0) {
        let byte = |at: usize| usize::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (position, digit) in text.iter_mut().enumerate() {
            // One byte takes two digits, two bytes take three, three bytes take four.
            digit.write(if position <= group.len() {
                DIGITS[bits >> (18 - 6 * position) & 63]
            } else {
                b'='
            });
        }
    }
    Ok(nbytes)
}
