//! `numcodecs.bz2`: one or more concatenated Bzip2 streams, with optional zero padding after them.
//!
//! Source: numcodecs `BZ2`.

use super::setting::integer;
use crate::codec::decompress::is_padding;
use crate::codec::definition::{Definition, Stage};
use crate::codec::failure::{Failure, Refusal, Written};
use crate::codec::parameter::ParameterType;
use crate::codec::{Codecs, Decoder, Encoder, Scratch, Uninit};
use crate::error::Result;
use crate::metadata::CodecMetadata;
use serde_json::json;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["bz2", "numcodecs.bz2"],
    parameters: &[("level", ParameterType::Integer)],
    defaults: |_| json!({ "level": 1 }),
    stage: Stage::Compressor {
        decoder: |_| Ok(Box::new(Streams)),
        encoder: |metadata| Ok(Box::new(Level::parse(metadata)?)),
    },
    ..Definition::PLAIN
};

/// Decoder of the streams.
#[derive(Debug)]
struct Streams;

impl Decoder for Streams {
    fn decode(&self, source: &[u8], destination: &mut Uninit, _: &mut Codecs) -> Result<usize, Failure> {
        decompress(source, destination)
    }

    /// 900 kB of one repeated byte take some 40 bytes.
    fn max_ratio(&self) -> usize {
        1 << 15
    }
}

/// Block size of a stream, from 1 to 9.
#[derive(Debug)]
struct Level(u32);

impl Level {
    fn parse(metadata: &CodecMetadata) -> Result<Level> {
        Ok(Level(integer(metadata, "level", 1, 1, 9)? as u32))
    }
}

impl Encoder for Level {
    fn encode(&self, source: &[u8], scratch: &mut Scratch, _: &mut Codecs) -> Result<usize> {
        Ok(compress(self.0, source, scratch.take(bound(source.len()))?)?)
    }
}

/// Bytes of memory for one block of Bzip2.
const BLOCK_NBYTES: usize = 3_600_000;

/// Decompresses every Bzip2 stream of `source` to the start of `destination`; returns the bytes written.
fn decompress(source: &[u8], destination: &mut Uninit) -> Result<usize, Failure> {
    let (mut read, mut written) = (0usize, 0usize);
    while read < source.len() && (read == 0 || !is_padding(&source[read..])) {
        // The library panics if it cannot allocate.
        let mut stream =
            std::panic::catch_unwind(|| bzip2::Decompress::new(false)).map_err(|_| Failure::OutOfMemory)?;
        loop {
            // The library reads and writes at most 4 GiB at a time.
            let (input, output) = (&source[read..], &mut destination[written..]);
            let full = output.is_empty();
            let before = (stream.total_in(), stream.total_out());
            let status = stream
                .decompress_uninit(input, output)
                .map_err(|error| Failure::corrupt(error.to_string()))?;
            let progress = (stream.total_in() - before.0, stream.total_out() - before.1);
            read += usize::try_from(progress.0).unwrap_or(usize::MAX);
            written += usize::try_from(progress.1).unwrap_or(usize::MAX);
            match status {
                bzip2::Status::StreamEnd => break,
                bzip2::Status::MemNeeded => return Err(Failure::OutOfMemory),
                _ if progress != (0, 0) => {}
                _ if full => return Err(Failure::TooSmall),
                _ => return Err(Failure::corrupt("the stream ends too early")),
            }
        }
    }
    Ok(written)
}

/// Returns the maximum compressed size of `nbytes`: one percent more plus some hundred bytes, according to the
/// library's manual.
fn bound(nbytes: usize) -> usize {
    nbytes.saturating_add(nbytes / 50).saturating_add(1024)
}

/// Compresses `source` to one Bzip2 stream.
fn compress(level: u32, source: &[u8], destination: &mut Uninit) -> Written {
    // The library panics if it cannot allocate.
    let mut stream = std::panic::catch_unwind(|| bzip2::Compress::new(bzip2::Compression::new(level), 0))
        .map_err(|_| Refusal::OutOfMemory { nbytes: BLOCK_NBYTES })?;
    loop {
        // The library reads and writes at most 4 GiB at a time.
        let read = usize::try_from(stream.total_in()).unwrap_or(usize::MAX).min(source.len());
        let written = usize::try_from(stream.total_out()).unwrap_or(usize::MAX).min(destination.len());
        let (input, output) = (&source[read..], &mut destination[written..]);
        if output.is_empty() {
            return Err("Bzip2 needs more memory than its bound".into());
        }
        let rest = input.len() <= u32::MAX as usize;
        let action = if rest { bzip2::Action::Finish } else { bzip2::Action::Run };
        match stream.compress_uninit(input, output, action) {
            Ok(bzip2::Status::StreamEnd) => {
                return usize::try_from(stream.total_out()).map_err(|error| error.to_string().into());
            }
            Ok(_) => {}
            Err(error) => return Err(error.to_string().into()),
        }
    }
}
