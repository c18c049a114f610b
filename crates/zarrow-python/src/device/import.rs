//! Import of other libraries' arrays on a device, without a copy.
//!
//! 1. Our own tensors are used directly.
//! 2. DLPack: the producer gets our stream, and orders its earlier work before it. PyTorch only exports memory of
//!    its current device, so the tensor's device is made current.
//! 3. `__cuda_array_interface__`, if there is no DLPack: our stream waits for the named stream; before version 3,
//!    which introduced it, for the legacy default stream. The object keeps the memory alive.
//! 4. `__arrow_c_device_array__`, if there is neither (see `arrow_import`).
//!
//! Sources: array API, `__dlpack__`; Numba, "CUDA Array Interface (Version 3)".

use super::tensor::DeviceTensor;
use super::{arguments, arrow_import};
use crate::export::{data_type, numpy};
use crate::layout::decoded_array::DecodedArray;
use crate::python::capsule::{self, Consumed};
use crate::python::error::{Attempt, Raise, byte_order, exchange, unsupported};
use crate::python::gil::Kept;
use crate::python::importing::import;
use crate::python::made_once::name;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use zarrow_array::DataType;
use zarrow_array::import::element::Element;
use zarrow_cuda::import::{self as cuda, Interface};
use zarrow_cuda::{Device, Stream};
use zarrow_dlpack::{DLDeviceType, DLPackVersion};

/// Adds the static methods that import arrays to the class of tensors on a device.
pub fn add_to_class(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<DeviceTensor>();
    class.setattr("_of", wrap_pyfunction!(on_device, module)?)?;
    class.setattr("_is_on_device", wrap_pyfunction!(is_on_device, module)?)
}

/// Return whether the memory of any array is on a device.
#[pyfunction(name = "_is_on_device")]
pub fn is_on_device(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<DeviceTensor>() {
        return Ok(true);
    }
    if is_of_host(object)? {
        return Ok(false);
    }
    Ok(match dlpack_device(object)? {
        Some(device) => is_cuda(device) || interface(object)?.is_some(),
        None => interface(object)?.is_some() || arrow_import::on_cuda(object)?.is_some(),
    })
}

/// Returns whether the type of `object` implies host memory.
fn is_of_host(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_none()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<DecodedArray>()
        || numpy::is_array(object)?
        || numpy::is_scalar(object)?)
}

/// Imports the memory of `object`; `None` if it is on the host (steps 1 to 4).
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Option<zarrow_cuda::DeviceTensor>> {
    let py = object.py();
    if let Ok(ours) = object.cast::<DeviceTensor>() {
        return ours.get().on_device(py).cloned().map(Some);
    }
    if is_of_host(object)? {
        return Ok(None);
    }
    let device = dlpack_device(object)?;
    if let Some(device) = device.filter(|device| is_cuda(*device)) {
        return by_dlpack(object, device.1).map(Some);
    }
    if let Some(interface) = interface(object)? {
        return by_interface(object, &interface).map(Some);
    }
    match device {
        // DLPack reported another device.
        Some(_) => Ok(None),
        None => arrow_import::on_cuda(object)?.map(arrow_import::Capsules::tensor).transpose(),
    }
}

/// Returns the type and index of a DLPack object's device.
fn dlpack_device(object: &Bound<'_, PyAny>) -> PyResult<Option<(i32, i32)>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(name!(py, "__dlpack_device__"))? else { return Ok(None) };
    // For objects without a DLPack device, such as PyTorch tensors without storage, other protocols are tried.
    method.call0().and_then(|pair| pair.extract()).attempt(object.py())
}

fn is_cuda((kind, _): (i32, i32)) -> bool {
    kind == DLDeviceType::CUDA || kind == DLDeviceType::CUDA_MANAGED
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
    let ask = || match method.call((), Some(&options)) {
        // Producers before DLPack 1.0 do not accept `max_version`.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            options.del_item("max_version")?;
            method.call((), Some(&options))
        }
        answer => answer,
    };
    let library = library(object)?;
    let capsule = match ask() {
        Err(error) if library == "torch" && error.is_instance_of::<PyBufferError>(py) => {
            on_current_device_of_torch(py, number, ask)?
        }
        answer => answer?,
    };
    let tensor = match capsule::consume(&capsule)? {
        Consumed::Versioned(foreign) => py.detach(|| cuda::versioned(foreign)).raise(py)?,
        Consumed::Legacy(foreign) => py.detach(|| cuda::legacy(foreign)).raise(py)?,
    };
    // JAX's arrays are immutable, but not all of its capsules are flagged as read-only.
    match library.as_str() {
        "jax" | "jaxlib" => tensor.broadcast_to(tensor.shape()).raise(py),
        _ => Ok(tensor),
    }
}

