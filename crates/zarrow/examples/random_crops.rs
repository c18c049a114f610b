//! Reads random crops of an array as one batch that decodes every chunk once, with a time limit.
//!
//! ```console
//! $ cargo run --example random_crops -- weather.zarr
//! ```
#![expect(clippy::print_stdout, reason = "what an example is for")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zarrow::store::FilesystemStore;
use zarrow::{Batch, IntoSelection, OpenOptions, Selection, read_many};

const CROP: u64 = 16;
const BATCH: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or("expected the folder of a store")?;
    println!("shape of a batch: {:?}", run(&path)?);
    Ok(())
}

/// Returns the shape of the last of some batches.
///
/// # Errors
/// Errors of the store.
pub fn run(path: &Path) -> Result<Vec<u64>, Box<dyn Error>> {
    // Decoded chunks are cached, since crops of consecutive batches overlap.
    let options = OpenOptions::default().cache_nbytes(64 << 20);
    let store = Arc::new(FilesystemStore::open(path)?);
    let temperature = zarrow::open_with(store, "temperature", &options)?.into_array()?;
    let &[days, rows, columns] = temperature.shape() else { return Err("expected three axes".into()) };

    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let started = Instant::now();
    let is_late = || started.elapsed() > Duration::from_secs(60);
    let mut shape = Vec::new();
    for _ in 0..4 {
        let mut crops: Vec<Selection> = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            let (day, y, x) = (random.below(days), random.below(rows - CROP), random.below(columns - CROP));
            let crop = (day, y..y + CROP, x..x + CROP).into_selection(temperature.shape())?;
            crops.push(crop.into_owned());
        }
        let requests = crops.iter().map(|crop| Ok(temperature.request(crop)?.cancel(&is_late)));
        match read_many(&requests.collect::<zarrow::Result<Vec<_>>>()?)? {
            // Crops of one shape: one tensor with a new first axis.
            Batch::Stacked(batch) => {
                let tensor = batch.into_tensor()?;
                let mean =
                    tensor.as_slice::<f32>()?.iter().sum::<f32>() / (BATCH as f32 * (CROP * CROP) as f32);
                println!("mean of a batch: {mean}");
                shape = tensor.shape().to_vec();
            }
            Batch::Ragged(_) => return Err("expected crops of one shape".into()),
        }
    }
    Ok(shape)
}

/// Pseudorandom numbers, by Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
