//! `zstd`: one or more concatenated Zstandard frames.
//!
//! Old metadata of numcodecs lack the parameter `checksum`. Any reader accepts frames with a checksum, so frames get
//! one if the metadata leave it open.
//!
//! Source: RFC 8878; zarr-extensions `zstd`; numcodecs `Zstd`.

use super::setting::integer;
use super::{Decoder, Encoder, guess};
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Refusal, Written};
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Scratch};
use crate::error::Result;
use crate::metadata::{CodecMetadata, NumcodecsForm};
use serde_json::json;
use std::mem::MaybeUninit;
use zstd_safe::CParameter;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["zstd", "numcodecs.zstd"],
    parameters: &[("level", ParameterType::Integer), ("checksum", ParameterType::Bool)],
    defaults: |_| json!({ "level": 3, "checksum": true }),
    numcodecs: Some(NumcodecsForm {
        read: |configuration, _, _| {
            configuration.entry("checksum").or_insert(json!(true));
            Ok(true)
        },
        write: |configuration, _| {
            // tensorstore refuses the parameter, and a frame's header says whether it has a checksum.
            configuration.retain(|name, value| name != "checksum" || *value != json!(true));
            Some(())
        },
    }),
    stage: Stage::Compressor {
        decoder: |_| Ok(Box::new(Frames)),
        encoder: |metadata| Ok(Box::new(Settings::parse(metadata)?)),
    },
    ..Definition::PLAIN
};

/// Decoder of the frames.
#[derive(Debug)]
struct Frames;

impl Decoder for Frames {
    fn decode(
        &self,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
        codecs: &mut Codecs,
    ) -> Result<usize, Failure> {
        codecs.zstd().ok_or(Failure::OutOfMemory)?.decompress(source, destination)
    }

    /// A repeated byte: blocks of 128 KiB in 4 bytes.
    fn max_ratio(&self) -> usize {
        1 << 16
    }

    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        // Size in the first frame's header, if present.
        let says = zstd_safe::get_frame_content_size(source).ok().flatten();
        Ok(guess(source, says.and_then(|nbytes| usize::try_from(nbytes).ok())))
    }
}

/// Settings for writing frames.
#[derive(Debug)]
struct Settings {
    level: i32,
    checksum: bool,
}

impl Settings {
    fn parse(metadata: &CodecMetadata) -> Result<Settings> {
        let (lowest, highest) = (zstd_safe::min_c_level().into(), zstd_safe::max_c_level().into());
        let level = integer(metadata, "level", 0, lowest, highest)? as i32;
        Ok(Settings { level, checksum: metadata.configuration.get("checksum") == Some(&json!(true)) })
    }
}

impl Encoder for Settings {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize> {
        let memory = scratch.take(zstd_safe::compress_bound(source.len()))?;
        let compressor = codecs.zstd_compressor().ok_or(Refusal::OutOfMemory { nbytes: source.len() })?;
        Ok(compressor.compress(self.level, self.checksum, source, memory)?)
    }
}

/// `ZSTD_error_memory_allocation`, as zstd returns it: the negated number.
const NO_MEMORY: usize = 64usize.wrapping_neg();

/// `ZSTD_error_dstSize_tooSmall`, likewise.
const TOO_SMALL: usize = 70usize.wrapping_neg();

/// A zstd decompressor; its tables are reused from chunk to chunk.
pub struct ZstdDecompressor(zstd_safe::DCtx<'static>);

/// Memory for zstd to write to.
struct Destination<'a>(&'a mut [MaybeUninit<u8>]);

// SAFETY: the pointer and the capacity are from one exclusive slice; `as_slice` claims nothing initialised.
unsafe impl zstd_safe::WriteBuf for Destination<'_> {
    fn as_slice(&self) -> &[u8] {
        &[]
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn filled_until(&mut self, _count: usize) {}
}

impl ZstdDecompressor {
    /// Creates a context; `None` if out of memory.
    pub fn new() -> Option<ZstdDecompressor> {
        zstd_safe::DCtx::try_create().map(ZstdDecompressor)
    }

    /// Returns the bytes of its tables.
    pub fn nbytes(&self) -> usize {
        self.0.sizeof()
    }

    /// Decompresses every frame of `source` to the start of `destination`.
    pub fn decompress(
        &mut self,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
    ) -> Result<usize, Failure> {
        match self.0.decompress(&mut Destination(destination), source) {
            Ok(written) => Ok(written),
            Err(TOO_SMALL) => Err(Failure::TooSmall),
            Err(NO_MEMORY) => Err(Failure::OutOfMemory),
            Err(code) => Err(Failure::corrupt(zstd_safe::get_error_name(code))),
        }
    }
}

/// A zstd compressor; its tables are reused from chunk to chunk.
pub struct ZstdCompressor(zstd_safe::CCtx<'static>);

impl ZstdCompressor {
    /// Creates a context; `None` if out of memory.
    pub fn new() -> Option<ZstdCompressor> {
        zstd_safe::CCtx::try_create().map(ZstdCompressor)
    }

    /// Returns the bytes of its tables.
    pub fn nbytes(&self) -> usize {
        self.0.sizeof()
    }

    /// Compresses `source` to one frame with its size in the header, and with a checksum if requested.
    pub fn compress(
        &mut self,
        level: i32,
        checksum: bool,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
    ) -> Written {
        let failed = |code| match code {
            NO_MEMORY => Refusal::OutOfMemory { nbytes: source.len() },
            code => zstd_safe::get_error_name(code).into(),
        };
        self.0.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
        self.0.set_parameter(CParameter::ChecksumFlag(checksum)).map_err(failed)?;
        self.0.compress2(&mut Destination(destination), source).map_err(failed)
    }

    /// Compresses `source` to one frame, as `ZSTD_compress` does; `None` if `destination` is too small.
    ///
    /// # Errors
    /// [`Refusal::OutOfMemory`].
    pub fn compress_within(
        &mut self,
        level: i32,
        source: &[u8],
        destination: &mut [MaybeUninit<u8>],
    ) -> Result<Option<usize>, Refusal> {
        match self.0.compress(&mut Destination(destination), source, level) {
            Ok(written) => Ok(Some(written)),
            Err(TOO_SMALL) => Ok(None),
            Err(NO_MEMORY) => Err(Refusal::OutOfMemory { nbytes: source.len() }),
            Err(code) => Err(zstd_safe::get_error_name(code).into()),
        }
    }
}
