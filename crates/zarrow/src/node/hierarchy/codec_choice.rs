//! Expands a user's choice of a codec to a full configuration, with all parameters that readers expect.

use crate::codec::{KnownCodecs, check_parameters, definition, number_named};
use crate::error::{ErrorKind, Result};
use crate::metadata::{CodecMetadata, numpy_name, parse_data_type};
use serde_json::{Map, Value, json};
use zarrow_array::{DataType, Number};

impl CodecMetadata {
    /// Creates a codec from `choice`: a name (`"zstd"`), an object of `name` and `configuration` as in version 3, or an
    /// object of `id` and parameters as in numcodecs. Missing parameters get the usual values for `data_type`,
    /// including a checksum for zstd and crc32c. Nested codecs are expanded in the same way.
    ///
    /// # Errors
    /// [`ErrorKind::BadCodec`] for any other form, for an unknown parameter, and for a parameter of a wrong type:
    /// numbers as text are accepted in stored metadata, but not here.
    ///
    /// ```
    /// use serde_json::json;
    /// use zarrow::metadata::CodecMetadata;
    /// let float32 = zarrow_array::Number::Float32.into();
    /// let codec = CodecMetadata::from_choice(&json!("zstd"), &float32)?;
    /// assert_eq!(codec.configuration["level"], 3);
    /// assert_eq!(codec, CodecMetadata::from_choice(&json!({"id": "zstd", "level": 3}), &float32)?);
    /// let error = CodecMetadata::from_choice(&json!({"id": "zstd", "lvl": 3}), &float32).unwrap_err();
    /// assert!(error.to_string().contains("unknown parameter \"lvl\": expected one of level, checksum"));
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn from_choice(choice: &Value, data_type: &DataType) -> Result<CodecMetadata> {
        let item_size = data_type.item_size().unwrap_or(1);
        let choice = match choice {
            Value::String(name) => json!({ "name": name }),
            other => other.clone(),
        };
        let codec = if choice.get("id").is_some() {
            CodecMetadata::from_v2("codecs", &choice, item_size, &KnownCodecs)
        } else {
            CodecMetadata::parse_chain(&json!([choice]), item_size).map(|mut chain| chain.swap_remove(0))
        };
        let mut codec = codec.map_err(|error| ErrorKind::BadCodec(error.to_string()))?;
        check_parameters(&codec.name, &codec.configuration)?;
        complete(&mut codec, data_type);
        let inner = definition(&codec.name).map_or(Vec::new(), |codec| (codec.inner)(data_type));
        for (key, data_type) in inner {
            if let Some(Value::Array(choices)) = codec.configuration.get_mut(key) {
                for choice in choices {
                    *choice = CodecMetadata::from_choice(choice, &data_type)?.document();
                }
            }
        }
        Ok(codec)
    }

    /// Returns the codec with the data types that numcodecs requires, if it is a numcodecs filter without them. The
    /// filter's output determines the new `data_type` and `big_endian`.
    pub(crate) fn with_types_named(&self, data_type: &mut DataType, big_endian: &mut bool) -> CodecMetadata {
        let mut codec = self.clone();
        let (reads, writes) = match self.name.as_str() {
            "numcodecs.delta" | "numcodecs.fixedscaleoffset" | "numcodecs.quantize" => ("dtype", "astype"),
            "numcodecs.categorize" => ("dtype", "astype"),
            "numcodecs.astype" => ("decode_dtype", "encode_dtype"),
            "cast_value" => {
                let stored = self.configuration.get("data_type").and_then(|name| parse_data_type(name).ok());
                *data_type = stored.unwrap_or_else(|| data_type.clone());
                return codec;
            }
            "numcodecs.packbits" => {
                *data_type = Number::UInt8.into();
                return codec;
            }
            _ => return codec,
        };
        if let Some(name) = numpy_name(data_type, *big_endian) {
            codec.configuration.entry(reads).or_insert(name.into());
        }
        if self.name == "numcodecs.categorize" {
            codec.configuration.entry(writes).or_insert("|u1".into());
        }
        let (read, written) = (codec.text(reads), codec.text(writes));
        if let Some(number) = written.or(read).and_then(number_named) {
            *data_type = number.into();
            *big_endian = written.or(read).is_some_and(|name| name.starts_with('>'));
        }
        codec
    }

    /// Returns the default compressor of new arrays: zstd, with a checksum in its frames.
    #[must_use]
    pub fn default_compressor() -> CodecMetadata {
        let mut codec = CodecMetadata::new("zstd", Map::new());
        complete(&mut codec, &DataType::Bytes);
        codec
    }

    /// Returns the default codec from elements of `data_type` to bytes, big-endian if requested and if byte order
    /// matters.
    #[must_use]
    pub fn default_serializer(data_type: &DataType, big_endian: bool) -> CodecMetadata {
        let configured = |name: &str, value: Value| {
            let Value::Object(configuration) = value else { return CodecMetadata::new(name, Map::new()) };
            CodecMetadata::new(name, configuration)
        };
        match data_type {
            DataType::String => CodecMetadata::new("vlen-utf8", Map::new()),
            DataType::Bytes => CodecMetadata::new("vlen-bytes", Map::new()),
            DataType::Optional(inner) => {
                let inner = CodecMetadata::default_serializer(inner, big_endian);
                let configuration = json!({
                    "mask_codecs": [{ "name": "packbits", "configuration": {} }],
                    "data_codecs": [{ "name": inner.name, "configuration": inner.configuration }],
                });
                configured("zarrs.optional", configuration)
            }
            other if other.word_size() == 1 => CodecMetadata::new("bytes", Map::new()),
            _ => configured("bytes", json!({ "endian": if big_endian { "big" } else { "little" } })),
        }
    }
}

/// Sets the missing parameters.
fn complete(codec: &mut CodecMetadata, data_type: &DataType) {
    let usual = definition(&codec.name).map_or(Value::Null, |codec| (codec.defaults)(data_type));
    for (key, value) in usual.as_object().into_iter().flatten() {
        codec.configuration.entry(key.clone()).or_insert_with(|| value.clone());
    }
}
