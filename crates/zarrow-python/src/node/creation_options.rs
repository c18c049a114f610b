//! Options of creation: the format version, and what happens to an existing node.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zarrow::Existing;
use zarrow::metadata::ZarrFormat;

/// Returns the number of a format version.
pub fn version(format: ZarrFormat) -> u8 {
    match format {
        ZarrFormat::V2 => 2,
        ZarrFormat::V3 => 3,
    }
}

/// Returns what to do with an existing node.
pub fn existing(overwrite: bool) -> Existing {
    if overwrite { Existing::Erase } else { Existing::Refuse }
}

/// Returns the format with a version number.
pub fn format(version: u64) -> PyResult<ZarrFormat> {
    match version {
        2 => Ok(ZarrFormat::V2),
        3 => Ok(ZarrFormat::V3),
        other => Err(PyValueError::new_err(format!("zarr_format is {other}, expected 2 or 3"))),
    }
}
