//! `numcodecs.base64`: the standard alphabet of RFC 4648, padded, without line breaks.

use crate::codec::native::Failure;
use crate::metadata::base64::{DIGITS, digit};
use std::mem::MaybeUninit;

/// The codec's name in metadata.
pub const NAME: &str = "numcodecs.base64";

/// Bytes that `nbytes` are encoded to.
pub fn encoded_size(nbytes: usize) -> Option<usize> {
    nbytes.div_ceil(3).checked_mul(4)
}

/// Decodes `source` to the start of `destination`; returns the bytes written.
pub fn decode(source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, Failure> {
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
pub fn encode(source: &[u8], destination: &mut [MaybeUninit<u8>]) -> Result<usize, String> {
    let nbytes = encoded_size(source.len()).filter(|nbytes| *nbytes <= destination.len());
    let nbytes = nbytes.ok_or("base64 needs more memory than its bound")?;
    for (group, text) in source.chunks(3).zip(destination.as_chunks_mut::<4>().0) {
        let byte = |at: usize| usize::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (position, digit) in text.iter_mut().enumerate() {
            // One byte takes two digits, two take three, three take four.
            digit.write(if position <= group.len() {
                DIGITS[bits >> (18 - 6 * position) & 63]
            } else {
                b'='
            });
        }
    }
    Ok(nbytes)
}