/// Returns the top-level package of an object's type.
fn library(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let module: String = object.get_type().getattr("__module__")?.extract().unwrap_or_default();
    Ok(module.split('.').next().unwrap_or_default().to_owned())
}

/// Runs `work` with this device as PyTorch's current one.
fn on_current_device_of_torch<'py>(
    py: Python<'py>,
    number: i32,
    work: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let device = import(py, "torch")?.getattr("cuda")?.call_method1("device", (number,))?;
    device.call_method0("__enter__")?;
    let answer = work();
    device.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
    answer
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
        let message = "importing this __cuda_array_interface__ would drop its mask: pass the data and the mask separately";
        return Err(exchange(py, "masked", message));
    }
    let (address, read_only): (u64, bool) = need("data")?.extract()?;
    let shape: Vec<i64> = need("shape")?.extract()?;
    let strides: Option<Vec<i64>> = get("strides")?.map(|strides| strides.extract()).transpose()?;
    let dtype = element(object, &need("typestr")?)?;
    let (protocol, device) = ("__cuda_array_interface__", None);
    let described = Interface { protocol, device, address, shape, strides, dtype, read_only };
    let owner = Box::new(Kept::new(object.clone().unbind()));
    // SAFETY: the protocol requires the object to keep the memory alive, and to allow writing unless flagged
    // read-only. Earlier work on the memory is awaited below, before the tensor is used.
    let tensor = py.detach(|| unsafe { described.tensor(owner) }).raise(py)?;
    let version: u32 = get("version")?.map_or(Ok(0), |version| version.extract())?;
    let stream = match get("stream")? {
        Some(stream) => Some(arguments::numbered(&stream)?),
        None => (version < 3).then_some(Stream::LEGACY),
    };
    if let Some(stream) = stream {
        py.detach(|| tensor.device().order(stream, tensor.device().stream())).raise(py)?;
    }
    Ok(tensor)
}

fn element(object: &Bound<'_, PyAny>, typestr: &Bound<'_, PyAny>) -> PyResult<DataType> {
    let py = object.py();
    let code: String = typestr.extract()?;
    let element = match Element::from_type_string(&code) {
        // Raw bytes: the array's dtype is more precise.
        Some(Element { dtype: DataType::RawBytes { .. }, .. }) if object.hasattr("dtype")? => {
            let dtype = numpy::module(py)?.getattr("dtype")?.call1((object.getattr("dtype")?,))?;
            data_type::from_numpy(&dtype)?
        }
        element => element,
    };
    match element {
        Some(Element { is_swapped: true, .. }) => Err(byte_order(py)),
        Some(element) => Ok(element.dtype),
        None => Err(unsupported(py, format!("elements of type {code} on a device"))),
    }
}

/// Convert any array to a tensor on a device, by default its own or the first one. Memory elsewhere is copied.
#[pyfunction(name = "_of", signature = (object, wanted = None))]
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
        // Not every pair of devices supports direct copies.
        let moved =
            py.detach(|| zarrow_cuda::DeviceTensor::from_host(device, &tensor.to_host()?)).raise(py)?;
        return DeviceTensor::create(py, moved);
    }
    let host = crate::import::array(object, None, None)?;
    let zarrow_array::import::Imported::Tensor(host) = host else {
        let message =
            "text and masked arrays are not supported on a device: copy .data and .mask, or .filled(value)";
        return Err(unsupported(py, message));
    };
    let device = match wanted {
        Some(device) => device,
        None => arguments::cuda_device(py, None)?,
    };
    DeviceTensor::create(py, py.detach(|| zarrow_cuda::DeviceTensor::from_host(device, &host)).raise(py)?)
}
