//! Compressing: codecs from bytes to bytes, the way that [`bytes_to_bytes`](super::bytes_to_bytes) undoes.
//!
//! 1. [`Compressor::parse`] reads what a codec was set to: what would be refused only concerns who writes.
//! 2. [`encode`] runs a chain on bytes that do not change. The first compressor reads them where they lie, and each writes
//!    to memory that the thread keeps. [`FromLent`] is what runs on bytes that others may write to.
//! 3. A checksum behind its bytes does not move them: it is kept apart, to be written behind them. One before its bytes
//!    is of the copy that stands behind it.

use crate::codec::bytes_to_bytes::checksum::{self, Checksum};
use crate::codec::bytes_to_bytes::lzma::LzmaEncoder;
use crate::codec::bytes_to_bytes::setting;
use crate::codec::bytes_to_bytes::shuffle::Shuffle;
use crate::codec::bytes_to_bytes::{BytesToBytes, base64, lzma};
use crate::codec::native::DeflateContainer;
use crate::codec::native_compress::{self as native, Blosc};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Codecs, Scratch};
use crate::memory::Lent;
use crate::metadata::CodecMetadata;
use serde_json::Value;

/// A codec from bytes to bytes, with what it was set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compressor {
    /// Zstandard: the level, and whether a frame has a checksum.
    Zstd(i32, bool),
    /// Deflate in its container, with the level.
    Deflate(DeflateContainer, i32),
    /// Blosc.
    Blosc(Blosc),
    /// LZ4, with its acceleration.
    Lz4(i32),
    /// Bzip2, with its level.
    Bz2(u32),
    /// The formats of liblzma.
    Lzma(LzmaEncoder),
    /// The bytes of elements in another order.
    Shuffle(Shuffle),
    /// Text.
    Base64,
    /// A checksum beside the bytes.
    Checksum(Checksum),
}

/// Encoded bytes: the body, and checksums behind it.
#[derive(Debug)]
pub struct Encoded<'a> {
    /// All but the checksums.
    pub body: &'a [u8],
    /// The checksums behind the body.
    pub tail: Vec<u8>,
}

