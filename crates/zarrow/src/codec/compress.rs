//! Compressing: codecs from bytes to bytes, the way that [`bytes_to_bytes`](super::bytes_to_bytes) undoes.
//!
//! 1. [`Compressor::parse`] reads what a codec was set to: what would be refused only concerns who writes.
//! 2. [`encode`] runs a chain. The first compressor reads the elements where they lie, and each writes to memory that the
//!    thread keeps.
//! 3. A checksum does not move the bytes that it is of: it is kept apart, to be written behind them.

use crate::codec::bytes_to_bytes::BytesToBytes;
use crate::codec::native::DeflateContainer;
use crate::codec::native_compress::{self as native, Blosc, Refusal};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Codecs, Scratch};
use crate::metadata::CodecMetadata;
use serde_json::Value;
use zarrow_array::allocation;

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
    /// A checksum behind the bytes.
    Crc32c,
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
            BytesToBytes::parse(metadata).ok_or_else(|| ErrorKind::UnknownCodec(metadata.name.clone()))?;
        Self::of(codec, metadata).map_err(|error| error.in_codec(codec.name()))
    }

    fn of(codec: BytesToBytes, metadata: &CodecMetadata) -> Result<Compressor> {
        let integer = |key: &str, default: i64, low: i64, high: i64| match metadata.configuration.get(key) {
            None | Some(Value::Null) => Ok(default as i32),
            Some(value) => match value.as_i64().filter(|value| (low..=high).contains(value)) {
                Some(value) => Ok(value as i32),
                None => Err(bad(format!("{key} is {value}, not in {low}..={high}"))),
            },
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
            BytesToBytes::Crc32c => Compressor::Crc32c,
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Compressor::Zstd(..) => BytesToBytes::Zstd,
            Compressor::Deflate(container, _) => BytesToBytes::Deflate(*container),
            Compressor::Blosc(_) => BytesToBytes::Blosc,
            Compressor::Lz4(_) => BytesToBytes::Lz4,
            Compressor::Bz2(_) => BytesToBytes::Bz2,
            Compressor::Crc32c => BytesToBytes::Crc32c,
        }
        .name()
    }

    /// Compresses all of `source` to the start of `scratch`; returns the bytes written.
    fn compress(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize> {
        let no_memory = || ErrorKind::from(zarrow_array::Error::OutOfMemory { nbytes: source.len() });
        let failed = |refusal| match refusal {
            Refusal::Unsupported(text) => ErrorKind::Unsupported(text),
            Refusal::OutOfMemory { nbytes } => zarrow_array::Error::OutOfMemory { nbytes }.into(),
        };
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
                native::blosc_compress(blosc, source, scratch.take(native::blosc_bound(source.len()))?)
            }
            Compressor::Lz4(acceleration) => {
                native::lz4_compress(*acceleration, source, scratch.take(native::lz4_bound(source.len())?)?)
            }
            Compressor::Bz2(level) => {
                native::bz2_compress(*level, source, scratch.take(native::bz2_bound(source.len()))?)
            }
            Compressor::Crc32c => Err("a checksum is no compressor".into()),
        };
        Ok(written.map_err(failed)?)
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
    let first = chain.iter().position(|codec| *codec != Compressor::Crc32c).unwrap_or(chain.len());
    let (before, rest) = chain.split_at(first);
    let before = sealed(before, source, Vec::new());
    let Some((compressor, rest)) = rest.split_first() else {
        return Ok(Encoded { body: source, tail: before });
    };
    let compress = |compressor: &Compressor, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs| {
        compressor.compress(source, scratch, codecs).map_err(|error| error.in_codec(compressor.name()))
    };
    let mut nbytes = match before.is_empty() {
        true => compress(compressor, source, scratch, codecs)?,
        // Rare: what is compressed has to be in one place.
        false => compress(compressor, &allocation::concatenated(&[source, &before])?, scratch, codecs)?,
    };
    let mut tail = Vec::new();
    for codec in rest {
        // SAFETY: a compressor has written the bytes up to `nbytes`.
        let body = unsafe { scratch.take(nbytes)?.assume_init_ref() };
        match codec {
            Compressor::Crc32c => tail = sealed(std::slice::from_ref(codec), body, tail),
            codec => {
                let body = allocation::concatenated(&[body, &tail])?;
                nbytes = compress(codec, &body, scratch, codecs)?;
                tail.clear();
            }
        }
    }
    // SAFETY: as above.
    let body = unsafe { scratch.take(nbytes)?.assume_init_ref() };
    Ok(Encoded { body, tail })
}

/// The tail behind `body`, and a checksum of all before it for each of `checksums` (step 3).
fn sealed(checksums: &[Compressor], body: &[u8], mut tail: Vec<u8>) -> Vec<u8> {
    for _ in checksums {
        let checksum = crc32c::crc32c_append(crc32c::crc32c(body), &tail);
        tail.extend_from_slice(&checksum.to_le_bytes());
    }
    tail
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
            let undo: Vec<BytesToBytes> = chain.iter().map(|codec| BytesToBytes::parse(codec).unwrap()).collect();
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
