//! Writes `ndarray` arrays to a new store, without a copy: in C order, in F order, and one row broadcast to all rows.
//!
//! ```console
//! $ cargo run --example write_ndarray --features ndarray -- weather.zarr
//! ```

use ndarray::{Array2, Array3, ShapeBuilder};
use std::error::Error;
use std::path::{Path, PathBuf};
use zarrow::{ArrayBuilder, Existing, Group, Number, Values};

const DAYS: u64 = 48;
const ROWS: u64 = 60;
const COLUMNS: u64 = 80;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or("expected the folder to create")?;
    run(&path)
}

/// Creates the group at `path`, which must not exist.
///
/// # Errors
/// Errors of the store.
pub fn run(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut root = Group::create(path)?;

    // One chunk per day, compressed with zstd, eight of them in a shard.
    let metadata = ArrayBuilder::new([DAYS, ROWS, COLUMNS], Number::Float32)
        .chunk_shape([1, ROWS, COLUMNS])
        .shard_shape([8, ROWS, COLUMNS])
        .dimension_names(["time", "y", "x"].map(|name| Some(name.to_owned())))
        .build()?;
    let temperature = root.create_array("temperature", metadata, Existing::Refuse)?;

    let shape = [DAYS, ROWS, COLUMNS].map(|extent| extent as usize);
    let field = Array3::from_shape_fn(shape, |(day, y, x)| day as f32 + 0.1 * y as f32 + 0.01 * x as f32);
    temperature.write(.., &field)?;

    // Memory in F order is written directly. So is a view: transposed, reversed or sliced.
    let mut first_day = Array2::<f32>::zeros((shape[1], shape[2]).f());
    first_day.assign(&field.slice(ndarray::s![-1, .., ..]));
    temperature.write((0, .., ..), &first_day)?;

    // One row for the last row of every day, and one number for a corner.
    temperature.write((.., -1), &Array2::<f32>::from_elem((1, shape[2]), -1.0))?;
    temperature.write((.., 0, 0), Values::scalar(&f32::NAN))?;

    // Appends later days.
    let metadata = ArrayBuilder::new([0], Number::Int64).chunk_shape([365]).build()?;
    let mut time = root.create_array("time", metadata, Existing::Refuse)?;
    for month in 0..2 {
        let days: Vec<i64> = (24 * month..24 * (month + 1)).collect();
        time.append(&days, 0)?;
    }
    Ok(())
}
