//! Arrays of other libraries on a device, as ours: the same address. Nothing is copied there.
//!
//! 1. Tensors of ours are taken as they are.
//! 2. DLPack: the producer is told our stream, and orders what it did before it.
//! 3. `__cuda_array_interface__`, where there is no DLPack: our stream waits for the stream that it names. The memory is
//!    kept by the object.
//!
//! Sources: array API, `__dlpack__`; Numba, "CUDA Array Interface (Version 3)".

use super::arguments;
use super::tensor::DeviceTensor;
use crate::export::capsule::{self, Consumed};
use crate::export::{data_type, numpy};
use crate::layout::decoded_array::DecodedArray;
use crate::python::error::{Raise, byte_order, exchange, unsupported};
use crate::python::kept_object::KeptObject;
use crate::python::made_once::name;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use zarrow_array::DataType;
use zarrow_array::import::element::Element;
use zarrow_cuda::Device;
use zarrow_cuda::import::{self, Interface};
use zarrow_dlpack::{DLDeviceType, DLPackVersion};

/// Whether the memory of `object` is on a device.
pub fn is_on_device(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<DeviceTensor>() {
        return Ok(true);
    }
    let is_of_host = object.is_none()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<DecodedArray>()
        || numpy::is_array(object)?
        || numpy::is_scalar(object)?;
    if is_of_host {
        return Ok(false);
    }
    Ok(dlpack_device(object)?.is_some() || interface(object)?.is_some())
}

/// The tensor of the memory of `object`; `None` where it is on the host (steps 1 to 3).
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<zarrow_cuda::DeviceTensor>> {
    let py = object.py();
    if let Ok(ours) = object.cast::<DeviceTensor>() {
        return ours.get().on_device(py).cloned().map(Some);
    }
    if !is_on_device(object)? {
        return Ok(None);
    }
    if let Some(device) = dlpack_device(object)? {
        return by_dlpack(object, device).map(Some);
    }
    match interface(object)? {
        Some(interface) => by_interface(object, &interface).map(Some),
        None => Ok(None),
    }
}

/// The device of an object that speaks DLPack, where it is a CUDA device.
fn dlpack_device(object: &Bound<'_, PyAny>) -> PyResult<Option<i32>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(name!(py, "__dlpack_device__"))? else { return Ok(None) };
    // What has no device of DLPack's, as a tensor of PyTorch's without memory, is left to others.
    let Ok((kind, number)) = method.call0().and_then(|pair| pair.extract::<(i32, i32)>()) else {
        return Ok(None);
    };
    let is_cuda = kind == DLDeviceType::CUDA || kind == DLDeviceType::CUDA_MANAGED;
    Ok(is_cuda.then_some(number))
}

fn interface<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let found = object.getattr_opt(name!(object.py(), "__cuda_array_interface__"))?;
    Ok(found.and_then(|found| found.cast_into::<PyDict>().ok()))
}

/// Step 2.
fn by_dlpack(object: &Bound<'_, PyAny>, number: i32) -> PyResult<zarrow_cuda::DeviceTensor> {
    let py = object.py();
    let ordinal = usize::try_from(number).unwrap_or(usize::MAX);
    let device = py.detach(|| Device::get(ordinal)).raise(py)?;
    let options = PyDict::new(py);
    options.set_item("stream", device.stream().number())?;
    options.set_item("max_version", (DLPackVersion::CURRENT_MAJOR, DLPackVersion::CURRENT_MINOR))?;
    let method = object.getattr("__dlpack__")?;
    let capsule = match method.call((), Some(&options)) {
        // Producers of before DLPack 1.0 know no versions.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            options.del_item("max_version")?;
            method.call((), Some(&options))?
        }
        answer => answer?,
    };
    let tensor = match capsule::consume(&capsule)? {
        Consumed::Versioned(foreign) => import::versioned(foreign).raise(py)?,
        Consumed::Legacy(foreign) => import::legacy(foreign).raise(py)?,
    };
    // JAX's arrays never change, which not all of its capsules say.
    let module: String = object.get_type().getattr("__module__")?.extract().unwrap_or_default();
    match module.split('.').next() {
        Some("jax" | "jaxlib") => tensor.broadcast_to(tensor.shape()).raise(py),
        _ => Ok(tensor),
    }
}

