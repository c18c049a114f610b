//! Memory of a device that other libraries of the process keep for later.

use crate::python::gil;
use crate::python::importing::import;
use pyo3::prelude::*;

/// Has PyTorch and CuPy give back what they keep, where a device has no memory left.
pub fn give_back_when_out_of_memory() {
    zarrow_cuda::set_reclaim(|| {
        gil::with(|py| {
            let reclaimed =
                import(py, "zarrow.device_memory").and_then(|module| module.call_method0("reclaim"));
            if let Err(error) = reclaimed {
                error.write_unraisable(py, None);
            }
        });
    });
}
