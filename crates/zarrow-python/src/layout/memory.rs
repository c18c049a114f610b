//! The memory of dropped results, which is kept for the next ones.

use pyo3::prelude::*;

#[doc = help!("set_memory_cache")]
#[pyfunction]
pub fn set_memory_cache(nbytes: usize) {
    zarrow_array::set_recycled_limit(nbytes);
}

#[doc = help!("release_memory")]
#[pyfunction]
pub fn release_memory() -> usize {
    zarrow_array::release_recycled() + zarrow::release_idle()
}
