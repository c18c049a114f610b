//! The properties of codecs that metadata depend on: the kind of each, and its parameters in numcodecs.
//!
//! The table of codecs is in a later layer, which passes it as [`CodecNames`].

use super::{MetadataError, ZarrFormat};
use serde_json::{Map, Value};

/// Input and output of a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodecKind {
    /// From elements to the same number of elements of the same type.
    ArrayToArray,
    /// From elements to bytes.
    ArrayToBytes,
    /// From bytes to bytes.
    BytesToBytes,
}

/// The parameters of a codec, by name.
pub type Configuration = Map<String, Value>;

/// Conversions between the parameters of numcodecs and of version 3.
pub struct NumcodecsForm {
    /// Converts numcodecs parameters to version 3 for elements of this many bytes, as in a document of this version;
    /// returns false if version 3 has no equivalent codec, and the name stays `numcodecs.` and the id.
    pub read: fn(&mut Configuration, usize, ZarrFormat) -> Result<bool, MetadataError>,
    /// Converts version 3 parameters to numcodecs; `None` if numcodecs cannot express them.
    pub write: fn(&mut Configuration, usize) -> Option<()>,
}

impl NumcodecsForm {
    /// Both use the same parameters.
    pub const SAME: NumcodecsForm = NumcodecsForm { read: |_, _, _| Ok(true), write: |_, _| Some(()) };

    /// Both use the same parameters, and the name stays as it is.
    pub const SAME_NAME: NumcodecsForm = NumcodecsForm { read: |_, _, _| Ok(false), ..NumcodecsForm::SAME };
}

/// The codecs that a program knows.
pub trait CodecNames {
    /// Returns the kind of the codec with this name.
    fn kind(&self, name: &str) -> Option<CodecKind>;

    /// Returns the numcodecs form of the codec with this name, if it has one.
    fn numcodecs(&self, name: &str) -> Option<&'static NumcodecsForm>;
}
