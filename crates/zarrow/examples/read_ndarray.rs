//! Reads parts of an array as `ndarray` views, without a copy of the decoded memory.
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

/// Returns the mean of every second day, without the edges.
///
/// # Errors
/// Errors of the store.
pub fn run(path: &Path) -> Result<Vec<f64>, Box<dyn Error>> {
    let temperature = Group::open(path)?.array("temperature")?;

    // Ranges, integers and steps, one for each axis. Only chunks inside the selection are read.
    let every_second = Index::from(..).step_by(2);
    let tensor = temperature.read((every_second, 1..-1, 1..-1))?.into_tensor()?;
    let days = tensor.as_ndarray::<f32>()?;
    let mean = |day: ndarray::ArrayViewD<'_, f32>| {
        day.iter().copied().map(f64::from).sum::<f64>() / day.len() as f64
    };
    let means = days.axis_iter(Axis(0)).map(mean).collect();

    // Reads into the caller's memory, repeatedly.
    let mut column = vec![0f32; temperature.shape()[1] as usize];
    for day in 0..temperature.shape()[0] {
        temperature.request((day, .., 5))?.read_into(&mut column)?;
        if column.iter().any(|value| !value.is_finite()) {
            return Err(format!("day {day} has gaps").into());
        }
    }
    Ok(means)
}
