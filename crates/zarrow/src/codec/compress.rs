//! Compression: bytes-to-bytes codecs, undone by [`decompress`](super::decompress).
//!
//! 1. The settings of a [`Compressor`] are parsed at the first write: wrong settings do not concern readers.
//! 2. [`encode`] runs a chain on bytes that do not change. The first compressor reads them in place, and each writes to
//!    memory that the thread keeps. [`FromBorrowed`] is for bytes that others may write to.
//! 3. A checksum at the end does not move the bytes: it is kept apart and written after them. A checksum at the start
//!    is written before a copy of the bytes.

use crate::codec::borrowed::Borrowed;
use crate::codec::bytes_to_bytes::checksum::{self, Checksum};
use crate::codec::user_codecs::UserCodec;
use crate::codec::{Codecs, Scratch};
use crate::error::{ErrorKind, Result};
use std::fmt::Debug;
use zarrow_array::allocation;

/// Encoder of a codec with its settings. Like a [`Decoder`](super::Decoder), it must have written as many bytes as it reports.
pub trait Encoder: Debug + Send + Sync {
    /// Compresses `source` to the start of `scratch`; returns the bytes written.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the encoder does not support this input; [`zarrow_array::Error::OutOfMemory`].
    fn encode(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize>;

    /// Returns whether the encoder reads each byte once, so that others may write to the source at the same time.
    fn reads_once(&self) -> bool {
        false
    }

    /// As [`encode`](Encoder::encode), for an encoder that reads each byte once.
    fn encode_borrowed(
        &self,
        _source: Borrowed<'_>,
        _scratch: &mut Scratch,
        _codecs: &mut Codecs,
    ) -> Result<usize> {
        Err(ErrorKind::Internal("a codec that reads its source twice".into()).into())
    }
}

/// A bytes-to-bytes codec with its settings.
#[derive(Debug)]
pub enum Compressor {
    /// A codec that transforms the bytes.
    Encoder {
        /// Name for error messages.
        name: &'static str,
        /// The encoder.
        encoder: Box<dyn Encoder>,
    },
    /// A checksum next to the bytes.
    Checksum(Checksum),
    /// A registered codec of a user.
    UserCodec(UserCodec),
}

/// Encoded bytes: the body, then the checksums at its end.
#[derive(Debug)]
pub struct Encoded<'a> {
    /// Everything before the checksums.
    pub body: &'a [u8],
    /// The checksums after the body.
    pub tail: Vec<u8>,
}

impl Compressor {
    fn name(&self) -> &str {
        match self {
            Compressor::Encoder { name, .. } => name,
            Compressor::Checksum(checksum) => checksum.name(),
            Compressor::UserCodec(codec) => codec.name(),
        }
    }

    /// Returns whether the codec leaves the bytes in place and only appends to them.
    fn is_tail(&self) -> bool {
        matches!(self, Compressor::Checksum(checksum) if !checksum.at_start)
    }

    /// Compresses `source` to the start of `scratch`; returns the bytes written.
    fn compress(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize> {
        let written = match self {
            Compressor::Encoder { encoder, .. } => encoder.encode(source, scratch, codecs),
            Compressor::Checksum(checksum) => before_bytes(checksum, source, scratch),
            Compressor::UserCodec(codec) => codec.encode(source, None).and_then(|encoded| {
                scratch.take(encoded.len())?.write_copy_of_slice(&encoded);
                Ok(encoded.len())
            }),
        };
        written.map_err(|error| error.in_codec(self.name()))
    }
}

/// Writes the checksum of `source`, then a copy of `source` (step 3).
fn before_bytes(checksum: &Checksum, source: &[u8], scratch: &mut Scratch) -> Result<usize> {
    let memory = scratch.take(source.len().saturating_add(checksum::NBYTES))?;
    let (sum, copy) = memory.split_at_mut(checksum::NBYTES);
    let copy = copy.write_copy_of_slice(source);
    sum.write_copy_of_slice(&checksum.of(copy, &[])?.to_le_bytes());
    Ok(source.len() + checksum::NBYTES)
}

/// Encodes `source` by `chain` (step 2) in the thread's memory; borrows the source if nothing compresses it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the input is too large for a compressor, [`zarrow_array::Error::OutOfMemory`]; with
/// the codec named.
pub fn encode<'a>(
    chain: &[Compressor],
    source: &'a [u8],
    scratch: &'a mut Scratch,
    codecs: &mut Codecs,
) -> Result<Encoded<'a>> {
    let first = chain.iter().position(|codec| !codec.is_tail()).unwrap_or(chain.len());
    let (before, rest) = chain.split_at(first);
    let before = sealed(before, source, Vec::new())?;
    let Some((compressor, rest)) = rest.split_first() else {
        return Ok(Encoded { body: source, tail: before });
    };
    let nbytes = match before.is_empty() {
        true => compressor.compress(source, scratch, codecs)?,
        // Rare: compressors need contiguous input.
        false => compressor.compress(&allocation::concatenated(&[source, &before])?, scratch, codecs)?,
    };
    encode_rest(rest, nbytes, scratch, codecs)
}

