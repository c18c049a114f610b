//! The summary of an array: shape, axes, type, fill value, chunks, codecs, attributes, stored and decoded size.

use crate::node::fill_value;
use crate::python::interrupt::waiting;
use crate::python::summary::{Summary, attributes, nbytes, tuple};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use serde_json::{Map, Value};
use zarrow::StoredChunks;
use zarrow::metadata::CodecMetadata;

/// Maximum number of chunks to look for in the store: each needs a lookup.
const MOST_CHUNKS: u64 = 1000;

/// Returns the summary of `array`. If there are few chunks, asks the store for them and for their size.
pub fn summary(py: Python<'_>, array: &zarrow::Array) -> PyResult<Summary> {
    let metadata = array.metadata();
    let fill = fill(py, array);
    let (counted, stored) = waiting(py, || {
        let counted = array.stored_chunks(MOST_CHUNKS);
        let is_small = counted.as_ref().is_ok_and(|chunks| chunks.stored.is_some());
        Ok((counted, is_small.then(|| array.stored_nbytes())))
    })?;
    let in_all = match &counted {
        Ok(StoredChunks { count, stored: Some(stored) }) if stored < count => {
            format!(", {stored} of {count} stored")
        }
        Ok(StoredChunks { count, .. }) => format!(", {count} in all"),
        Err(_) => String::new(),
    };
    let stored = match (stored, &counted) {
        (Some(Ok(stored)), _) => nbytes(stored),
        (Some(Err(error)), _) => format!("unknown: {error}"),
        (None, Ok(chunks)) if chunks.count <= MOST_CHUNKS => "unknown: this store lists nothing".to_owned(),
        (None, _) => "not counted: use .nbytes_stored, which visits every chunk".to_owned(),
    };
    let shape =
        |shape: Option<Vec<u64>>| shape.map_or_else(|| "of many shapes".to_owned(), |shape| tuple(&shape));
    let mut summary = Summary::new(format!("<zarrow.Array /{} in {}>", array.path(), array.store().name()))
        .row("shape", tuple(array.shape()));
    if let Some(names) = &metadata.dimension_names {
        let names: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap_or("unnamed")).collect();
        summary = summary.row("axes", names.join(", "));
    }
    summary = summary.row("type", array.data_type().to_string()).row("fill", fill);
    summary = match array.shard_shape() {
        Some(shards) => {
            summary.row("chunks", shape(array.chunk_shape())).row("shards", tuple(&shards) + &in_all)
        }
        None => summary.row("chunks", shape(array.chunk_shape()) + &in_all),
    };
    let codecs: Vec<String> = metadata.codecs.iter().map(codec).collect();
    summary = summary.row("codecs", codecs.join(", "));
    if !metadata.attributes.is_empty() {
        summary = summary.row("attrs", attributes(&metadata.attributes));
    }
    let decoded = array.nbytes().map_or_else(|| "of no fixed size".to_owned(), nbytes);
    Ok(summary.row("stored", stored).row("decoded", decoded))
}

/// Returns the fill value's repr, or its form in the metadata if Python lacks the type.
fn fill(py: Python<'_>, array: &zarrow::Array) -> String {
    let metadata = array.metadata();
    let shown = fill_value::to_python(py, &metadata.fill_value, metadata.data_type.without_optional())
        .and_then(|value| {
            let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
            Ok(if is_text { value.repr()?.to_string() } else { value.str()?.to_string() })
        });
    shown.unwrap_or_else(|_| {
        let document = metadata.v3_document().ok();
        document.and_then(|document| document.get("fill_value").map(Value::to_string)).unwrap_or_default()
    })
}

/// Returns the name of a codec, including those inside a shard.
fn codec(codec: &CodecMetadata) -> String {
    described(&codec.name, &codec.configuration)
}

fn described(name: &str, configuration: &Map<String, Value>) -> String {
    let Some(Value::Array(inner)) = configuration.get("codecs") else { return name.to_owned() };
    let inner: Vec<String> = inner
        .iter()
        .map(|codec| match (codec.get("name").and_then(Value::as_str), codec.get("configuration")) {
            (Some(name), Some(Value::Object(configuration))) => described(name, configuration),
            (Some(name), _) => name.to_owned(),
            (None, _) => codec.as_str().unwrap_or("?").to_owned(),
        })
        .collect();
    format!("{name}({})", inner.join(", "))
}
