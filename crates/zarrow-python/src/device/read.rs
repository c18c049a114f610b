//! Reads to a device: `device=`, `out=`, `stream=` and `decompress=`.
//!
//! 1. `out` on a device selects it; otherwise `device` does. Without either the read goes to the host.
//! 2. With `stream`, the read begins after earlier work in that stream, and later work in it begins after the read.
//!    The default is the current stream of the library that owns `out`; if that is unknown, the call waits for the
//!    device. For our own Tensors, the read is ordered after the work of libraries that borrowed them, and before
//!    their later work.

use super::tensor::DeviceTensor;
use super::{arguments, decompress, import};
use crate::index::field::{ElementPart, requests};
use crate::python::error::{Raise, unsupported};
use crate::python::interrupt::interruptible_with;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;
use zarrow::{Array, Selection};
use zarrow_array::DataType;
use zarrow_cuda::{Device, Route, Stream, in_stream};

/// Destination of a read.
pub struct Destination<'py> {
    out: Option<(Bound<'py, PyAny>, zarrow_cuda::DeviceTensor)>,
    order: Order,
    route: Route,
}

/// Order of a read relative to other work (step 2).
#[derive(Clone, Copy)]
struct Order {
    device: &'static Device,
    stream: Option<Stream>,
    /// Whether the call must wait, because no stream orders the use of the result.
    waits: bool,
}

impl Order {
    fn run<T>(
        self,
        out: Option<&zarrow_cuda::DeviceTensor>,
        work: impl FnOnce() -> zarrow_cuda::Result<T>,
    ) -> zarrow_cuda::Result<T> {
        let outcome = match (self.stream, out) {
            (Some(stream), _) => in_stream(self.device, stream, work),
            (None, Some(out)) => {
                out.begin_after_consumers()?;
                let outcome = work();
                out.end_before_consumers()?;
                outcome
            }
            (None, None) => work(),
        };
        if self.waits {
            // Also after an error: work queued on the device still writes to `out`.
            self.device.synchronize()?;
        }
        outcome
    }
}

/// Arguments that decide the destination of a read.
pub struct Arguments<'a, 'py> {
    /// `device=`.
    pub device: Option<&'a Bound<'py, PyAny>>,
    /// `out=`.
    pub out: Option<&'a Bound<'py, PyAny>>,
    /// `stream=`.
    pub stream: Option<&'a Bound<'py, PyAny>>,
    /// `decompress=`.
    pub decompress: Option<&'a str>,
}

