//! Properties of a codec before compilation: its names, its parameters, and its form in numcodecs.
//!
//! 1. Each codec is a file with a [`Definition`] constant, and a line in the [`codecs!`] of its folder.
//! 2. Its [`Stage`] gives its position in a list of codecs, and compiles it.
//! 3. A user's choice is checked more strictly than stored metadata: see [`check_parameters`](super::check_parameters).

use crate::codec::array_to_array::filter::Filter;
use crate::codec::array_to_array::parameters::Parameters;
use crate::codec::bytes_to_bytes::checksum::Checksum;
use crate::codec::chain::{ArrayToBytes, Chain};
use crate::codec::parameter::{ParameterType, wrong_parameter};
use crate::codec::{DecodeLimits, Decoder, Encoder};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecKind, CodecMetadata, NumcodecsForm};
use serde_json::Value;
use zarrow_array::DataType;

/// A codec of this crate.
pub struct Definition {
    /// Names in metadata; errors use the first.
    pub names: &'static [&'static str],
    /// Parameters that a user may choose.
    pub parameters: &'static [(&'static str, ParameterType)],
    /// Default parameters for elements of this type, used for parameters that the user omits.
    pub defaults: fn(&DataType) -> Value,
    /// Parameters that are lists of codecs, with the element type that each list encodes.
    pub inner: fn(&DataType) -> Vec<(&'static str, DataType)>,
    /// The numcodecs form of the codec, if version 3 has another name and other parameters for it.
    pub numcodecs: Option<NumcodecsForm>,
    /// Position in a list of codecs, and compilation.
    pub stage: Stage,
}

impl Definition {
    /// A codec without parameters: only names and stage are set.
    pub const PLAIN: Definition = Definition {
        names: &[],
        parameters: &[],
        defaults: |_| Value::Null,
        inner: |_| Vec::new(),
        numcodecs: None,
        stage: Stage::Transpose,
    };

    /// Returns the name for error messages.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

/// Position of a codec in a list of codecs, with its compilation.
pub enum Stage {
    /// Order of axes, without a pass over the elements.
    Transpose,
    /// Array to array.
    Filter(fn(&Parameters<'_>) -> Result<Filter>),
    /// Array to bytes.
    Serializer(fn(&CodecMetadata, &ChunkLayout<'_>) -> Result<Box<dyn ArrayToBytes>>),
    /// Bytes to bytes.
    Compressor {
        /// Parses the settings for decoding.
        decoder: fn(&CodecMetadata) -> Result<Box<dyn Decoder>>,
        /// Parses the settings for encoding, which do not concern readers.
        encoder: fn(&CodecMetadata) -> Result<Box<dyn Encoder>>,
    },
    /// Bytes to bytes, leaving the bytes unchanged.
    Checksum(fn(&CodecMetadata) -> Result<Checksum>),
}

impl Stage {
    /// Returns the kind of the codec.
    pub fn kind(&self) -> CodecKind {
        match self {
            Stage::Transpose | Stage::Filter(_) => CodecKind::ArrayToArray,
            Stage::Serializer(_) => CodecKind::ArrayToBytes,
            Stage::Compressor { .. } | Stage::Checksum(_) => CodecKind::BytesToBytes,
        }
    }
}

/// Declares the files of a folder of codecs, and the table of their definitions: a line for each file.
///
/// rustfmt does not find files that are declared in a macro: `make lint` passes them to it by name.
macro_rules! codecs {
    ($($file:ident: $($definition:ident),+;)+) => {
        $(pub mod $file;)+

        /// The codecs of this folder.
        pub static CODECS: &[&$crate::codec::definition::Definition] = &[$($(&$file::$definition),+),+];
    };
}
pub(crate) use codecs;

/// Properties of the chunks that an array-to-bytes codec is compiled for.
#[derive(Clone, Copy)]
pub struct ChunkLayout<'a> {
    /// Type of an element.
    pub data_type: &'a DataType,
    /// The shape of a chunk, in the order of the stored axes.
    pub shape: &'a [u64],
    /// Limits against hostile input.
    pub limits: &'a DecodeLimits,
    /// Whether the chunks can contain chunks: parts of a chunk, each a run of elements, cannot.
    pub can_split: bool,
    /// Compiles a list of codecs, with this layout of its chunks.
    pub compile: fn(&Value, &ChunkLayout<'_>) -> Result<Chain>,
}

impl ChunkLayout<'_> {
    /// Compiles the list of codecs that is the parameter `key` of another codec, for chunks of this layout.
    pub fn chain(&self, metadata: &CodecMetadata, key: &str) -> Result<Chain> {
        let missing = || wrong_parameter(&metadata.configuration, key, "a list of codecs");
        (self.compile)(metadata.configuration.get(key).ok_or_else(missing)?, self)
    }

    /// As [`chain`](ChunkLayout::chain), for a part of this chunk: a run of elements on one axis. Its extent differs from
    /// chunk to chunk.
    pub fn part(&self, metadata: &CodecMetadata, key: &str, data_type: &DataType) -> Result<Chain> {
        ChunkLayout { data_type, shape: &[1], can_split: false, ..*self }.chain(metadata, key)
    }

    /// Checks that the codec supports these elements.
    pub fn only_if(&self, fits: bool) -> Result<()> {
        if fits { Ok(()) } else { Err(self.unfit()) }
    }

    /// Creates the error for elements that the codec does not support.
    pub fn unfit(&self) -> Error {
        ErrorKind::BadCodec(format!("cannot encode {}", self.data_type)).into()
    }

    /// Returns whether all elements have the same size and none can be missing.
    pub fn has_fixed_elements(&self) -> bool {
        self.data_type.item_size().is_some() && !matches!(self.data_type, DataType::Optional(_))
    }
}
