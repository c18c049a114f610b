//! The memory of dropped results, which is kept for the next ones.

use pyo3::prelude::*;

/// Set how many bytes of dropped results are kept for the next ones; 0 keeps none.
#[pyfunction]
pub fn set_memory_cache(nbytes: usize) {
    zarrow_array::set_recycled_limit(nbytes);
}

/// Free the memory that is kept for the next reads and writes, and tell how many bytes it was.
#[pyfunction]
pub fn release_memory() -> usize {
    zarrow_array::release_recycled() + zarrow::release_idle()
}
