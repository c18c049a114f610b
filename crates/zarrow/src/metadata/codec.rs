//! Codecs as the metadata names them, under one name each.
//!
//! numcodecs and Zarr version 3 have the same codecs under two names. Where the bytes are the same, the name
//! of version 3 is kept; where they are not (`numcodecs.packbits`) or version 3 has none (`numcodecs.lz4`,
//! `numcodecs.zlib`), the name is `numcodecs.` and the id.

use serde_json::{Map, Value, json};

use super::MetadataError;
use super::json::Extension;
use super::normal_form;
use super::v2::Kind;

const KEY: &str = "codecs";

/// One codec of a chain, by its canonical name.
#[derive(Debug, Clone, PartialEq)]
pub struct CodecMetadata {
    /// The name, such as `zstd` or `numcodecs.lz4`.
    pub name: String,
    /// What the codec was set to, in the form of Zarr version 3.
    pub configuration: Map<String, Value>,
    /// Whether a reader that does not know the codec must refuse the array.
    pub must_understand: bool,
}

impl CodecMetadata {
    /// A codec that must be understood.
    #[must_use]
    pub fn new(name: impl Into<String>, configuration: Map<String, Value>) -> Self {
        CodecMetadata { name: name.into(), configuration, must_understand: true }
    }

    /// Reads a list of codecs, such as `codecs` of an array or of a sharding codec's configuration.
    ///
    /// `item_size` is the bytes of one element, 1 for a variable-length type.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] where this is no list of codecs, or an empty one.
    pub fn parse_chain(value: &Value, item_size: usize) -> Result<Vec<CodecMetadata>, MetadataError> {
        match value.as_array() {
            Some(codecs) if !codecs.is_empty() => {
                codecs.iter().map(|codec| Self::parse(codec, item_size)).collect()
            }
            _ => Err(MetadataError::expected(KEY, "a list of codecs", value)),
        }
    }

    fn parse(value: &Value, item_size: usize) -> Result<CodecMetadata, MetadataError> {
        let extension = Extension::parse(KEY, value)?;
        let mut codec = CodecMetadata {
            name: normal_form::name(extension.name).into_owned(),
            configuration: extension.configuration(),
            must_understand: extension.must_understand,
        };
        // An order for each field is what version 2 is translated to, and no codec of version 3.
        if codec.name == "bytes" && codec.configuration.get("endian").is_some_and(Value::is_array) {
            return Err(MetadataError::expected(KEY, "an endian of \"little\" or \"big\"", value));
        }
        normal_form::normalise_inner(&mut codec.configuration);
        codec.into_canonical(item_size)
    }

    /// A numcodecs codec, as Zarr version 2 stores it: its `id` and its parameters in one object.
    pub(crate) fn from_v2(key: &'static str, value: &Value, item_size: usize) -> Result<Self, MetadataError> {
        let invalid = || MetadataError::expected(key, "an object with an \"id\"", value);
        let mut configuration = value.as_object().ok_or_else(invalid)?.clone();
        let Some(Value::String(id)) = configuration.remove("id") else { return Err(invalid()) };
        if id == "shuffle" {
            set_if_absent(&mut configuration, "elementsize", json!(4));
        }
        CodecMetadata::new(format!("numcodecs.{id}"), configuration).into_canonical(item_size)
    }

    /// The codec as a version 3 document lists it, in the normal form at every depth.
    pub(crate) fn document(&self) -> Value {
        let mut codec = json!([{ "name": self.name, "configuration": self.configuration }]);
        normal_form::normalise(&mut codec);
        let mut codec = codec[0].take();
        if !self.must_understand {
            codec["must_understand"] = json!(false);
        }
        codec
    }

    /// The codec as numcodecs writes it, `None` where numcodecs has none that gives the same bytes.
    ///
    /// `item_size` is the bytes of one element, 1 for a variable-length type.
    pub(super) fn v2_document(&self, item_size: usize) -> Option<Value> {
        let mut configuration = self.configuration.clone();
        let id = match self.name.as_str() {
            "gzip" | "vlen-utf8" | "vlen-bytes" | "crc32c" => &self.name,
            "zstd" => {
                // tensorstore refuses the parameter, and frames say themselves whether they have a checksum.
                configuration.retain(|name, value| name != "checksum" || *value != json!(true));
                &self.name
            }
            "blosc" => {
                let shuffle = match self.text("shuffle")? {
                    "noshuffle" => 0,
                    "shuffle" => 1,
                    "bitshuffle" => 2,
                    _ => return None,
                };
                configuration.insert("shuffle".to_owned(), json!(shuffle));
                // numcodecs takes the size from the elements.
                configuration.retain(|name, value| name != "typesize" || *value != json!(item_size));
                &self.name
            }
            name => name.strip_prefix("numcodecs.")?,
        };
        let mut codec = Map::new();
        codec.insert("id".to_owned(), json!(id));
        codec.extend(configuration);
        self.must_understand.then_some(Value::Object(codec))
    }

    /// On which side of the border between arrays and bytes the codec stands, by its name in version 2.
    pub(crate) fn v2_kind(&self) -> Kind {
        Kind::of(&self.name)
    }

    /// The parameter `name`, where it is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.configuration.get(name).and_then(Value::as_str)
    }

    fn into_canonical(mut self, item_size: usize) -> Result<Self, MetadataError> {
        let Some(id) = self.name.strip_prefix("numcodecs.") else { return Ok(self) };
        match id {
            "gzip" | "vlen-utf8" | "vlen-bytes" => {}
            "shuffle" => {
                // zarr-python means the element of the array where version 3 leaves it open.
                set_if_absent(&mut self.configuration, "elementsize", json!(item_size));
                return Ok(self);
            }
            "zstd" => {
                // Any reader takes frames with a checksum, and so they get one where the metadata leave it open.
                self.configuration.entry("checksum").or_insert(json!(true));
            }
            "blosc" => {
                let shuffle = self.configuration.get("shuffle").unwrap_or(&Value::Null);
                let shuffle = blosc_shuffle(shuffle, item_size)?;
                self.configuration.insert("shuffle".to_owned(), json!(shuffle));
                self.configuration.entry("typesize").or_insert(json!(item_size));
                self.configuration.entry("blocksize").or_insert(json!(0));
            }
            // Version 3 puts the checksum at the end, numcodecs where it is told.
            "crc32c" if self.text("location").is_none_or(|location| location == "end") => {
                self.configuration.remove("location");
            }
            _ => return Ok(self),
        }
        self.name = id.to_owned();
        Ok(self)
    }
}

fn set_if_absent(configuration: &mut Map<String, Value>, key: &str, value: Value) {
    let present = configuration.entry(key.to_owned()).or_insert(Value::Null);
    if present.is_null() {
        *present = value;
    }
}

/// The shuffle by its name in version 3, from the number that numcodecs has for it.
fn blosc_shuffle(value: &Value, item_size: usize) -> Result<&'static str, MetadataError> {
    match (value.as_i64(), value.as_str()) {
        (Some(0), _) | (_, Some("noshuffle")) => Ok("noshuffle"),
        (Some(2), _) | (_, Some("bitshuffle")) => Ok("bitshuffle"),
        (Some(-1), _) if item_size == 1 => Ok("bitshuffle"),
        (Some(-1 | 1), _) | (_, Some("shuffle")) => Ok("shuffle"),
        _ if value.is_null() => Ok("shuffle"),
        _ => Err(MetadataError::expected(KEY, "a Blosc shuffle from -1 to 2", value)),
    }
}
