//! What an array says about itself: shape, type, chunks, codecs, stored and decoded size.

use crate::summary::{Summary, nbytes, tuple};
use serde_json::{Map, Value};
use zarrow::metadata::CodecMetadata;

/// The summary of `array`; asks the store for the size of what is stored.
pub fn summary(array: &zarrow::Array) -> Summary {
    let metadata = array.metadata();
    let chunks = array.chunk_shape().map_or_else(|| "of many shapes".to_owned(), |shape| tuple(&shape));
    let mut summary = Summary::new(format!("<zarrow.Array /{} in {}>", array.path(), array.store().name()))
        .row("shape", tuple(array.shape()))
        .row("type", array.data_type().to_string())
        .row("chunks", chunks);
    if let Some(shape) = array.shard_shape() {
        summary = summary.row("shards", tuple(&shape));
    }
    let codecs: Vec<String> = metadata.codecs.iter().map(codec).collect();
    let decoded = array.nbytes().map_or_else(|| "of no fixed size".to_owned(), nbytes);
    summary
        .row("codecs", codecs.join(", "))
        .row("stored", array.stored_nbytes().map_or_else(|error| format!("unknown: {error}"), nbytes))
        .row("decoded", decoded)
}

/// The name of a codec, with those inside a shard.
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