impl Compressor {
    /// Reads what the codec was set to (step 1).
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] where that is out of range, [`ErrorKind::Unsupported`] for a Blosc compressor that is not
    /// built in; with the codec named.
    pub fn parse(metadata: &CodecMetadata) -> Result<Compressor> {
        let codec =
            BytesToBytes::parse(metadata)?.ok_or_else(|| ErrorKind::UnknownCodec(metadata.name.clone()))?;
        let name = codec.name();
        Self::of(codec, metadata).map_err(|error| error.in_codec(name))
    }

    fn of(codec: BytesToBytes, metadata: &CodecMetadata) -> Result<Compressor> {
        let integer = |key: &str, default: i64, low: i64, high: i64| {
            setting::integer(metadata, key, default, low, high).map(|value| value as i32)
        };
        Ok(match codec {
            BytesToBytes::Zstd => {
                let checksum = matches!(metadata.configuration.get("checksum"), Some(Value::Bool(true)));
                let lowest = i64::from(zstd_safe::min_c_level());
                Compressor::Zstd(integer("level", 0, lowest, i64::from(zstd_safe::max_c_level()))?, checksum)
            }
            BytesToBytes::Deflate(container) => match integer("level", 1, -1, 9)? {
                // zlib's default.
                -1 => Compressor::Deflate(container, 6),
                level => Compressor::Deflate(container, level),
            },
            BytesToBytes::Blosc => {
                let blocksize = integer("blocksize", 0, 0, i64::from(i32::MAX))?;
                Compressor::Blosc(Blosc {
                    compressor: blosc_compressor(metadata.text("cname"))?,
                    level: integer("clevel", 5, 0, 9)?,
                    shuffle: match metadata.text("shuffle") {
                        None | Some("shuffle") => 1,
                        Some("noshuffle") => 0,
                        Some("bitshuffle") => 2,
                        Some(other) => return Err(bad(format!("shuffle is {other:?}"))),
                    },
                    // Larger than a byte can say is no type at all, for Blosc.
                    typesize: integer("typesize", 1, 1, i64::from(i32::MAX))?.unsigned_abs() as usize,
                    blocksize: blocksize.unsigned_abs() as usize,
                })
            }
            BytesToBytes::Lz4 => Compressor::Lz4(integer("acceleration", 1, 0, i64::from(i32::MAX))?.max(1)),
            BytesToBytes::Bz2 => Compressor::Bz2(integer("level", 1, 1, 9)?.unsigned_abs()),
            BytesToBytes::Lzma(_) => Compressor::Lzma(LzmaEncoder::parse(metadata)?),
            BytesToBytes::Shuffle(shuffle) => Compressor::Shuffle(shuffle),
            BytesToBytes::Base64 => Compressor::Base64,
            BytesToBytes::Checksum(checksum) => Compressor::Checksum(checksum),
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Compressor::Zstd(..) => BytesToBytes::Zstd.name(),
            Compressor::Deflate(container, _) => BytesToBytes::Deflate(*container).name(),
            Compressor::Blosc(_) => BytesToBytes::Blosc.name(),
            Compressor::Lz4(_) => BytesToBytes::Lz4.name(),
            Compressor::Bz2(_) => BytesToBytes::Bz2.name(),
            Compressor::Lzma(_) => lzma::NAME,
            Compressor::Shuffle(_) => Shuffle::NAME,
            Compressor::Base64 => base64::NAME,
            Compressor::Checksum(checksum) => checksum.name(),
        }
    }

    /// Whether it leaves the bytes where they are, and only adds to their end.
    fn is_tail(&self) -> bool {
        matches!(self, Compressor::Checksum(checksum) if !checksum.at_start)
    }

    /// Compresses all of `source` to the start of `scratch`; returns the bytes written.
    fn compress(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize> {
        let no_memory = || ErrorKind::Array(zarrow_array::Error::OutOfMemory { nbytes: source.len() });
        let failed = |text: String| ErrorKind::Unsupported(text);
        let written = match self {
            Compressor::Zstd(level, checksum) => {
                let memory = scratch.take(zstd_safe::compress_bound(source.len()))?;
                codecs.zstd_compressor().ok_or_else(no_memory)?.compress(*level, *checksum, source, memory)
            }
            Compressor::Deflate(container, level) => {
                let deflate = codecs.deflate_compressor(*level).ok_or_else(no_memory)?;
                let bound = deflate.bound(source.len());
                deflate.compress(*container, source, scratch.take(bound)?)
            }
            Compressor::Blosc(blosc) => {
                let memory = scratch.take(native::blosc_bound(source.len()))?;
                native::blosc_compress(blosc, source.into(), memory)
            }
            Compressor::Lz4(acceleration) => {
                native::lz4_compress(*acceleration, source, scratch.take(native::lz4_bound(source.len())?)?)
            }
            Compressor::Bz2(level) => {
                native::bz2_compress(*level, source, scratch.take(native::bz2_bound(source.len()))?)
            }
            Compressor::Lzma(lzma) => {
                let memory = scratch.take(LzmaEncoder::bound(source.len()))?;
                Ok(lzma.encode(source, memory).map_err(|failure| failure.into_error(source.len()))?)
            }
            Compressor::Shuffle(shuffle) => shuffle.encode(source, scratch.take(source.len())?),
            Compressor::Base64 => {
                let bound = base64::encoded_size(source.len()).unwrap_or(usize::MAX);
                base64::encode(source, scratch.take(bound)?)
            }
            Compressor::Checksum(checksum) => {
                let memory = scratch.take(source.len().saturating_add(checksum::NBYTES))?;
                let (sum, copy) = memory.split_at_mut(checksum::NBYTES);
                let copy = copy.write_copy_of_slice(source);
                sum.write_copy_of_slice(&checksum.of(copy, &[])?.to_le_bytes());
                Ok(source.len() + checksum::NBYTES)
            }
        };
        Ok(written.map_err(failed)?)
    }
}

impl Compressor {
    fn compress_named(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize> {
        self.compress(source, scratch, codecs).map_err(|error| error.in_codec(self.name()))
    }
}

fn bad(text: String) -> Error {
    ErrorKind::BadCodec(text).into()
}

/// The compressor inside Blosc, as a C string that Blosc knows.
fn blosc_compressor(name: Option<&str>) -> Result<&'static std::ffi::CStr> {
    match name {
        None | Some("lz4") => Ok(c"lz4"),
        Some("lz4hc") => Ok(c"lz4hc"),
        Some("blosclz") => Ok(c"blosclz"),
        Some("zlib") => Ok(c"zlib"),
        Some("zstd") => Ok(c"zstd"),
        Some("snappy") => Err(ErrorKind::Unsupported("Blosc with snappy".into()).into()),
        Some(other) => Err(bad(format!("cname is {other:?}"))),
    }
}

/// Encodes `source` by `chain` (step 2), with memory of the thread's; the result lies in the source where nothing
/// compresses it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where a compressor does not take so many bytes,
/// [`zarrow_array::Error::OutOfMemory`]; with the codec named.
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
        true => compressor.compress_named(source, scratch, codecs)?,
        // Rare: what is compressed has to be in one place.
        false => compressor.compress_named(&[source, &before].concat(), scratch, codecs)?,
    };
    encode_rest(rest, nbytes, scratch, codecs)
}

