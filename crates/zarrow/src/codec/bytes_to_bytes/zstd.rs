//! `zstd`: one or more concatenated Zstandard frames.
//!
//! Old metadata of numcodecs lack the parameter `checksum`. Any reader accepts frames with a checksum, so frames get
//! one if the metadata leave it open.
//!
//! Source: RFC 8878; zarr-extensions `zstd`; numcodecs `Zstd`.

use super::setting::integer;
use crate::codec::decompress::guess;
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Refusal};
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Decoder, Encoder, Scratch, Uninit};
use crate::error::Result;
use crate::metadata::{CodecMetadata, NumcodecsForm};
use serde_json::json;

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
    fn decode(&self, source: &[u8], destination: &mut Uninit, codecs: &mut Codecs) -> Result<usize, Failure> {
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