/// How a chain encodes bytes that others may write to at the same time: possible only if it reads each byte once.
/// [`Borrowed`] bytes can be encoded in no other way, so every other chain gets a copy.
pub enum FromBorrowed<'c> {
    /// Nothing is encoded: the bytes are written unchanged.
    Plain,
    /// The first codec reads the bytes, and the rest of the chain reads its output.
    Encoder(&'c dyn Encoder, &'static str, &'c [Compressor]),
}

impl<'c> FromBorrowed<'c> {
    /// Returns the variant for `chain` if it reads each byte once.
    pub fn new(chain: &'c [Compressor]) -> Option<FromBorrowed<'c>> {
        match chain {
            [] => Some(FromBorrowed::Plain),
            [Compressor::Encoder { name, encoder }, rest @ ..] if encoder.reads_once() => {
                Some(FromBorrowed::Encoder(&**encoder, name, rest))
            }
            _ => None,
        }
    }
}

/// As [`encode`], for bytes that the first codec reads once ([`FromBorrowed::Encoder`]).
pub fn encode_borrowed<'a>(
    (encoder, name, rest): (&dyn Encoder, &'static str, &[Compressor]),
    source: Borrowed<'_>,
    scratch: &'a mut Scratch,
    codecs: &mut Codecs,
) -> Result<Encoded<'a>> {
    let nbytes = encoder.encode_borrowed(source, scratch, codecs).map_err(|error| error.in_codec(name))?;
    encode_rest(rest, nbytes, scratch, codecs)
}

/// Runs the rest of a chain on the `nbytes` bytes that its first compressor has written to `scratch`.
fn encode_rest<'a>(
    rest: &[Compressor],
    mut nbytes: usize,
    scratch: &'a mut Scratch,
    codecs: &mut Codecs,
) -> Result<Encoded<'a>> {
    let mut tail = Vec::new();
    for codec in rest {
        // SAFETY: a compressor has written the bytes up to `nbytes`.
        let body = unsafe { scratch.take(nbytes)?.assume_init_ref() };
        match codec {
            codec if codec.is_tail() => tail = sealed(std::slice::from_ref(codec), body, tail)?,
            codec => {
                let body = allocation::concatenated(&[body, &tail])?;
                nbytes = codec.compress(&body, scratch, codecs)?;
                tail.clear();
            }
        }
    }
    // SAFETY: as above.
    let body = unsafe { scratch.take(nbytes)?.assume_init_ref() };
    Ok(Encoded { body, tail })
}

