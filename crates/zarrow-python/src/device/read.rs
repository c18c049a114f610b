//! Reading to a device: `device=`, `out=`, `stream=` and `decompress=`.
//!
//! 1. `out` on a device says which; else `device` does. Without either the read goes to the host.
//! 2. With `stream` the read begins when what was given to that stream is done, and what is given to it later begins when
//!    the read is done. Without it, that is the current stream of the library that `out` is of; where that is not known, the
//!    call waits for the device. A Tensor of ours waits for the libraries that it was handed to, and they for the read.

use super::tensor::DeviceTensor;
use super::{arguments, decompress, import};
use crate::index::field::ElementPart;
use crate::python::error::{Raise, unsupported};
use crate::python::interrupt::interruptible_with;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;
use zarrow::{Array, Selection};
use zarrow_array::DataType;
use zarrow_cuda::{Device, Elements, Route, Stream, in_stream};

/// Where a read goes.
pub struct Destination<'py> {
    out: Option<(Bound<'py, PyAny>, zarrow_cuda::DeviceTensor)>,
    order: Order,
    route: Route,
}

/// When a read may begin, and when its result may be used (step 2).
#[derive(Clone, Copy)]
struct Order {
    device: &'static Device,
    stream: Option<Stream>,
    /// Whether nothing says when the result may be used.
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
            // After an error too: what was given to the device still writes to `out`.
            self.device.synchronize()?;
        }
        outcome
    }
}

/// What of a read says where it goes.
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
    pub fn of(arguments: &Arguments<'_, 'py>) -> PyResult<Option<Destination<'py>>> {
        let Arguments { device, out, stream, decompress } = *arguments;
        let wanted = device.map(arguments::device).transpose()?;
        let out = match out {
            Some(object) => import::tensor(object)?.map(|tensor| (object.clone(), tensor)),
            None => None,
        };
        let refused = |text: &str| Err(PyValueError::new_err(text.to_owned()));
        let device = match (wanted, &out) {
            (Some(None), Some(_)) => {
                return refused("device=\"cpu\", and out= is on a GPU: give one of them");
            }
            (Some(Some(_)), None) if arguments.out.is_some() => {
                return refused("out= is on the CPU: give memory of the device, or device= without out=");
            }
            (Some(Some(device)), _) => device,
            (_, Some((_, tensor))) => tensor.device(),
            _ if stream.is_some() => {
                return refused("stream= is for device=\"cuda:0\", and for out= on a GPU");
            }
            // On the CPU the host decompresses, as these say.
            _ if decompress.is_none_or(|decompress| ["host", "auto"].contains(&decompress)) => {
                return Ok(None);
            }
            _ => return refused("decompress=\"device\" is for device=\"cuda:0\", and for out= on a GPU"),
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

    /// What is given back for `tensor`, which was read.
    fn answer(&self, py: Python<'py>, tensor: zarrow_cuda::DeviceTensor) -> PyResult<Bound<'py, PyAny>> {
        if let Some((object, _)) = &self.out {
            return Ok(object.clone());
        }
        if let Some(stream) = self.order.stream {
            // Its memory is not freed before what the stream does with it.
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
        let elements = match elements {
            ElementPart::Whole(array) => Elements::Whole(array),
            ElementPart::Field(field) => Elements::Field(field),
        };
        let out = self.out.as_ref().map(|(_, tensor)| tensor);
        let (order, route) = (self.order, self.route);
        let tensor = interruptible_with(py, |interrupt| {
            order.run(out, || {
                let options = interrupt.into();
                let read = zarrow_cuda::read_routed(elements, selection, order.device, out, route, &options)?;
                Ok(read.0)
            })
        })?;
        self.answer(py, tensor)
    }

    /// Reads all items: to one tensor with a new first axis where they have one type and shape, else to a list.
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
            let text = "out= is for items of one type and shape: read these without it";
            return Err(PyValueError::new_err(text));
        }
        let (order, route, out) = (self.order, self.route, self.out.as_ref().map(|(_, tensor)| tensor));
        let batch = interruptible_with(py, |interrupt| {
            order.run(out, || {
                if let Some((dtype, shape)) = stacked {
                    let shape = [&[items.len() as u64][..], shape].concat();
                    let batch = match out {
                        Some(out) => out.clone(),
                        None => zarrow_cuda::DeviceTensor::empty(order.device, &shape, dtype.clone())?,
                    };
                    let items: Vec<_> =
                        items.iter().map(|(array, selection)| (&**array, selection)).collect();
                    zarrow_cuda::read_many_routed(&items, &batch, route, &interrupt.into())?;
                    return Ok(vec![batch]);
                }
                let read = |(array, selection): &(Arc<Array>, Selection)| {
                    let options = interrupt.into();
                    let read =
                        zarrow_cuda::read_routed(&**array, selection, order.device, None, route, &options);
                    read.map(|(tensor, _)| tensor)
                };
                items.iter().map(read).collect()
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

/// Refuses layouts that a device has none of.
fn check_layout(py: Python<'_>, dtype: &DataType) -> PyResult<()> {
    let how = match dtype {
        DataType::Optional(_) => "read without device=, and hand .data and .mask to zarrow.gpu.asarray()",
        _ if dtype.item_size().is_none() => "read without device=",
        _ => return Ok(()),
    };
    Err(unsupported(py, format!("elements of {dtype} have no layout on a device: {how}")))
}

/// The current stream of the library that `object` is of, where it is known (step 2).
fn current_stream(object: &Bound<'_, PyAny>, device: &Device) -> PyResult<Option<Stream>> {
    let py = object.py();
    let module: String = object.get_type().getattr("__module__")?.extract().unwrap_or_default();
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    match module.split('.').next() {
        Some("torch") => match modules.get_item("torch.cuda")? {
            Some(cuda) => {
                let stream = cuda.call_method1("current_stream", (device.ordinal(),))?;
                arguments::of_handle(&stream.getattr("cuda_stream")?).map(Some)
            }
            None => Ok(None),
        },
        Some("cupy") => match modules.get_item("cupy.cuda")? {
            Some(cuda) => {
                arguments::of_handle(&cuda.call_method0("get_current_stream")?.getattr("ptr")?).map(Some)
            }
            None => Ok(None),
        },
        _ => Ok(None),
    }
}
