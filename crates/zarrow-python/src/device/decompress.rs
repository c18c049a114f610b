//! Where chunks are decompressed: `decompress=`, and what a read would do.

use crate::index::advanced::Indexing;
use crate::node::array::Array;
use crate::python::importing::import;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis};
use zarrow_cuda::decompress::nvcomp;
use zarrow_cuda::{Route, explain};

/// The route of `decompress=`.
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

/// Says where the user's wheel of nvCOMP is.
fn find_library(py: Python<'_>) -> PyResult<()> {
    let paths: Vec<String> =
        import(py, "zarrow.gpu.devices")?.call_method0("_nvcomp_libraries")?.extract()?;
    paths.iter().for_each(|path| nvcomp::add_path(path));
    Ok(())
}

/// What `decompress="auto"` would do for a selection of an array.
#[pyfunction]
#[pyo3(signature = (array, selection = None))]
pub fn _explain_decompression<'py>(
    array: &Bound<'py, Array>,
    selection: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = array.py();
    find_library(py)?;
    let index = selection.unwrap_or_else(|| PyEllipsis::get(py).to_owned().into_any());
    let selection = array.get().selection(&index, Indexing::Plain)?;
    let inner = array.get().inner();
    let explanation = py.detach(|| explain(&inner, &selection));
    let answer = PyDict::new(py);
    answer.set_item("decompress", if explanation.route == Route::Device { "device" } else { "host" })?;
    answer.set_item("why", explanation.why)?;
    answer.set_item("compressor", explanation.compressor)?;
    answer.set_item("chunks", explanation.chunks)?;
    answer.set_item("chunk_nbytes", explanation.chunk_nbytes)?;
    answer.set_item("frames", explanation.frames)?;
    Ok(answer)
}