/// Returns `tail`, then for each of `checksums` a checksum of `body` and everything after it (step 3).
fn sealed(checksums: &[Compressor], body: &[u8], mut tail: Vec<u8>) -> Result<Vec<u8>> {
    for checksum in checksums {
        if let Compressor::Checksum(checksum) = checksum {
            let sum = checksum.of(body, &tail).map_err(|error| error.in_codec(checksum.name()))?;
            tail.extend_from_slice(&sum.to_le_bytes());
        }
    }
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::compile::bytes_to_bytes;
    use crate::codec::{BytesToBytes, Output, decode};
    use crate::metadata::CodecMetadata;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn codec(value: &Value) -> CodecMetadata {
        let configuration = value["configuration"].as_object().cloned().unwrap_or_default();
        CodecMetadata::new(value["name"].as_str().unwrap(), configuration)
    }

    fn codecs() -> Vec<Value> {
        let mut all = vec![json!({"name": "crc32c"}), json!({"name": "zstd"}), json!({"name": "blosc"})];
        for (level, checksum) in [(-5, false), (0, true), (3, true), (9, false)] {
            all.push(json!({"name": "zstd", "configuration": {"level": level, "checksum": checksum}}));
        }
        for level in [0, 1, 6, 9] {
            all.push(json!({"name": "gzip", "configuration": {"level": level}}));
            all.push(json!({"name": "numcodecs.zlib", "configuration": {"level": level}}));
        }
        for cname in ["lz4", "lz4hc", "blosclz", "zlib", "zstd"] {
            for (shuffle, typesize, blocksize) in
                [("noshuffle", 1, 0), ("shuffle", 4, 0), ("bitshuffle", 8, 512)]
            {
                let configuration = json!({
                    "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": blocksize,
                });
                all.push(json!({"name": "blosc", "configuration": configuration}));
            }
        }
        all.push(json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}));
        all.push(json!({"name": "numcodecs.bz2", "configuration": {"level": 9}}));
        for configuration in [
            json!({"preset": 1}),
            json!({"format": 2, "preset": 0}),
            json!({"check": 10, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 3}]}),
            json!({"format": 3, "filters": [{"id": 4611686018427387905u64, "lc": 0, "mf": 4, "mode": 1}]}),
        ] {
            all.push(json!({"name": "numcodecs.lzma", "configuration": configuration}));
        }
        all.push(json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 1}}));
        all.push(json!({"name": "numcodecs.base64"}));
        all.push(json!({"name": "numcodecs.crc32c", "configuration": {"location": "start"}}));
        all.push(json!({"name": "numcodecs.crc32"}));
        all.push(json!({"name": "numcodecs.adler32", "configuration": {"location": "end"}}));
        all.push(json!({"name": "numcodecs.fletcher32"}));
        all.push(
            json!({"name": "numcodecs.jenkins_lookup3", "configuration": {"initval": 7, "prefix": [1]}}),
        );
        all
    }

    proptest! {
        /// Encoding round-trips for chains of any of zarrow's codecs.
        #[test]
        fn chains_decode_to_what_was_encoded(
            chain in prop::collection::vec(prop::sample::select(codecs()), 0..4),
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..5000), prop::collection::vec(0u8..2, 0..20_000),
                (any::<u8>(), 0usize..100_000).prop_map(|(byte, count)| vec![byte; count]),
            ],
        ) {
            let chain: Vec<CodecMetadata> = chain.iter().map(codec).collect();
            let undo: Vec<BytesToBytes> = chain.iter().map(|codec| bytes_to_bytes(codec).unwrap()).collect();
            let compressors: Vec<Compressor> = undo.iter().map(|codec| codec.compressor().unwrap()).collect();
            let (mut scratch, mut codecs) = (Scratch::default(), Codecs::default());
            let encoded = encode(&compressors, &bytes, &mut scratch, &mut codecs).unwrap();
            let encoded = [encoded.body, &encoded.tail].concat();
            let mut decoded = Vec::new();
            decode(&undo, &encoded, Output::Growing(&mut decoded, bytes.len()), &mut codecs).unwrap();
            prop_assert_eq!(decoded, bytes);
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for (name, configuration) in [
            ("zstd", json!({"level": 99})),
            ("gzip", json!({"level": 10})),
            ("gzip", json!({"level": "high"})),
            ("blosc", json!({"cname": "lz5"})),
            ("blosc", json!({"shuffle": "sideways"})),
            ("blosc", json!({"clevel": 10})),
            ("blosc", json!({"cname": "snappy"})),
            ("numcodecs.bz2", json!({"level": 0})),
            ("numcodecs.lzma", json!({"preset": 10})),
            ("numcodecs.lzma", json!({"format": 3})),
            ("numcodecs.lzma", json!({"filters": [{"id": 3}]})),
            ("numcodecs.lzma", json!({"filters": [{"id": 33, "lc": 5}]})),
            ("numcodecs.shuffle", json!({"elementsize": 0})),
            ("numcodecs.shuffle", json!({"elementsize": -4})),
            ("numcodecs.adler32", json!({"location": "middle"})),
        ] {
            let metadata = codec(&json!({"name": name, "configuration": configuration}));
            let error = bytes_to_bytes(&metadata).and_then(|codec| codec.compressor()).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::BadCodec(_) | ErrorKind::Unsupported(_)),
                "{metadata:?}"
            );
            assert!(error.context().codec.is_some());
        }
    }
}
