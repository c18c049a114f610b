//! `gzip` and `zlib`: deflate, in one of two containers.
//!
//! Zero padding may follow the data. A gzip file may have several members, each followed by padding.
//!
//! Source: RFC 1950 to 1952; Zarr core 3.1, `gzip` codec; numcodecs `Zlib`.

use super::libdeflate::DeflateContainer;
use super::setting::integer;
use crate::codec::decompress::{guess, is_padding};
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Refusal};
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Decoder, Encoder, Scratch, Uninit};
use crate::error::Result;
use crate::metadata::{CodecMetadata, NumcodecsForm};
use serde_json::json;

/// Deflate in a gzip container.
pub const GZIP: Definition = Definition {
    names: &["gzip", "numcodecs.gzip"],
    parameters: &[("level", ParameterType::Integer)],
    defaults: |_| json!({ "level": 5 }),
    numcodecs: Some(NumcodecsForm::SAME),
    stage: Stage::Compressor {
        decoder: |_| Ok(Box::new(DeflateContainer::Gzip)),
        encoder: |metadata| Ok(Box::new(Settings::parse(DeflateContainer::Gzip, metadata)?)),
    },
    ..Definition::PLAIN
};

/// Deflate in a zlib container.
pub const ZLIB: Definition = Definition {
    names: &["zlib", "numcodecs.zlib"],
    parameters: &[("level", ParameterType::Integer)],
    defaults: |_| json!({ "level": 1 }),
    stage: Stage::Compressor {
        decoder: |_| Ok(Box::new(DeflateContainer::Zlib)),
        encoder: |metadata| Ok(Box::new(Settings::parse(DeflateContainer::Zlib, metadata)?)),
    },
    ..Definition::PLAIN
};

impl Decoder for DeflateContainer {
    fn decode(&self, source: &[u8], destination: &mut Uninit, codecs: &mut Codecs) -> Result<usize, Failure> {
        let deflate = codecs.deflate().ok_or(Failure::OutOfMemory)?;
        let (mut read, mut written) = deflate.decompress(*self, source, destination)?;
        while !is_padding(&source[read..]) {
            if *self == DeflateContainer::Zlib {
                return Err(Failure::corrupt("there are bytes after its end"));
            }
            read += source[read..].iter().take_while(|byte| **byte == 0).count();
            let (more_read, more) =
                deflate.decompress(*self, &source[read..], &mut destination[written..])?;
            (read, written) = (read + more_read, written + more);
        }
        Ok(written)
    }

    fn max_ratio(&self) -> usize {
        1032
    }

    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        let size = source.last_chunk::<4>().filter(|_| *self == DeflateContainer::Gzip);
        Ok(guess(source, size.map(|size| u32::from_le_bytes(*size) as usize)))
    }
}

/// Settings for writing members.
#[derive(Debug)]
struct Settings {
    container: DeflateContainer,
    level: i32,
}

impl Settings {
    fn parse(container: DeflateContainer, metadata: &CodecMetadata) -> Result<Settings> {
        let level = match integer(metadata, "level", 1, -1, 9)? {
            // zlib's default.
            -1 => 6,
            level => level as i32,
        };
        Ok(Settings { container, level })
    }
}

impl Encoder for Settings {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize> {
        let no_memory = Refusal::OutOfMemory { nbytes: source.len() };
        let compressor = codecs.deflate_compressor(self.level).ok_or(no_memory)?;
        let bound = compressor.bound(source.len());
        Ok(compressor.compress(self.container, source, scratch.take(bound)?)?)
    }
}
