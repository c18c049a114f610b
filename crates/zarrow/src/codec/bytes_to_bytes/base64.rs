//! `numcodecs.base64`: the standard alphabet of RFC 4648, padded, without line breaks.

use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Refusal};
use crate::codec::{Codecs, Decoder, Encoder, Scratch, Uninit};
use crate::error::Result;
use base64::alphabet;
use base64::engine::{Engine, GeneralPurpose, GeneralPurposeConfig};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.base64"],
    stage: Stage::Compressor { decoder: |_| Ok(Box::new(Base64)), encoder: |_| Ok(Box::new(Base64)) },
    ..Definition::PLAIN
};

/// The bits behind the last byte do not matter.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Bytes encoded at once, and the size of their text.
const BLOCK_NBYTES: usize = 3072;
const TEXT_NBYTES: usize = BLOCK_NBYTES / 3 * 4;

#[derive(Debug)]
struct Base64;

impl Decoder for Base64 {
    fn decode(&self, source: &[u8], destination: &mut Uninit, _: &mut Codecs) -> Result<usize, Failure> {
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
fn decode(source: &[u8], destination: &mut Uninit) -> Result<usize, Failure> {
    let corrupt = || Failure::Corrupt("not valid base64".into());
    let padding = source.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let nbytes = (source.len() / 4 * 3).checked_sub(padding).ok_or_else(corrupt)?;
    let destination = destination.get_mut(..nbytes).ok_or(Failure::TooSmall)?;
    let mut block = [0; BLOCK_NBYTES];
    let mut places = destination.chunks_mut(BLOCK_NBYTES);
    for text in source.chunks(TEXT_NBYTES) {
        let decoded = ENGINE.decode_slice(text, &mut block).map_err(|_| corrupt())?;
        // Padding inside of the text would leave a place partly unwritten.
        let place = places.next().filter(|place| place.len() == decoded).ok_or_else(corrupt)?;
        place.write_copy_of_slice(&block[..decoded]);
    }
    Ok(nbytes)
}

/// Encodes `source` to the start of `destination`; returns the bytes written.
fn encode(source: &[u8], destination: &mut Uninit) -> Result<usize, Refusal> {
    let too_small = "base64 needs more memory than its bound";
    let nbytes = encoded_size(source.len()).ok_or(too_small)?;
    let destination = destination.get_mut(..nbytes).ok_or(too_small)?;
    let mut text = [0; TEXT_NBYTES];
    for (bytes, place) in source.chunks(BLOCK_NBYTES).zip(destination.chunks_mut(TEXT_NBYTES)) {
        ENGINE.encode_slice(bytes, &mut text).map_err(|_| too_small)?;
        place.write_copy_of_slice(&text[..place.len()]);
    }
    Ok(nbytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    fn encoded(bytes: &[u8]) -> Vec<u8> {
        let mut text = Scratch::default();
        let nbytes = Base64.encode(bytes, &mut text, &mut Codecs::default()).unwrap();
        let text = text.take(nbytes).unwrap();
        // SAFETY: the encoder wrote these bytes.
        unsafe { text.assume_init_ref() }.to_vec()
    }

    fn decoded(text: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut bytes = [MaybeUninit::new(0); 3 * BLOCK_NBYTES];
        let nbytes = decode(text, &mut bytes)?;
        // SAFETY: all bytes were initialized from the start.
        Ok(unsafe { bytes[..nbytes].assume_init_ref() }.to_vec())
    }

    #[test]
    fn blocks_round_trip() {
        for nbytes in
            (0..9).chain(BLOCK_NBYTES - 2..BLOCK_NBYTES + 3).chain(2 * BLOCK_NBYTES..2 * BLOCK_NBYTES + 3)
        {
            let bytes: Vec<u8> = (0..nbytes).map(|at| (at * 7 % 251) as u8).collect();
            let text = encoded(&bytes);
            assert_eq!(text.len(), encoded_size(nbytes).unwrap());
            assert_eq!(decoded(&text).unwrap(), bytes, "{nbytes}");
        }
        assert_eq!(encoded(b"foob"), b"Zm9vYg==");
    }

    #[test]
    fn padding_inside_of_the_text_is_refused() {
        for nbytes in [1, BLOCK_NBYTES - 1, BLOCK_NBYTES - 2] {
            let text = [encoded(&vec![7; nbytes]), b"AAAA".to_vec()].concat();
            assert!(matches!(decoded(&text), Err(Failure::Corrupt(_))), "{nbytes}");
        }
        for text in [&b"Z"[..], b"Zg", b"Zg=", b"Zm 9", b"Zm9-", b"Zg=v", b"===="] {
            assert!(matches!(decoded(text), Err(Failure::Corrupt(_))), "{text:?}");
        }
        assert_eq!(decoded(b"Zh==").unwrap(), b"f");
    }
}
