//! `numcodecs.pcodec`: numbers as a standalone pco file.
//!
//! 1. This file reads the head of a pco file: the magic bytes, the version, a number type and a hint of the count,
//!    which is not trusted.
//! 2. Chunks follow, each after a byte for its type and its count of numbers. A byte of 0 ends the file. Together they
//!    must have as many numbers as the metadata require.
//! 3. pco's allocations depend on a dictionary and a window of earlier numbers. In a regular file neither is larger
//!    than the chunk; files with larger ones are refused.
//! 4. pco aborts the process if it cannot allocate. Therefore as much memory as it may take is allocated and freed
//!    first: a check without a guarantee.
//!
//! Source: the format of pco 1, `standalone` in its documentation; numcodecs `PCodec`.

use crate::codec::chain::ArrayToBytes;
use crate::codec::definition::{Definition, Stage};
use crate::codec::number_type::with_type;
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::codec::{ChunkElements, Codecs, EncodedChunk, Uninit};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, NumcodecsForm};
use pco::metadata::DeltaEncoding;
use pco::wrapped::FileDecompressor;
use pco::{ChunkConfig, DeltaSpec, FULL_BATCH_N, ModeSpec, PagingSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};
use zarrow_array::{DataType, Number, allocation};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &[NAME],
    parameters: &[
        ("level", ParameterType::Integer),
        ("mode_spec", ParameterType::Text),
        ("delta_spec", ParameterType::Text),
        ("paging_spec", ParameterType::Text),
        ("delta_encoding_order", ParameterType::Integer),
        ("equal_pages_up_to", ParameterType::Integer),
    ],
    // numcodecs from 0.17 on writes "no_op" and still reads "none", which earlier versions write: both read "none".
    numcodecs: Some(NumcodecsForm {
        read: |configuration, _, _| {
            if let Some(delta) = configuration.get_mut("delta_spec").filter(|delta| **delta == "no_op") {
                *delta = "none".into();
            }
            Ok(false)
        },
        ..NumcodecsForm::SAME
    }),
    stage: Stage::Serializer(|metadata, layout| {
        layout.only_if(layout.has_fixed_elements())?;
        Ok(Box::new(Pcodec::parse(metadata, layout.data_type)?))
    }),
    ..Definition::PLAIN
};

/// The name in metadata.
const NAME: &str = "numcodecs.pcodec";
const MAGIC: &[u8] = b"pco!";
/// Newest version of the head.
const VERSION: u8 = 3;
/// Upper bound of pco's memory per encoded byte: 11 bytes were measured.
const ENCODING: usize = 16;
/// Upper bound of the bytes of its tables, for encoding and for decoding.
const TABLES: usize = 1 << 20;
/// The mode with a dictionary, which states its own length.
const DICTIONARY: u32 = 4;

/// The configuration, and the type of the numbers.
#[derive(Debug)]
struct Pcodec {
    number: Number,
    config: ChunkConfig,
}

/// Runs `$body` with `$type` standing for the Rust type of `$number`; gives `None` for a number type that pco lacks.
macro_rules! with_number {
    ($number:expr, $type:ident => $body:expr) => {
        with_type!($number, $type => $body;
            Int16 i16, Int32 i32, Int64 i64,
            UInt16 u16, UInt32 u32, UInt64 u64,
            Float16 half::f16, Float32 f32, Float64 f64
        )
    };
}

fn corrupt(text: impl Into<String>) -> Error {
    Error::from(ErrorKind::Corrupt(text.into())).in_codec(NAME)
}

