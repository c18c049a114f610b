//! The codecs of new arrays: a user's choice, expanded to all parameters that readers expect, and the defaults.

use crate::codec::KnownCodecs;
use crate::codec::array_to_array::{Parameters, number_named};
use crate::codec::built_in::{check_parameters, find};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::{ErrorKind, Result};
use crate::metadata::{CodecMetadata, numpy_name};
use serde_json::{Map, Value, json};
use zarrow_array::DataType;

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
        let inner = find(&codec.name).map_or(Vec::new(), |codec| (codec.inner)(data_type));
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
        let Some(Definition { parameters, stage: Stage::Filter(parse), .. }) = find(&self.name) else {
            return codec;
        };
        let key = |wanted| parameters.iter().find(|(_, found)| *found == wanted).map(|(key, _)| *key);
        if let (Some(reads), Some(writes)) = (key(ParameterType::DecodedType), key(ParameterType::StoredType))
        {
            if let Some(name) = numpy_name(data_type, *big_endian) {
                codec.configuration.entry(reads).or_insert(name.into());
            }
            complete(&mut codec, data_type);
            let name = codec.text(writes).or(codec.text(reads));
            if let Some(name) = name.filter(|name| number_named(name).is_some()) {
                *big_endian = name.starts_with('>');
            }
        }
        // Wrong parameters are an error when the list is compiled.
        if let Ok(filter) = parse(&Parameters { configuration: &codec.configuration, data_type }) {
            *data_type = filter.stored_type(data_type);
        }
        codec
    }

    /// Returns the codec that stores the axes in this order.
    pub(crate) fn transpose(order: &[usize]) -> CodecMetadata {
        configured("transpose", json!({ "order": order }))
    }

    /// Returns the codec that stores chunks of `chunk_shape`, each encoded by `codecs`, in shards.
    pub(crate) fn sharded(chunk_shape: &[u64], codecs: &[CodecMetadata]) -> CodecMetadata {
        let index = json!([
            { "name": "bytes", "configuration": { "endian": "little" } },
            { "name": "crc32c", "configuration": {} },
        ]);
        let configuration = json!({
            "chunk_shape": chunk_shape,
            "codecs": codecs.iter().map(CodecMetadata::document).collect::<Value>(),
            "index_codecs": index,
            "index_location": "end",
        });
        configured("sharding_indexed", configuration)
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

fn configured(name: &str, configuration: Value) -> CodecMetadata {
    let configuration = match configuration {
        Value::Object(configuration) => configuration,
        _ => Map::new(),
    };
    CodecMetadata::new(name, configuration)
}

/// Sets the missing parameters.
fn complete(codec: &mut CodecMetadata, data_type: &DataType) {
    let usual = find(&codec.name).map_or(Value::Null, |codec| (codec.defaults)(data_type));
    for (key, value) in usual.as_object().into_iter().flatten() {
        codec.configuration.entry(key.clone()).or_insert_with(|| value.clone());
    }
}
