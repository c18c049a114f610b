//! What is known of a codec before it is compiled: its names, its parameters, and what numcodecs calls them.
//!
//! 1. Each codec is a file with a constant [`Definition`], and a line in [`built_in`](super::built_in).
//! 2. Its [`Stage`] says where in a list of codecs it stands, and compiles it.
//! 3. A user's choice is checked more strictly than what is stored: see [`check_parameters`](super::check_parameters).

use crate::codec::array_to_array::{Filter, Parameters};
use crate::codec::array_to_bytes::ArrayToBytes;
use crate::codec::bytes_to_bytes::checksum::Checksum;
use crate::codec::bytes_to_bytes::{Decoder, Encoder};
use crate::codec::parameter::ParameterType;
use crate::codec::registry::CodecKind;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{CodecMetadata, FillValue, MetadataError, ZarrFormat};
use crate::options::DecodeLimits;
use serde_json::{Map, Value};
use zarrow_array::DataType;

/// The parameters of a codec, by name.
pub type Configuration = Map<String, Value>;

/// A codec of this crate.
pub struct Definition {
    /// Its names in metadata; the first is the one that errors have.
    pub names: &'static [&'static str],
    /// The parameters that a user may choose.
    pub parameters: &'static [(&'static str, ParameterType)],
    /// The parameters that are usual for elements of this type, for those that a user leaves out.
    pub defaults: fn(&DataType) -> Value,
    /// The parameters that are lists of codecs, and the type of what these encode.
    pub inner: fn(&DataType) -> Vec<(&'static str, DataType)>,
    /// What numcodecs calls the same codec, where version 3 has a name and parameters of its own for it.
    pub numcodecs: Option<NumcodecsForm>,
    /// Where it stands, and what compiles it.
    pub stage: Stage,
}

impl Definition {
    /// A codec without parameters, of which only names and stage are said.
    pub const PLAIN: Definition = Definition {
        names: &[],
        parameters: &[],
        defaults: |_| Value::Null,
        inner: |_| Vec::new(),
        numcodecs: None,
        stage: Stage::Transpose,
    };

    /// The name that errors have.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

/// The parameters of numcodecs, and those of version 3.
pub struct NumcodecsForm {
    /// Makes those of version 3 of those of numcodecs, for elements of so many bytes, as a document of this version has
    /// them; false where version 3 has no codec that is the same, and the name stays `numcodecs.` and the id.
    pub read: fn(&mut Configuration, usize, ZarrFormat) -> Result<bool, MetadataError>,
    /// Makes those of numcodecs of those of version 3; `None` where numcodecs cannot say the same.
    pub write: fn(&mut Configuration, usize) -> Option<()>,
}

impl NumcodecsForm {
    /// Both have the same parameters.
    pub const SAME: NumcodecsForm = NumcodecsForm { read: |_, _, _| Ok(true), write: |_, _| Some(()) };
}

/// Compiles a codec from array to bytes for a layout; `None` if another library has to do it.
pub type Compile = fn(&CodecMetadata, &ChunkLayout<'_>) -> Result<Option<Box<dyn ArrayToBytes>>>;

/// Where a codec stands in a list of codecs, and what compiles it.
pub enum Stage {
    /// An order of axes: no pass over the elements.
    Transpose,
    /// From array to array.
    Filter(fn(&Parameters<'_>) -> Result<Filter>),
    /// From array to bytes; `None` where another library has to do it.
    Serializer(Compile),
    /// From bytes to bytes.
    Compressor {
        /// Reads what decoding needs.
        decoder: fn(&CodecMetadata) -> Result<Box<dyn Decoder>>,
        /// Reads what encoding needs, which does not concern who only reads.
        encoder: fn(&CodecMetadata) -> Result<Box<dyn Encoder>>,
    },
    /// From bytes to bytes, which stay as they are.
    Checksum(fn(&CodecMetadata) -> Result<Checksum>),
}

impl Stage {
    /// From what to what it encodes.
    pub fn kind(&self) -> CodecKind {
        match self {
            Stage::Transpose | Stage::Filter(_) => CodecKind::ArrayToArray,
            Stage::Serializer(_) => CodecKind::ArrayToBytes,
            Stage::Compressor { .. } | Stage::Checksum(_) => CodecKind::BytesToBytes,
        }
    }
}

/// The chunks that a codec from array to bytes is compiled for.
pub struct ChunkLayout<'a> {
    /// What an element is.
    pub data_type: &'a DataType,
    /// The shape of a chunk, in the order of the stored axes.
    pub shape: &'a [u64],
    /// What stands for a chunk that is not stored.
    pub fill_value: &'a FillValue,
    /// What is refused as hostile.
    pub limits: &'a DecodeLimits,
}

impl ChunkLayout<'_> {
    /// Checks that the codec takes such elements.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`].
    pub fn only_if(&self, fits: bool) -> Result<()> {
        let unfit = || Error::from(ErrorKind::BadCodec(format!("cannot encode {}", self.data_type)));
        if fits { Ok(()) } else { Err(unfit()) }
    }

    /// Whether every element has the same bytes and none is missing.
    pub fn has_fixed_elements(&self) -> bool {
        self.data_type.item_size().is_some() && !matches!(self.data_type, DataType::Optional(_))
    }
}
