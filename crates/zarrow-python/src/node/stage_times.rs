//! The time of reads by stage, for the statistics of loaders.

use crate::node::array::Array;
use pyo3::prelude::*;
use std::sync::Arc;

/// The time of the reads of some arrays.
#[pyclass(frozen, name = "_StageTimes", module = "zarrow")]
pub struct StageTimes(Arc<zarrow::StageTimes>);

#[pymethods]
impl StageTimes {
    #[new]
    fn new() -> StageTimes {
        StageTimes(Arc::default())
    }

    /// Return the same array; its reads are measured here.
    fn measured<'py>(&self, py: Python<'py>, array: &Array) -> PyResult<Bound<'py, Array>> {
        Array::create(py, array.inner().with_stage_times(Arc::clone(&self.0)))
    }

    /// Return the seconds in the store, in decoding and in placement.
    fn seconds(&self) -> (f64, f64, f64) {
        let seconds = self.0.seconds();
        (seconds.store, seconds.decode, seconds.placement)
    }
}
