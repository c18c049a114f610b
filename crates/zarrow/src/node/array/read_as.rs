//! Arrays read as numbers of another type.
//!
//! 1. The same chunks are read by other metadata: the wanted type, the fill value in that type, and one codec more,
//!    which casts. It stands with the codecs of the innermost chunks, so a part of a shard is still read alone.
//! 2. Floats are cast by NumPy's rules: they are rounded, and overflow to infinity. An integer that does not fit is an
//!    error.
//! 3. The array is read-only, since its metadata are not the stored ones.

use super::Array;
use crate::codec::array_to_array::element::{cast, computable};
use crate::codec::compile;
use crate::error::{ErrorKind, Result};
use crate::metadata::{ArrayMetadata, CodecMetadata, FillValue};
use crate::store::ReadOnlyStore;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use zarrow_array::{DataType, Number};

impl Array {
    /// Returns the same array, read-only, with its numbers as another type: each chunk is cast while it is decoded.
    ///
    /// Integers and bools become any number, and floats any float. Chunks with an integer that does not fit are errors.
    /// A cache of chunks is not used.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for types that are not integers, bools or floats of 16 bits or more, and for floats
    /// as integers; [`ErrorKind::BadValue`] for a fill value that does not fit.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use zarrow::{ArrayBuilder, Existing, create_array, store::MemoryStore};
    /// use zarrow_array::{DataType, Number};
    /// let metadata = ArrayBuilder::new([4], Number::UInt8).chunk_shape([2]).build()?;
    /// let store = Arc::new(MemoryStore::default());
    /// let array = create_array(store, "a", metadata, Existing::Refuse, &Default::default())?;
    /// array.write(.., &[1u8, 2, 3, 255])?;
    /// let floats = array.read_as(&DataType::from(Number::Float32))?;
    /// assert_eq!(floats.read(1..)?.into_tensor()?.as_slice::<f32>()?, [2.0, 3.0, 255.0]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn read_as(&self, data_type: &DataType) -> Result<Array> {
        if data_type == self.data_type() {
            return Ok(self.clone());
        }
        self.cast(data_type).map_err(|error| self.place(error))
    }

    fn cast(&self, data_type: &DataType) -> Result<Array> {
        let (from, to) = (computable(self.data_type())?, computable(data_type)?);
        let (is_whole, becomes_whole) = (!is_float(from), !is_float(to) && to != Number::Bool);
        if !(is_whole && becomes_whole || is_float(to)) {
            let text = format!("reading {} as {data_type}", self.data_type());
            return Err(ErrorKind::Unsupported(text).into());
        }
        let fill_value = match &self.metadata.fill_value {
            FillValue::Fixed(bytes) => {
                let made = cast(bytes.clone(), from, to)?;
                if becomes_whole && cast(made.clone(), to, from)? != *bytes {
                    let text = format!("the fill value does not fit {data_type}");
                    return Err(ErrorKind::BadValue(text).into());
                }
                FillValue::Fixed(made)
            }
            other => other.clone(),
        };
        let codec = match becomes_whole && from != Number::Bool {
            true => ("cast_value", json!({"data_type": from.names().zarr})),
            false => ("numcodecs.astype", json!({"encode_dtype": from.names().zarr})),
        };
        let codecs = with_cast(&self.metadata.codecs, codec);
        let metadata =
            ArrayMetadata { data_type: data_type.clone(), fill_value, codecs, ..(*self.metadata).clone() };
        let largest = metadata.chunk_grid.largest_chunk();
        let chain = compile(&metadata.codecs, data_type, &largest, &self.options.limits)?;
        let store = Arc::new(ReadOnlyStore::new(Arc::clone(&self.store)));
        let (metadata, chain) = (Arc::new(metadata), Arc::new(chain));
        let stored = Some(self.stored.as_ref().unwrap_or(&self.metadata).clone());
        Ok(Array { store, metadata, stored, chain, chunks: None, bare: None, ..self.clone() })
    }
}

fn is_float(number: Number) -> bool {
    matches!(number, Number::Float16 | Number::Float32 | Number::Float64)
}

/// Adds the codec that casts to the innermost chunks (step 1), behind the transposes at the start.
fn with_cast(codecs: &[CodecMetadata], cast: (&str, Value)) -> Vec<CodecMetadata> {
    let mut codecs = codecs.to_vec();
    if let Some(sharding) = codecs.iter_mut().find(|codec| codec.name == "sharding_indexed") {
        if let Some(inner) = sharding.configuration.get_mut("codecs") {
            add_cast(inner, cast);
        }
        return codecs;
    }
    let transposes = codecs.iter().take_while(|codec| codec.name == "transpose").count();
    let (name, Value::Object(configuration)) = cast else { return codecs };
    codecs.insert(transposes, CodecMetadata::new(name, configuration));
    codecs
}

/// [`with_cast`] for the codecs of inner chunks, in the form of version 3.
fn add_cast(codecs: &mut Value, (name, configuration): (&str, Value)) {
    let Value::Array(codecs) = codecs else { return };
    let name_of = |codec: &Value| codec.get("name").unwrap_or(codec).as_str().map(str::to_owned);
    let sharding = codecs.iter_mut().find(|codec| name_of(codec).as_deref() == Some("sharding_indexed"));
    if let Some(inner) = sharding.and_then(|sharding| sharding.pointer_mut("/configuration/codecs")) {
        return add_cast(inner, (name, configuration));
    }
    let transposes = codecs.iter().take_while(|codec| name_of(codec).as_deref() == Some("transpose")).count();
    let mut codec = Map::new();
    codec.insert("name".to_owned(), name.into());
    codec.insert("configuration".to_owned(), configuration);
    codecs.insert(transposes, Value::Object(codec));
}
