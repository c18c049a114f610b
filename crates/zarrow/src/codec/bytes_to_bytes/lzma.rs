//! `numcodecs.lzma`: the formats of Python's `lzma`, by liblzma.
//!
//! | `format` | Container | Decoded with |
//! |---|---|---|
//! | 0 | either of the next two, recognised by the first bytes | settings in the container |
//! | 1 (usual) | `.xz`, concatenated streams | settings in the container |
//! | 2 | `.lzma` | settings in the container |
//! | 3 | none | `filters` |
//!
//! 1. A decoder's memory is mainly its dictionary: the window for back references. No dictionary has to be larger than
//!    the output, so a larger size is reduced if this file passes it on (formats 2 and 3). If liblzma reads the size
//!    itself (`.xz`), it gets a memory limit.
//! 2. An encoder's dictionary is likewise reduced to its input: preset 9 otherwise takes 674 MiB for any chunk.
//!
//! Sources: numcodecs 0.16, `lzma.py`; Python's `_lzmamodule.c`; liblzma 5.8, `lzma/container.h`, `lzma/filter.h`.

use super::setting::integer;
use crate::codec::decompress::is_padding;
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::Failure;
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Decoder, Encoder, Scratch, Uninit};
use crate::error::{ErrorKind, Result};
use crate::metadata::CodecMetadata;
use liblzma::stream::{
    Action, CONCATENATED, Check, Error, Filters, LzmaOptions, MatchFinder, Mode, Status, Stream,
};
use serde_json::{Value, json};

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["numcodecs.lzma"],
    parameters: &[
        ("format", ParameterType::Integer),
        ("check", ParameterType::Integer),
        ("preset", ParameterType::Integer),
        ("filters", ParameterType::List),
    ],
    defaults: |_| json!({ "format": 1, "check": -1, "preset": null, "filters": null }),
    stage: Stage::Compressor {
        decoder: |metadata| Ok(Box::new(Lzma::parse(metadata)?)),
        encoder: |metadata| Ok(Box::new(LzmaEncoder::parse(metadata)?)),
    },
    ..Definition::PLAIN
};

/// Smallest dictionary that liblzma accepts, in bytes.
const MIN_DICTIONARY: usize = 4096;
/// Memory allowed for an `.xz` decoder with any output size: the dictionary of preset 9, and its tables.
const XZ_MEMORY: u64 = 66 << 20;
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";

/// Settings for decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lzma {
    format: Format,
    filters: Vec<Filter>,
}

/// Settings for encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LzmaEncoder {
    codec: Lzma,
    preset: u32,
    check: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Auto,
    Xz,
    Alone,
    Raw,
}

/// One filter, by its number in liblzma.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Filter {
    Lzma {
        second: bool,
        options: Options,
    },
    Delta {
        distance: u8,
    },
    /// A filter for the machine code of one processor.
    Code {
        id: i64,
        start: u32,
    },
}

/// Settings of LZMA, `None` for the preset's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Options {
    preset: u32,
    dictionary: Option<u32>,
    literal_context: Option<u32>,
    literal_position: Option<u32>,
    position: Option<u32>,
    fast: Option<bool>,
    nice_length: Option<u32>,
    match_finder: Option<u32>,
    depth: Option<u32>,
}

/// Default preset of an encoder.
const PRESET: u32 = 6;
/// Levels from 0 to 9, and the flag of their slower variants.
const MAX_PRESET: i64 = 9 | 1 << 31;

impl Lzma {
    /// Parses the settings for decoding.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for an unknown format or unknown filters.
    pub fn parse(metadata: &CodecMetadata) -> Result<Lzma> {
        let format = match integer(metadata, "format", 1, 0, 3)? {
            0 => Format::Auto,
            1 => Format::Xz,
            2 => Format::Alone,
            _ => Format::Raw,
        };
        let filters = match metadata.configuration.get("filters").unwrap_or(&Value::Null) {
            Value::Null => Vec::new(),
            Value::Array(filters) if (1..=4).contains(&filters.len()) => {
                filters.iter().map(Filter::parse).collect::<Result<_>>()?
            }
            other => {
                return Err(
                    ErrorKind::BadCodec(format!("filters is {other}, expected a list of 1 to 4")).into()
                );
            }
        };
        if format == Format::Raw && filters.is_empty() {
            return Err(ErrorKind::BadCodec(
                "filters is missing, expected a list of 1 to 4 for format 3 (raw)".into(),
            )
            .into());
        }
        Ok(Lzma { format, filters })
    }
}

