//! Explanation of the decisions of `decompress="auto"`.

use crate::device::{arguments, decompress};
use crate::index::advanced::Indexing;
use crate::node::array::Array;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyList};
use zarrow_cuda::{Device, Rates, explain};

/// Explain the decision of `decompress="auto"` for a selection of an array.
#[pyfunction]
#[pyo3(signature = (array, selection = None, device = None))]
pub fn _explain<'py>(
    array: &Bound<'py, Array>,
    selection: Option<Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = array.py();
    decompress::find_library(py)?;
    let device = match device {
        Some(_) => Some(arguments::cuda_device(py, device)?),
        None => Device::get(0).ok(),
    };
    let index = selection.unwrap_or_else(|| PyEllipsis::get(py).to_owned().into_any());
    let selection = array.get().state().selection(&index, Indexing::Plain)?;
    let inner = array.get().inner();
    let explanation = py.detach(|| explain(&inner, &selection, device));
    let split = explanation.split;
    let answer = PyDict::new(py);
    answer.set_item("decompress", explanation.decompressed_by.to_string())?;
    answer.set_item("why", explanation.why)?;
    answer.set_item("compressor", explanation.compressor)?;
    answer.set_item("chunks", explanation.chunks)?;
    answer.set_item("chunk_nbytes", explanation.chunk_nbytes)?;
    answer.set_item("frames", explanation.frames)?;
    answer.set_item("threads", explanation.threads)?;
    answer.set_item("chunks_on_device", split.map_or(0, |split| split.on_device))?;
    answer.set_item("chunks_on_host", split.map_or(explanation.chunks, |split| split.on_host))?;
    answer.set_item("seconds", split.map(|split| split.seconds))?;
    answer.set_item("seconds_on_device", split.map(|split| split.device_seconds))?;
    answer.set_item("seconds_on_host", split.map(|split| split.host_seconds))?;
    let (rates, measured) = (PyDict::new(py), PyList::empty(py));
    if let Some(Rates { device, device_frame, link, host_thread, ratio }) = explanation.rates {
        for (name, mean) in [
            ("device", device),
            ("device_frame", device_frame),
            ("link", link),
            ("host_thread", host_thread),
            ("ratio", ratio),
        ] {
            rates.set_item(name, mean.value)?;
            if mean.is_measured {
                measured.append(name)?;
            }
        }
    }
    answer.set_item("rates", rates)?;
    answer.set_item("measured", measured)?;
    Ok(answer)
}
