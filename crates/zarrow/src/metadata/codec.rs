//! Codecs in metadata, with one canonical name each.
//!
//! numcodecs and Zarr version 3 have the same codecs under two names. If both give the same bytes, the version 3 name
//! is used. If they do not (`numcodecs.packbits`) or version 3 has no name (`numcodecs.lz4`, `numcodecs.zlib`), the
//! name is `numcodecs.` and the id.

use serde_json::{Map, Value, json};

use super::codec_names::{CodecKind, CodecNames};
use super::json::Extension;
use super::{MetadataError, ZarrFormat, normal_form};

const KEY: &str = "codecs";

/// Prefix of numcodecs ids in version 3.
const PREFIX: &str = "numcodecs.";

/// Array-to-bytes codecs of numcodecs that zarrow lacks.
const UNKNOWN_TO_BYTES: &[&str] = &["vlen-array", "json2", "msgpack2", "pickle", "zfpy"];

/// One codec of a chain, by its canonical name.
#[derive(Debug, Clone, PartialEq)]
pub struct CodecMetadata {
    /// The name, such as `zstd` or `numcodecs.lz4`.
    pub name: String,
    /// Parameters of the codec, in the form of Zarr version 3.
    pub configuration: Map<String, Value>,
    /// Whether a reader that does not know the codec must refuse the array.
    pub must_understand: bool,
}

impl CodecMetadata {
    /// Creates a codec that must be understood.
    #[must_use]
    pub fn new(name: impl Into<String>, configuration: Map<String, Value>) -> Self {
        CodecMetadata { name: name.into(), configuration, must_understand: true }
    }

    /// Reads a list of codecs in the form of version 3.
    pub(crate) fn from_v3(
        value: &Value,
        item_size: usize,
        names: &dyn CodecNames,
    ) -> Result<Vec<CodecMetadata>, MetadataError> {
        match value.as_array() {
            Some(codecs) if !codecs.is_empty() => {
                codecs.iter().map(|codec| Self::parse(codec, item_size, names)).collect()
            }
            _ => Err(MetadataError::expected(KEY, "a list of codecs", value)),
        }
    }

    fn parse(
        value: &Value,
        item_size: usize,
        names: &dyn CodecNames,
    ) -> Result<CodecMetadata, MetadataError> {
        let extension = Extension::parse(KEY, value)?;
        let mut codec = CodecMetadata {
            name: normal_form::name(extension.name).into_owned(),
            configuration: extension.configuration(),
            must_understand: extension.must_understand,
        };
        // Orders for each field only occur in translated version 2 metadata, not in version 3 codecs.
        if codec.name == "bytes" && codec.configuration.get("endian").is_some_and(Value::is_array) {
            return Err(MetadataError::expected(KEY, "an endian of \"little\" or \"big\"", value));
        }
        normal_form::normalise_inner(&mut codec.configuration);
        codec.into_canonical(item_size, ZarrFormat::V3, names)
    }

    /// Reads a numcodecs codec in the form of Zarr version 2: its `id` and its parameters in one object.
    pub(crate) fn from_v2(
        key: &'static str,
        value: &Value,
        item_size: usize,
        names: &dyn CodecNames,
    ) -> Result<Self, MetadataError> {
        let invalid = || MetadataError::expected(key, "an object with an \"id\"", value);
        let mut configuration = value.as_object().ok_or_else(invalid)?.clone();
        let Some(Value::String(id)) = configuration.remove("id") else { return Err(invalid()) };
        let codec = CodecMetadata::new(format!("{PREFIX}{id}"), configuration);
        codec.into_canonical(item_size, ZarrFormat::V2, names)
    }

    /// Returns the codec for a version 3 document, in the normal form at every depth.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut codec = json!([{ "name": self.name, "configuration": self.configuration }]);
        normal_form::normalise(&mut codec);
        let mut codec = codec[0].take();
        if !self.must_understand {
            codec["must_understand"] = json!(false);
        }
        codec
    }

    /// Returns the codec in the form of numcodecs; `None` if numcodecs has no codec with the same bytes.
    ///
    /// `item_size` is the size of one element in bytes, 1 for a variable-length type.
    pub(super) fn v2_document(&self, item_size: usize, names: &dyn CodecNames) -> Option<Value> {
        let mut configuration = self.configuration.clone();
        let id = self.name.strip_prefix(PREFIX);
        let id = match names.numcodecs(&self.name) {
            Some(form) => {
                (form.write)(&mut configuration, item_size)?;
                id.unwrap_or(&self.name)
            }
            None => id?,
        };
        let mut codec = Map::new();
        codec.insert("id".to_owned(), json!(id));
        codec.extend(configuration);
        self.must_understand.then_some(Value::Object(codec))
    }

    /// Returns the kind of the codec in a version 2 document, where filters may be codecs of any kind. An unknown codec
    /// counts as bytes to bytes, except for the known names of numcodecs.
    pub(crate) fn v2_kind(&self, names: &dyn CodecNames) -> CodecKind {
        names.kind(&self.name).unwrap_or_else(|| {
            let id = self.name.strip_prefix(PREFIX).unwrap_or(&self.name);
            if UNKNOWN_TO_BYTES.contains(&id) { CodecKind::ArrayToBytes } else { CodecKind::BytesToBytes }
        })
    }

    /// Returns the parameter `name` if it is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.configuration.get(name).and_then(Value::as_str)
    }

    /// Returns the equivalent codec of version 3 if there is one.
    fn into_canonical(
        mut self,
        item_size: usize,
        format: ZarrFormat,
        names: &dyn CodecNames,
    ) -> Result<Self, MetadataError> {
        let Some(id) = self.name.strip_prefix(PREFIX) else { return Ok(self) };
        let Some(form) = names.numcodecs(&self.name) else { return Ok(self) };
        if (form.read)(&mut self.configuration, item_size, format)? {
            self.name = id.to_owned();
        }
        Ok(self)
    }
}
