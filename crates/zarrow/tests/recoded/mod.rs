//! Arrays that zarrs writes, for chains with Blosc too: this build of zarrs lacks it, so zarrow stores their elements
//! again.

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use zarrow::store::FilesystemStore;
use zarrow::{Array, Node};

/// Lets zarrs write an array to a folder without Blosc. If its `metadata` have Blosc, stores it again with them.
pub fn write(folder: &Path, metadata: &Value, by_zarrs: impl FnOnce(Value)) {
    let plain = without_blosc(metadata);
    by_zarrs(plain.clone());
    if plain == *metadata {
        return;
    }
    let elements = open(folder).read(..).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::create_dir(folder).unwrap();
    std::fs::write(folder.join("zarr.json"), metadata.to_string()).unwrap();
    open(folder).write_request(..).unwrap().write(&elements).unwrap();
}

fn open(folder: &Path) -> Array {
    let Node::Array(array) = zarrow::open(Arc::new(FilesystemStore::open(folder).unwrap()), "").unwrap()
    else {
        panic!("an array was written")
    };
    array
}

fn without_blosc(metadata: &Value) -> Value {
    match metadata {
        Value::Array(values) => {
            values.iter().filter(|value| value["name"] != "blosc").map(without_blosc).collect()
        }
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), without_blosc(value))).collect())
        }
        other => other.clone(),
    }
}
