//! Reads parts of an array as views of `ndarray`, over the memory that they were decoded into.
//!
//! ```console
//! $ cargo run --example read_ndarray --features ndarray -- weather.zarr
//! ```
#![expect(clippy::print_stdout, reason = "what an example is for")]
#![allow(clippy::reversed_empty_ranges, reason = "negative bounds count from the end")]

use ndarray::Axis;
use std::error::Error;
use std::path::{Path, PathBuf};
use zarrow::{Group, Index};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or("expected the folder of a store")?;
    for (day, mean) in run(&path)?.iter().enumerate() {
        println!("{day}: {mean:.3}");
    }
    Ok(())
}

/// The mean of every second day, away from the edges.
///
/// # Errors
/// Whatever the store gives.
pub fn run(path: &Path) -> Result<Vec<f64>, Box<dyn Error>> {
    let temperature = Group::open(path)?.array("temperature")?;

    // Ranges, integers and steps, one an axis. Only the chunks are read that have a part of it.
    let every_second = Index::from(..).step_by(2);
    let tensor = temperature.read((every_second, 1..-1, 1..-1))?.into_tensor()?;
    let days = tensor.as_ndarray::<f32>()?;
    let mean = |day: ndarray::ArrayViewD<'_, f32>| {
        day.iter().copied().map(f64::from).sum::<f64>() / day.len() as f64
    };
    let means = days.axis_iter(Axis(0)).map(mean).collect();

    // Into memory of one's own, again and again.
    let mut column = vec![0f32; temperature.shape()[1] as usize];
    for day in 0..temperature.shape()[0] {
        temperature.read_into((day, .., 5), &mut column)?;
        if column.iter().any(|value| !value.is_finite()) {
            return Err(format!("day {day} has gaps").into());
        }
    }
    Ok(means)
}