impl Pcodec {
    /// Parses the configuration.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`], [`ErrorKind::Unsupported`] for types that pco lacks.
    fn parse(metadata: &CodecMetadata, data_type: &DataType) -> Result<Pcodec> {
        let wrong = |key: &str, expected: &str| wrong_parameter(&metadata.configuration, key, expected);
        let number =
            data_type.as_number().filter(|number| with_number!(*number, T => size_of::<T>()).is_some());
        let number = number.ok_or_else(|| ErrorKind::Unsupported(format!("pcodec of {data_type}")))?;
        let get = |key: &str| metadata.configuration.get(key).filter(|value| !value.is_null());
        let integer = |key: &str, default: usize, most: usize| match get(key) {
            None => Ok(default),
            Some(value) => value
                .as_u64()
                .and_then(|value| usize::try_from(value).ok())
                .filter(|value| *value <= most)
                .ok_or_else(|| wrong(key, &format!("an integer from 0 to {most}"))),
        };
        let order = get("delta_encoding_order").map(|_| integer("delta_encoding_order", 0, 7)).transpose()?;
        let text = |key: &str| get(key).map(|value| value.as_str().unwrap_or_default());
        let mode = match text("mode_spec") {
            None | Some("auto") => ModeSpec::Auto,
            Some("classic") => ModeSpec::Classic,
            Some(_) => return Err(wrong("mode_spec", "\"auto\" or \"classic\"")),
        };
        let delta = match (text("delta_spec"), order) {
            (None | Some("auto"), None) => DeltaSpec::Auto,
            (None | Some("auto" | "try_consecutive"), order) => DeltaSpec::TryConsecutive(order.unwrap_or(0)),
            (Some("none"), None) => DeltaSpec::NoOp,
            (Some("try_lookback"), None) => DeltaSpec::TryLookback,
            (Some("none" | "try_lookback"), Some(_)) => {
                return Err(wrong("delta_encoding_order", "no value with this delta_spec"));
            }
            (Some(_), _) => {
                let known = "\"auto\", \"no_op\", \"none\", \"try_consecutive\" or \"try_lookback\"";
                return Err(wrong("delta_spec", known));
            }
        };
        if text("paging_spec").is_some_and(|paging| paging != "equal_pages_up_to") {
            return Err(wrong("paging_spec", "\"equal_pages_up_to\""));
        }
        let page = integer("equal_pages_up_to", pco::DEFAULT_MAX_PAGE_N, 1 << 24)?.max(1);
        let config = ChunkConfig::default()
            .with_compression_level(integer("level", 8, 12)?)
            .with_mode_spec(mode)
            .with_delta_spec(delta)
            .with_paging_spec(PagingSpec::EqualPagesUpTo(page));
        Ok(Pcodec { number, config })
    }
}

impl ArrayToBytes for Pcodec {
    fn most_encoded(&self, chunk: &EncodedChunk<'_>) -> usize {
        // 64 KiB cover the heads of chunks with few numbers.
        chunk.nbytes.saturating_mul(2).saturating_add(64 << 10)
    }

    fn encode(&self, elements: ChunkElements<'_>, _: &[u64], _: &mut Codecs) -> Result<Vec<u8>> {
        let elements = elements.into_fixed()?;
        let failed = |text: String| Error::from(ErrorKind::Unsupported(text)).in_codec(NAME);
        let encoded = with_number!(self.number, T => {
            let (items, nbytes) = (elements.as_chunks::<{ size_of::<T>() }>().0, elements.len());
            let mut numbers: Vec<T> = Vec::new();
            numbers.try_reserve_exact(items.len()).map_err(|_| zarrow_array::Error::OutOfMemory { nbytes })?;
            ask(nbytes.saturating_mul(ENCODING))?;
            numbers.extend(items.iter().map(|item| T::from_ne_bytes(*item)));
            catch_unwind(AssertUnwindSafe(|| pco::standalone::simple_compress(&numbers, &self.config)))
        });
        match encoded {
            Some(Ok(Ok(bytes))) => Ok(bytes),
            Some(Ok(Err(error))) => Err(failed(error.to_string())),
            _ => Err(failed("the encoder panicked".into())),
        }
    }

    fn decode_whole(&self, file: &[u8], chunk: &EncodedChunk<'_>, memory: &mut Uninit) -> Result<()> {
        chunk.limits.check_ratio(chunk.nbytes, file.len())?;
        let decoded = with_number!(self.number, T => catch_unwind(AssertUnwindSafe(|| decode::<T, { size_of::<T>() }>(file, memory, T::to_ne_bytes))));
        decoded.and_then(std::result::Result::ok).unwrap_or_else(|| Err(corrupt("the decoder panicked")))
    }
}