impl Decoder for Lzma {
    fn decode(&self, source: &[u8], destination: &mut Uninit, _: &mut Codecs) -> Result<usize, Failure> {
        let format = match self.format {
            Format::Auto if source.starts_with(XZ_MAGIC) => Format::Xz,
            Format::Auto => Format::Alone,
            format => format,
        };
        let space = destination.len();
        match format {
            Format::Auto | Format::Xz => {
                let memory = (space as u64).saturating_add(XZ_MEMORY);
                let stream = Stream::new_stream_decoder(memory, CONCATENATED).map_err(failure)?;
                run(stream, &[source], destination)
            }
            Format::Alone => {
                // Step 1: the header is a byte of properties, the dictionary, and the size.
                let Some((header, rest)) = source.split_first_chunk::<13>() else {
                    return Err(Failure::Corrupt("shorter than its header".into()));
                };
                let mut header = *header;
                if let Some(dictionary) = header[1..].first_chunk_mut::<4>() {
                    let size = u32::from_le_bytes(*dictionary) as usize;
                    *dictionary = cut(size, space).to_le_bytes();
                }
                let stream = Stream::new_lzma_decoder(u64::MAX).map_err(failure)?;
                run(stream, &[&header, rest], destination)
            }
            Format::Raw => {
                let filters = filters(&self.filters, space).map_err(failure)?;
                run(Stream::new_raw_decoder(&filters).map_err(failure)?, &[source], destination)
            }
        }
    }

    /// A match of 273 bytes takes 14 decisions of at least 0.022 bits each.
    fn max_ratio(&self) -> usize {
        1 << 13
    }
}

impl Encoder for LzmaEncoder {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, _: &mut Codecs) -> Result<usize> {
        let memory = scratch.take(LzmaEncoder::bound(source.len()))?;
        let written = self.stream(source.len()).map_err(failure);
        let written = written.and_then(|stream| run(stream, &[source], memory));
        written.map_err(|failure| failure.into_error(source.len()))
    }
}

impl LzmaEncoder {
    /// Parses the settings for encoding.
    ///
    /// # Errors
    /// As [`Lzma::parse`], and [`ErrorKind::BadCodec`] for an unknown preset or check.
    pub fn parse(metadata: &CodecMetadata) -> Result<LzmaEncoder> {
        let codec = Lzma::parse(metadata)?;
        let preset = integer(metadata, "preset", i64::from(PRESET), 0, MAX_PRESET)? as u32;
        let check = match integer(metadata, "check", -1, -1, 10)? {
            -1 => 4,
            check @ (0 | 1 | 4 | 10) => check as u8,
            check => {
                return Err(ErrorKind::BadCodec(format!("check is {check}, expected 0, 1, 4 or 10")).into());
            }
        };
        if codec.format == Format::Auto {
            return Err(ErrorKind::BadCodec("format 0 (auto) is for reading only".into()).into());
        }
        let encoder = LzmaEncoder { codec, preset, check };
        encoder
            .stream(0)
            .map_err(|error| ErrorKind::BadCodec(format!("liblzma rejects these parameters: {error}")))?;
        Ok(encoder)
    }

    /// Returns the maximum compressed size of `nbytes`: incompressible blocks are stored, but not in the older formats.
    fn bound(nbytes: usize) -> usize {
        nbytes.saturating_add(nbytes / 16).saturating_add(4096)
    }

    fn stream(&self, nbytes: usize) -> Result<Stream, Error> {
        let check = match self.check {
            0 => Check::None,
            1 => Check::Crc32,
            10 => Check::Sha256,
            _ => Check::Crc64,
        };
        let usual = Options { preset: self.preset, ..Options::default() };
        match (self.codec.format, self.codec.filters.as_slice()) {
            (Format::Raw, own) => Stream::new_raw_encoder(&filters(own, nbytes)?),
            (Format::Alone, []) => Stream::new_lzma_encoder(&usual.lzma(nbytes)?),
            (Format::Alone, [Filter::Lzma { second: false, options }]) => {
                Stream::new_lzma_encoder(&options.lzma(nbytes)?)
            }
            (Format::Alone, _) => Err(Error::Options),
            (_, []) => {
                let own = [Filter::Lzma { second: true, options: usual }];
                Stream::new_stream_encoder(&filters(&own, nbytes)?, check)
            }
            (_, own) => Stream::new_stream_encoder(&filters(own, nbytes)?, check),
        }
    }
}

impl Filter {
    fn parse(value: &Value) -> Result<Filter> {
        let bad = || ErrorKind::BadCodec(format!("{value} is not a filter of lzma"));
        let filter = CodecMetadata::new(DEFINITION.name(), value.as_object().ok_or_else(bad)?.clone());
        let number = |key: &str| match filter.configuration.get(key).unwrap_or(&Value::Null) {
            Value::Null => Ok(None),
            value => value.as_u64().and_then(|value| u32::try_from(value).ok()).map(Some).ok_or_else(bad),
        };
        let id = filter.configuration.get("id").and_then(Value::as_i64).ok_or_else(bad)?;
        Ok(match id {
            0x4000_0000_0000_0001 | 33 => Filter::Lzma {
                second: id == 33,
                options: Options {
                    preset: integer(&filter, "preset", i64::from(PRESET), 0, MAX_PRESET)? as u32,
                    dictionary: number("dict_size")?,
                    literal_context: number("lc")?,
                    literal_position: number("lp")?,
                    position: number("pb")?,
                    fast: number("mode")?.map(|mode| mode == 1),
                    nice_length: number("nice_len")?,
                    match_finder: number("mf")?,
                    depth: number("depth")?,
                },
            },
            3 => Filter::Delta { distance: (integer(&filter, "dist", 1, 1, 256)? - 1) as u8 },
            4..=11 => Filter::Code { id, start: number("start_offset")?.unwrap_or(0) },
            _ => return Err(bad().into()),
        })
    }
}