impl<'py> Destination<'py> {
    /// Step 1; `None` for the host.
    pub fn from_arguments(arguments: &Arguments<'_, 'py>) -> PyResult<Option<Destination<'py>>> {
        let Arguments { device, out, stream, decompress } = *arguments;
        let wanted = device.map(arguments::device).transpose()?;
        let out = match out {
            Some(object) => import::tensor(object)?.map(|tensor| (object.clone(), tensor)),
            None => None,
        };
        let refused = |text: &str| Err(PyValueError::new_err(text.to_owned()));
        let device = match (wanted, &out) {
            (Some(None), Some(_)) => {
                return refused("device=\"cpu\" contradicts out=, which is on a GPU: pass only one");
            }
            (Some(Some(_)), None) if arguments.out.is_some() => {
                return refused("out= is on the CPU: pass memory of the device, or device= without out=");
            }
            (Some(Some(device)), _) => device,
            (_, Some((_, tensor))) => tensor.device(),
            _ if stream.is_some() => {
                return refused("stream= needs device=\"cuda:0\", or out= on a GPU");
            }
            // On the CPU, these values mean the default: the host decompresses.
            _ if decompress.is_none_or(|decompress| ["host", "auto"].contains(&decompress)) => {
                return Ok(None);
            }
            _ => return refused("decompress=\"device\" needs device=\"cuda:0\", or out= on a GPU"),
        };
        let given = stream.map(arguments::stream).transpose()?;
        let current = match (&given, &out) {
            (None, Some((object, tensor))) => current_stream(object, tensor.device())?,
            _ => None,
        };
        let is_ours = out.as_ref().is_none_or(|(object, _)| object.is_instance_of::<DeviceTensor>());
        let stream = given.or(current);
        let order = Order { device, waits: stream.is_none() && !is_ours, stream };
        let route = match arguments.device.or(arguments.out) {
            Some(object) => decompress::route(object.py(), decompress)?,
            None => Route::Host,
        };
        Ok(Some(Destination { out, order, route }))
    }

    /// Returns the caller's `out` or the new tensor.
    fn answer(&self, py: Python<'py>, tensor: zarrow_cuda::DeviceTensor) -> PyResult<Bound<'py, PyAny>> {
        if let Some((object, _)) = &self.out {
            return Ok(object.clone());
        }
        if let Some(stream) = self.order.stream {
            // The stream's later work delays freeing the memory.
            py.detach(|| tensor.lend_to(stream)).raise(py)?;
        }
        Ok(DeviceTensor::create(py, tensor)?.into_any())
    }

    /// Reads `selection`.
    pub fn read(
        &self,
        py: Python<'py>,
        elements: &ElementPart,
        selection: &Selection,
    ) -> PyResult<Bound<'py, PyAny>> {
        check_layout(py, elements.data_type())?;
        let out = self.out.as_ref().map(|(_, tensor)| tensor);
        let (order, route) = (self.order, self.route);
        let tensor = interruptible_with(py, |interrupt| {
            order.run(out, || {
                let request = elements.request(selection)?.cancel(interrupt);
                Ok(zarrow_cuda::read(&request, order.device, out, route)?.0)
            })
        })?;
        self.answer(py, tensor)
    }

    /// Reads all items: to one tensor with a new first axis if they share type and shape, else to a list.
    pub fn read_many(
        &self,
        py: Python<'py>,
        items: &[(Arc<Array>, Selection)],
    ) -> PyResult<Bound<'py, PyAny>> {
        for (array, _) in items {
            check_layout(py, array.data_type())?;
        }
        let alike =
            |(array, selection): &(Arc<Array>, Selection)| (array.data_type().clone(), selection.shape());
        let first = items.first().map(alike);
        let stacked = match &first {
            Some(first) if items.iter().all(|item| alike(item) == *first) => Some(first),
            _ => None,
        };
        if stacked.is_none() && self.out.is_some() {
            if items.is_empty() {
                return Ok(self
                    .out
                    .as_ref()
                    .map_or_else(|| py.None().into_bound(py), |(out, _)| out.clone()));
            }
            let text = "out= needs items of one type and shape: read these without out=";
            return Err(PyValueError::new_err(text));
        }
        let (order, route, out) = (self.order, self.route, self.out.as_ref().map(|(_, tensor)| tensor));
        let batch = interruptible_with(py, |interrupt| {
            order.run(out, || {
                let requests = requests(items, interrupt)?;
                if let Some((dtype, shape)) = stacked {
                    let shape = [&[items.len() as u64][..], shape].concat();
                    let batch = match out {
                        Some(out) => out.clone(),
                        None => zarrow_cuda::DeviceTensor::empty(order.device, &shape, dtype.clone())?,
                    };
                    zarrow_cuda::read_many(&requests, &batch, route)?;
                    return Ok(vec![batch]);
                }
                let read = |request| zarrow_cuda::read(request, order.device, None, route);
                requests.iter().map(|request| Ok(read(request)?.0)).collect()
            })
        })?;
        if stacked.is_some() {
            return match batch.into_iter().next() {
                Some(batch) => self.answer(py, batch),
                None => Ok(PyList::empty(py).into_any()),
            };
        }
        let list = PyList::empty(py);
        for tensor in batch {
            list.append(self.answer(py, tensor)?)?;
        }
        Ok(list.into_any())
    }
}

/// Refuses layouts that are not supported on a device.
fn check_layout(py: Python<'_>, dtype: &DataType) -> PyResult<()> {
    let how = match dtype {
        DataType::Optional(_) => "read without device=, and pass .data and .mask to zarrow.gpu.asarray()",
        _ if dtype.item_size().is_none() => "read without device=",
        _ => return Ok(()),
    };
    Err(unsupported(py, format!("elements of type {dtype} are not supported on a device: {how}")))
}

/// Returns the current stream of the library that `object` belongs to, if known (step 2).
fn current_stream(object: &Bound<'_, PyAny>, device: &Device) -> PyResult<Option<Stream>> {
    let py = object.py();
    let module: String = object.get_type().getattr("__module__")?.extract().unwrap_or_default();
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    match module.split('.').next() {
        Some("torch") => match modules.get_item("torch.cuda")? {
            Some(cuda) => {
                let stream = cuda.call_method1("current_stream", (device.ordinal(),))?;
                arguments::from_handle(&stream.getattr("cuda_stream")?).map(Some)
            }
            None => Ok(None),
        },
        Some("cupy") => match modules.get_item("cupy.cuda")? {
            Some(cuda) => {
                arguments::from_handle(&cuda.call_method0("get_current_stream")?.getattr("ptr")?).map(Some)
            }
            None => Ok(None),
        },
        _ => Ok(None),
    }
}