/// What a chain is to bytes that others may write to while they are encoded: only where it reads each of them once. There
/// is no other way to encode [`Lent`] bytes, so that every other chain gets a copy.
pub enum FromLent<'c> {
    /// Nothing is encoded: the bytes are written as they are.
    Plain,
    /// Blosc reads them, and the rest of the chain what Blosc made of them.
    Blosc(&'c Blosc, &'c [Compressor]),
}

impl<'c> FromLent<'c> {
    /// The way of `chain` for so many bytes, where it reads each once.
    pub fn of(chain: &'c [Compressor], nbytes: usize) -> Option<FromLent<'c>> {
        match chain {
            [] => Some(FromLent::Plain),
            [Compressor::Blosc(blosc), rest @ ..] if blosc.reads_once(nbytes) => {
                Some(FromLent::Blosc(blosc, rest))
            }
            _ => None,
        }
    }
}

/// As [`encode`], for bytes that `blosc` reads once ([`FromLent::Blosc`]).
///
/// # Errors
/// As [`encode`].
pub fn encode_lent<'a>(
    (blosc, rest): (&Blosc, &[Compressor]),
    source: Lent<'_>,
    scratch: &'a mut Scratch,
    codecs: &mut Codecs,
) -> Result<Encoded<'a>> {
    let memory = scratch.take(native::blosc_bound(source.nbytes()))?;
    let written = native::blosc_compress(blosc, source, memory);
    let nbytes = written
        .map_err(|text| Error::from(ErrorKind::Unsupported(text)).in_codec(BytesToBytes::Blosc.name()))?;
    encode_rest(rest, nbytes, scratch, codecs)
}

/// What is left of a chain, on the `nbytes` bytes that its first compressor has written to `scratch`.
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
                let body = [body, &tail].concat();
                nbytes = codec.compress_named(&body, scratch, codecs)?;
                tail.clear();
            }
        }
    }
    // SAFETY: as above.
    let body = unsafe { scratch.take(nbytes)?.assume_init_ref() };
    Ok(Encoded { body, tail })
}

/// The tail behind `body`, and a checksum of all before it for each of `checksums` (step 3).
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
    use crate::codec::bytes_to_bytes::{Output, decode};
    use proptest::prelude::*;
    use serde_json::json;

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
        /// What is encoded decodes to itself, for chains of any of our codecs.
        #[test]
        fn chains_decode_to_what_was_encoded(
            chain in prop::collection::vec(prop::sample::select(codecs()), 0..4),
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..5000), prop::collection::vec(0u8..2, 0..20_000),
                (any::<u8>(), 0usize..100_000).prop_map(|(byte, count)| vec![byte; count]),
            ],
        ) {
            let chain: Vec<CodecMetadata> = chain.iter().map(codec).collect();
            let compressors: Vec<Compressor> = chain.iter().map(|codec| Compressor::parse(codec).unwrap()).collect();
            let undo: Vec<BytesToBytes> = chain.iter().map(|codec| BytesToBytes::parse(codec).unwrap().unwrap()).collect();
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
            let error = Compressor::parse(&metadata).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::BadCodec(_) | ErrorKind::Unsupported(_)),
                "{metadata:?}"
            );
            assert!(error.context().codec.is_some());
        }
    }
}