/// Checks step 4, for this many bytes besides pco's tables.
fn ask(nbytes: usize) -> Result<()> {
    drop(std::hint::black_box(allocation::with_capacity::<u8>(nbytes.saturating_add(TABLES))?));
    Ok(())
}

/// Returns the bytes after the head of a file (step 1).
fn behind_head(file: &[u8]) -> Option<&[u8]> {
    let rest = file.strip_prefix(MAGIC)?;
    let (version, versioned) = rest.split_first()?;
    let hinted = match *version {
        // The first two versions have no hint, and their version byte is the version of the format.
        0 | 1 => return Some(rest),
        2 => versioned,
        VERSION => versioned.split_first()?.1,
        _ => return None,
    };
    // Six bits hold the number of further bits of the hint, minus one.
    let bits = 6 + 1 + usize::from(hinted.first()? & 63);
    hinted.get(bits.div_ceil(8)..)
}

/// Checks steps 2 and 3.
fn decode<T: pco::data_types::Number + Default, const SIZE: usize>(
    file: &[u8],
    memory: &mut Uninit,
    to_bytes: fn(T) -> [u8; SIZE],
) -> Result<()> {
    let failed = |error: pco::errors::PcoError| corrupt(error.message);
    let wrong_size = |expected: usize, actual: usize| {
        let kind = ErrorKind::WrongSize { expected: expected as u64, actual: actual as u64 };
        Error::from(kind).in_codec(NAME)
    };
    let rest = behind_head(file).ok_or_else(|| corrupt("not a pco file: wrong magic bytes"))?;
    let (format, mut rest) = FileDecompressor::new(rest).map_err(failed)?;
    let (nbytes, mut places) = (memory.len(), memory.as_chunks_mut::<SIZE>().0);
    let mut batch = [T::default(); FULL_BATCH_N];
    loop {
        let (type_byte, behind) = rest.split_first().ok_or_else(|| corrupt("the file ends too early"))?;
        if *type_byte == 0 {
            return match (places.len(), behind.len()) {
                (0, 0) => Ok(()),
                (0, _) => Err(corrupt("there are bytes after its end")),
                (missing, _) => Err(wrong_size(nbytes, nbytes - missing * SIZE)),
            };
        }
        if *type_byte != T::NUMBER_TYPE_BYTE {
            return Err(corrupt("its numbers are not of the array's type"));
        }
        let (count, chunk) = behind.split_first_chunk::<3>().ok_or_else(|| corrupt("ends inside a chunk"))?;
        let count = u32::from_le_bytes([count[0], count[1], count[2], 0]) as usize + 1;
        if count > places.len() {
            return Err(wrong_size(nbytes, nbytes + (count - places.len()) * SIZE));
        }
        // Four bits of mode, then the 25 bits that count the words of a dictionary.
        let mode = chunk.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let words = if mode & 15 == DICTIONARY { (mode >> 4 & ((1 << 25) - 1)) as usize } else { 0 };
        if words > count {
            return Err(corrupt("its dictionary has more words than the chunk has numbers"));
        }
        // Stored words and decoded words.
        ask(words * 2 * size_of::<u64>())?;
        let (mut chunk, behind) = format.chunk_decompressor::<T, _>(chunk).map_err(failed)?;
        if let DeltaEncoding::Lookback { config, .. } = &chunk.meta().delta_encoding {
            let window = 1usize << config.window_n_log;
            if window > 2 * count.next_power_of_two().max(FULL_BATCH_N) {
                return Err(corrupt("its window is larger than the chunk"));
            }
            ask(window * 2 * size_of::<u64>())?;
        }
        let mut page = chunk.page_decompressor(behind, count).map_err(failed)?;
        let (now, later) = places.split_at_mut(count);
        for places in now.chunks_mut(FULL_BATCH_N) {
            page.read(&mut batch).map_err(failed)?;
            for (place, number) in places.iter_mut().zip(batch) {
                place.write_copy_of_slice(&to_bytes(number));
            }
        }
        (places, rest) = (later, page.into_src());
    }
}
