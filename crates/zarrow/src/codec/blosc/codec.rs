//! `blosc` as a codec of metadata: names, parameters, decoder and encoder.
//!
//! numcodecs has a number for the shuffle; -1 leaves the choice to the element size, which numcodecs takes from the
//! array.
//!
//! Source: Zarr core 3.1, `blosc` codec; numcodecs `Blosc`.

use super::encode::{Source, bound, encode};
use super::frame::Frame;
use super::settings::Settings;
use crate::codec::Uninit;
use crate::codec::borrowed::Borrowed;
use crate::codec::decompress::wrong_size;
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::Failure;
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Decoder, Encoder, Scratch};
use crate::error::Result;
use crate::metadata::{Configuration, MetadataError, NumcodecsForm};
use serde_json::{Value, json};
use zarrow_array::DataType;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["blosc", "numcodecs.blosc"],
    parameters: &[
        ("cname", ParameterType::Text),
        ("clevel", ParameterType::Integer),
        ("shuffle", ParameterType::TextOrInteger),
        ("typesize", ParameterType::Integer),
        ("blocksize", ParameterType::Integer),
    ],
    defaults,
    numcodecs: Some(NumcodecsForm {
        read: |configuration, item_size, _| read_numcodecs(configuration, item_size),
        write: write_numcodecs,
    }),
    stage: Stage::Compressor {
        decoder: |_| Ok(Box::new(Frames)),
        encoder: |metadata| Ok(Box::new(Settings::parse(metadata)?)),
    },
    ..Definition::PLAIN
};

fn defaults(data_type: &DataType) -> Value {
    let item_size = data_type.item_size().unwrap_or(1);
    let shuffle = if item_size > 1 { "shuffle" } else { "bitshuffle" };
    json!({ "cname": "zstd", "clevel": 5, "shuffle": shuffle, "typesize": item_size, "blocksize": 0 })
}

fn read_numcodecs(configuration: &mut Configuration, item_size: usize) -> Result<bool, MetadataError> {
    let value = configuration.get("shuffle").unwrap_or(&Value::Null);
    let shuffle = match (value.as_i64(), value.as_str()) {
        // GDAL stores the text of its option BLOSC_SHUFFLE: NONE, BYTE or BIT.
        (Some(0), _) | (_, Some("noshuffle" | "NONE")) => "noshuffle",
        (Some(2), _) | (_, Some("bitshuffle" | "BIT")) => "bitshuffle",
        (Some(-1), _) if item_size == 1 => "bitshuffle",
        (Some(-1 | 1), _) | (_, Some("shuffle" | "BYTE")) => "shuffle",
        _ if value.is_null() => "shuffle",
        _ => return Err(MetadataError::expected("codecs", "a Blosc shuffle from -1 to 2", value)),
    };
    configuration.insert("shuffle".to_owned(), json!(shuffle));
    configuration.entry("typesize").or_insert(json!(item_size));
    configuration.entry("blocksize").or_insert(json!(0));
    Ok(true)
}

fn write_numcodecs(configuration: &mut Configuration, item_size: usize) -> Option<()> {
    let shuffle = match configuration.get("shuffle")?.as_str()? {
        "noshuffle" => 0,
        "shuffle" => 1,
        "bitshuffle" => 2,
        _ => return None,
    };
    configuration.insert("shuffle".to_owned(), json!(shuffle));
    configuration.retain(|name, value| name != "typesize" || *value != json!(item_size));
    Some(())
}

/// Decoder of the frames.
#[derive(Debug)]
struct Frames;

impl Decoder for Frames {
    fn decode(&self, source: &[u8], destination: &mut Uninit, codecs: &mut Codecs) -> Result<usize, Failure> {
        Frame::new(source)?.decode(destination, codecs)
    }

    /// zstd's ratio, since zstd may be the inner compressor.
    fn max_ratio(&self) -> usize {
        1 << 16
    }

    /// The size that a frame claims is allocated, but not touched before decompression.
    fn first_guess(&self, source: &[u8]) -> Result<usize, Failure> {
        Ok(Frame::new(source)?.nbytes())
    }

    fn decodes_ranges(&self) -> bool {
        true
    }

    fn decode_range(
        &self,
        source: &[u8],
        nbytes: usize,
        start: usize,
        destination: &mut Uninit,
        codecs: &mut Codecs,
    ) -> Option<Result<()>> {
        let decoded = match Frame::new(source) {
            Ok(frame) if frame.nbytes() != nbytes => return Some(Err(wrong_size(nbytes, frame.nbytes()))),
            Ok(frame) => frame.decode_range(start, destination, codecs),
            Err(failure) => Err(failure),
        };
        Some(decoded.map_err(|failure| failure.into_error(nbytes)))
    }
}

impl Encoder for Settings {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, codecs: &mut Codecs) -> Result<usize> {
        let memory = scratch.take(bound(source.len()))?;
        Ok(encode(self, Source::Own(source), memory, codecs)?)
    }

    fn reads_once(&self) -> bool {
        true
    }

    fn encode_borrowed(
        &self,
        source: Borrowed<'_>,
        scratch: &mut Scratch,
        codecs: &mut Codecs,
    ) -> Result<usize> {
        let memory = scratch.take(bound(source.nbytes()))?;
        Ok(encode(self, Source::Borrowed(source), memory, codecs)?)
    }
}
