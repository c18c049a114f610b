//! Writes the demo's two arrays with missing values by zarrs, because zarr-python has no optional data type.
//!
//! `write_masked SOURCE STORE` reads from the folder SOURCE
//!
//! - `turbidity.bin`: 12 months × 2160 × 4320 bytes, the turbidity of the air,
//! - `land.bin`: 2160 × 4320 bytes, 1 on land (the turbidity is kept) and 0 at sea (it is missing),
//! - `cities.json`: a list of the airports' cities, `null` for missing ones,
//!
//! and makes the Zarr v3 hierarchy STORE with `turbidity_on_land` (optional uint8) and `city` (optional string).

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zarrs::array::codec::ZstdCodec;
use zarrs::array::{Array, ArrayBuilder, ArrayBytes, ArrayMetadataOptions, DataType, FillValue, data_type};
use zarrs::group::GroupBuilder;
use zarrs_filesystem::FilesystemStore;

const MONTHS: u64 = 12;
const GRID: [u64; 2] = [2160, 4320];
const CITIES_PER_CHUNK: u64 = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [source, store] = arguments.as_slice() else {
        return Err("two arguments are needed: the source folder and the store to make".into());
    };
    let store = Arc::new(FilesystemStore::new(store)?);
    GroupBuilder::new().build(store.clone(), "/")?.store_metadata()?;
    write_turbidity(source, &store)?;
    write_cities(source, &store)
}

fn write_turbidity(source: &Path, store: &Arc<FilesystemStore>) -> Result<(), Box<dyn Error>> {
    let turbidity = fs::read(source.join("turbidity.bin"))?;
    let land = fs::read(source.join("land.bin"))?;
    let array = create(
        store,
        "/turbidity_on_land",
        vec![MONTHS, GRID[0], GRID[1]],
        vec![1, GRID[0] / 2, GRID[1] / 2],
        data_type::uint8(),
        &["month", "latitude", "longitude"],
    )?;
    let values = ArrayBytes::new_flen(turbidity).with_optional_mask(land.repeat(usize::try_from(MONTHS)?));
    array.store_array_subset(&array.subset_all(), values)?;
    Ok(())
}

fn write_cities(source: &Path, store: &Arc<FilesystemStore>) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(source.join("cities.json"))?;
    let cities: Vec<Option<String>> = serde_json::from_str(&text)?;
    let shape = vec![u64::try_from(cities.len())?];
    let array = create(store, "/city", shape, vec![CITIES_PER_CHUNK], data_type::string(), &["airport"])?;
    array.store_array_subset(&array.subset_all(), cities)?;
    Ok(())
}

/// An array of optional elements, zstd-compressed, with stored metadata.
fn create(
    store: &Arc<FilesystemStore>,
    path: &str,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    element: DataType,
    dimension_names: &[&str],
) -> Result<Array<FilesystemStore>, Box<dyn Error>> {
    let array = ArrayBuilder::new(shape, chunk_shape, element.to_optional(), FillValue::new_optional_null())
        .bytes_to_bytes_codecs(vec![Arc::new(ZstdCodec::new(3, false))])
        .dimension_names(Some(dimension_names.iter().copied()))
        .build(store.clone(), path)?;
    array.store_metadata_opt(&ArrayMetadataOptions::default().with_include_zarrs_metadata(false))?;
    Ok(array)
}
