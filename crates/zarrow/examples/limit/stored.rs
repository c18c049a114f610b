//! A stored array, loaded into memory.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Outcome;
use crate::codec::Codec;

/// An array with all its chunks in memory; inner chunks of shards are separate chunks.
pub struct Stored {
    pub codec: Codec,
    pub chunk_shape: Vec<u64>,
    pub chunks: HashMap<Vec<u64>, (PathBuf, Vec<u8>)>,
}

impl Stored {
    pub fn load(store: &Path) -> Outcome<Stored> {
        let metadata: Value = serde_json::from_slice(&fs::read(store.join("zarr.json"))?)?;
        let outer = numbers(&metadata["chunk_grid"]["configuration"]["chunk_shape"])?;
        let sharding = &metadata["codecs"][0];
        let sharded = sharding["name"] == "sharding_indexed";
        let chunk_shape =
            if sharded { numbers(&sharding["configuration"]["chunk_shape"])? } else { outer.clone() };
        let codecs = if sharded { &sharding["configuration"]["codecs"] } else { &metadata["codecs"] };
        let codecs = codecs.as_array().ok_or("no codecs")?.iter();
        let codec = codecs.fold(Codec::None, |found, codec| match codec["name"].as_str() {
            Some("zstd") => Codec::Zstd(codec["configuration"]["level"].as_i64().unwrap_or(0) as i32),
            Some("gzip") => Codec::Gzip,
            Some("blosc") => Codec::Blosc,
            _ => found,
        });
        let mut array = Stored { codec, chunk_shape, chunks: HashMap::new() };
        for (place, file) in files(&store.join("c"), &[])? {
            let bytes = fs::read(&file)?;
            if sharded {
                let inside: Vec<u64> = outer.iter().zip(&array.chunk_shape).map(|(a, b)| a / b).collect();
                array.take_shard(&place, &inside, &file, &bytes)?;
            } else {
                array.chunks.insert(place, (file, bytes));
            }
        }
        Ok(array)
    }

    /// Loads the inner chunks of a shard with its index at the end, before a checksum.
    fn take_shard(&mut self, place: &[u64], inside: &[u64], file: &Path, shard: &[u8]) -> Outcome<()> {
        let count: u64 = inside.iter().product();
        let index = shard.len() - 4 - 16 * count as usize;
        for (number, entry) in shard[index..shard.len() - 4].chunks_exact(16).enumerate() {
            let (offset, size) = entry.split_at(8);
            let (offset, size) =
                (u64::from_le_bytes(offset.try_into()?), u64::from_le_bytes(size.try_into()?));
            if offset == u64::MAX {
                continue;
            }
            let mut rest = number as u64;
            let mut inner = vec![0; inside.len()];
            for axis in (0..inside.len()).rev() {
                inner[axis] = place[axis] * inside[axis] + rest % inside[axis];
                rest /= inside[axis];
            }
            let bytes = shard[offset as usize..][..size as usize].to_vec();
            self.chunks.insert(inner, (file.to_path_buf(), bytes));
        }
        Ok(())
    }
}

/// Returns the files below a folder, each with the numbers in its path.
fn files(folder: &Path, place: &[u64]) -> Outcome<Vec<(Vec<u64>, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let number = entry.file_name().to_string_lossy().parse()?;
        let place = [place, &[number]].concat();
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path(), &place)?);
        } else {
            found.push((place, entry.path()));
        }
    }
    Ok(found)
}

pub fn numbers(value: &Value) -> Outcome<Vec<u64>> {
    let list = value.as_array().ok_or("a list of numbers is missing")?;
    list.iter().map(|number| number.as_u64().ok_or_else(|| "not a number".into())).collect()
}