/// Step 3.
fn by_interface(
    object: &Bound<'_, PyAny>,
    interface: &Bound<'_, PyDict>,
) -> PyResult<zarrow_cuda::DeviceTensor> {
    let py = object.py();
    let get = |key: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
        Ok(interface.get_item(key)?.filter(|value| !value.is_none()))
    };
    let need = |key: &str| -> PyResult<Bound<'_, PyAny>> {
        get(key)?.ok_or_else(|| PyTypeError::new_err(format!("__cuda_array_interface__ has no {key}")))
    };
    if get("mask")?.is_some() {
        let message = "the mask of this __cuda_array_interface__ would be lost: give the data and the mask by themselves";
        return Err(exchange(py, "masked", message));
    }
    let (address, read_only): (u64, bool) = need("data")?.extract()?;
    let shape: Vec<i64> = need("shape")?.extract()?;
    let strides: Option<Vec<i64>> = get("strides")?.map(|strides| strides.extract()).transpose()?;
    let dtype = element(object, &need("typestr")?)?;
    let described = Interface { address, shape, strides, dtype, read_only };
    let owner = Box::new(KeptObject::new(object.clone().unbind()));
    // SAFETY: the object keeps the memory that it described while it lives, and allows writing unless it says otherwise:
    // the protocol asks that of it. What it did before is waited for below, before the tensor is used.
    let tensor = unsafe { described.tensor(owner) }.raise(py)?;
    if let Some(stream) = get("stream")? {
        let stream = arguments::numbered(&stream)?;
        tensor.device().order(stream, tensor.device().stream()).raise(py)?;
    }
    Ok(tensor)
}

fn element(object: &Bound<'_, PyAny>, typestr: &Bound<'_, PyAny>) -> PyResult<DataType> {
    let py = object.py();
    let code: String = typestr.extract()?;
    let element = match Element::of_type_string(&code) {
        // Bytes without a meaning: the dtype of the array knows better.
        Some(Element { dtype: DataType::RawBytes { .. }, .. }) if object.hasattr("dtype")? => {
            let dtype = numpy::module(py)?.getattr("dtype")?.call1((object.getattr("dtype")?,))?;
            data_type::of_numpy(&dtype)?
        }
        element => element,
    };
    match element {
        Some(Element { is_swapped: true, .. }) => Err(byte_order(py)),
        Some(element) => Ok(element.dtype),
        None => Err(unsupported(py, format!("elements of type {code} on a device"))),
    }
}

/// `object` as a tensor on a device: the one that is given, else its own, else the first one. What is elsewhere is copied.
pub fn on_device<'py>(
    object: &Bound<'py, PyAny>,
    wanted: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, DeviceTensor>> {
    let py = object.py();
    let wanted = wanted.filter(|wanted| !wanted.is_none());
    if let (Ok(ours), None) = (object.cast::<DeviceTensor>(), wanted) {
        return Ok(ours.clone());
    }
    let wanted = wanted.map(|wanted| arguments::cuda_device(py, Some(wanted))).transpose()?;
    if let Some(tensor) = tensor(object)? {
        let device = wanted.unwrap_or(tensor.device());
        if device.ordinal() == tensor.device().ordinal() {
            return match object.cast::<DeviceTensor>() {
                Ok(ours) => Ok(ours.clone()),
                Err(_) => DeviceTensor::create(py, tensor),
            };
        }
        // Not every pair of devices can copy from one to the other by itself.
        let moved =
            py.detach(|| zarrow_cuda::DeviceTensor::from_host(device, &tensor.to_host()?)).raise(py)?;
        return DeviceTensor::create(py, moved);
    }
    let host = crate::import::array(object, None, None)?;
    let zarrow_array::import::Imported::Tensor(host) = host else {
        let message =
            "text and masked arrays have no layout on a device: copy .data and .mask, or .filled(value)";
        return Err(unsupported(py, message));
    };
    let device = match wanted {
        Some(device) => device,
        None => arguments::cuda_device(py, None)?,
    };
    DeviceTensor::create(py, py.detach(|| zarrow_cuda::DeviceTensor::from_host(device, &host)).raise(py)?)
}
