//! Device memory cached by other libraries of the process.

use crate::python::gil;
use crate::python::importing::import;
use pyo3::prelude::*;

/// Makes PyTorch and CuPy release their cached memory when a device runs out of memory.
pub fn give_back_when_out_of_memory() {
    zarrow_cuda::set_reclaim(|| {
        gil::with(|py| {
            let reclaimed =
                import(py, "zarrow.device_tensor.memory").and_then(|module| module.call_method0("reclaim"));
            if let Err(error) = reclaimed {
                error.write_unraisable(py, None);
            }
        });
    });
}
