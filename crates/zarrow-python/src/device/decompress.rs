//! The argument `decompress=`.

use crate::python::importing::import;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zarrow_cuda::Route;
use zarrow_cuda::decompress::nvcomp;

/// Parses `decompress=`.
pub fn route(py: Python<'_>, decompress: Option<&str>) -> PyResult<Route> {
    let route = match decompress {
        None | Some("host") => return Ok(Route::Host),
        Some("device") => Route::Device,
        Some("auto") => Route::Auto,
        Some(other) => {
            let text = format!("decompress is {other:?}, expected \"host\", \"device\" or \"auto\"");
            return Err(PyValueError::new_err(text));
        }
    };
    find_library(py)?;
    Ok(route)
}

/// Passes on the location of the user's nvCOMP wheel.
pub fn find_library(py: Python<'_>) -> PyResult<()> {
    let paths: Vec<String> =
        import(py, "zarrow.gpu.nvcomp_libraries")?.call_method0("found_in_wheels")?.extract()?;
    paths.iter().for_each(|path| nvcomp::add_path(path));
    Ok(())
}