impl Options {
    /// Returns the LZMA options for an input or output of at most `nbytes` (steps 1 and 2).
    fn lzma(&self, nbytes: usize) -> Result<LzmaOptions, Error> {
        let mut lzma = LzmaOptions::new_preset(self.preset)?;
        // Dictionary sizes of the presets, which the crate does not expose.
        let usual =
            [256 << 10, 1 << 20, 2 << 20, 4 << 20, 4 << 20, 8 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20];
        let usual = usual.get((self.preset & 15) as usize).copied().ok_or(Error::Options)?;
        lzma.dict_size(cut(self.dictionary.map_or(usual, |size| size as usize), nbytes));
        let set = |value: Option<u32>,
                   lzma: &mut LzmaOptions,
                   set: fn(&mut LzmaOptions, u32) -> &mut LzmaOptions| {
            if let Some(value) = value {
                set(lzma, value);
            }
        };
        set(self.literal_context, &mut lzma, LzmaOptions::literal_context_bits);
        set(self.literal_position, &mut lzma, LzmaOptions::literal_position_bits);
        set(self.position, &mut lzma, LzmaOptions::position_bits);
        set(self.nice_length, &mut lzma, LzmaOptions::nice_len);
        set(self.depth, &mut lzma, LzmaOptions::depth);
        if let Some(fast) = self.fast {
            lzma.mode(if fast { Mode::Fast } else { Mode::Normal });
        }
        if let Some(number) = self.match_finder {
            lzma.match_finder(match number {
                0x03 => MatchFinder::HashChain3,
                0x04 => MatchFinder::HashChain4,
                0x12 => MatchFinder::BinaryTree2,
                0x13 => MatchFinder::BinaryTree3,
                0x14 => MatchFinder::BinaryTree4,
                _ => return Err(Error::Options),
            });
        }
        Ok(lzma)
    }
}

fn filters(own: &[Filter], nbytes: usize) -> Result<Filters, Error> {
    let mut filters = Filters::new();
    for filter in own {
        match filter {
            Filter::Lzma { second: false, options } => filters.lzma1(&options.lzma(nbytes)?),
            Filter::Lzma { second: true, options } => filters.lzma2(&options.lzma(nbytes)?),
            Filter::Delta { distance } => filters.delta_properties(&[*distance])?,
            Filter::Code { id, start } => {
                let start = start.to_le_bytes();
                match id {
                    4 => filters.x86_properties(&start)?,
                    5 => filters.powerpc_properties(&start)?,
                    6 => filters.ia64_properties(&start)?,
                    7 => filters.arm_properties(&start)?,
                    8 => filters.arm_thumb_properties(&start)?,
                    9 => filters.sparc_properties(&start)?,
                    10 => filters.arm64_properties(&start)?,
                    _ => filters.riscv_properties(&start)?,
                }
            }
        };
    }
    Ok(filters)
}

/// Returns a dictionary no larger than its data.
fn cut(size: usize, nbytes: usize) -> u32 {
    u32::try_from(size.min(nbytes.max(MIN_DICTIONARY))).unwrap_or(u32::MAX)
}

/// Sends `parts` through `stream` to the start of `destination`; returns the bytes written.
fn run(mut stream: Stream, parts: &[&[u8]], destination: &mut Uninit) -> Result<usize, Failure> {
    let mut written = 0;
    for (number, part) in parts.iter().enumerate() {
        let last = number + 1 == parts.len();
        let action = if last { Action::Finish } else { Action::Run };
        let mut read = 0;
        while last || read < part.len() {
            let (input, output) = (&part[read..], &mut destination[written..]);
            let full = output.is_empty();
            let before = (stream.total_in(), stream.total_out());
            let status = stream.process_uninit(input, output, action).map_err(failure)?;
            let progress = (stream.total_in() - before.0, stream.total_out() - before.1);
            read += usize::try_from(progress.0).unwrap_or(usize::MAX);
            written += usize::try_from(progress.1).unwrap_or(usize::MAX);
            match status {
                Status::StreamEnd if last && is_padding(&part[read..]) => return Ok(written),
                Status::StreamEnd => return Err(Failure::Corrupt("there are bytes after its end".into())),
                _ if progress != (0, 0) => {}
                _ if full => return Err(Failure::TooSmall),
                // The first call without progress is not an error yet.
                Status::Ok | Status::GetCheck => {}
                Status::MemNeeded => return Err(Failure::Corrupt("the stream ends too early".into())),
            }
        }
    }
    Err(Failure::Corrupt("no bytes".into()))
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Mem => Failure::OutOfMemory,
        Error::MemLimit => {
            Failure::Corrupt("its header asks for more memory than its output justifies".into())
        }
        Error::Data | Error::Format => Failure::Corrupt(error.to_string()),
        Error::Options | Error::NoCheck | Error::UnsupportedCheck | Error::Program => {
            Failure::Unsupported(error.to_string())
        }
    }
}
