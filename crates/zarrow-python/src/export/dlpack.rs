//! The methods `__dlpack__`, which exports a tensor in a capsule, and `__dlpack_device__`.
//!
//! Source: array API, `__dlpack__` and `__dlpack_device__`.

use crate::layout::tensor::Tensor;
use crate::python::capsule;
use crate::python::error::{Raise, exchange};
use crate::python::fast_method::{FastMethod, LastTuple, Names, Values};
use crate::python::made_once::made_once;
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use std::ffi::CStr;
use zarrow_array::export::dlpack;
use zarrow_array::fork::OnceCell;
use zarrow_dlpack::DLDevice;

/// `Tensor.__dlpack__`.
pub struct Dlpack;

impl FastMethod<4> for Dlpack {
    type Class = Tensor;
    const NAME: &'static CStr = c"__dlpack__";
    const DOC: &'static str = concat!(
        "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n",
        help!("Tensor.__dlpack__"),
        "\0",
    );
    const PARAMETERS: [&'static str; 4] = ["max_version", "dl_device", "copy", "stream"];
    const POSITIONAL: usize = 0;

    fn names() -> &'static Names<4> {
        static NAMES: Names<4> = Names::new();
        &NAMES
    }

    fn answer<'py>(tensor: &Bound<'py, Tensor>, values: Values<'_, 'py, 4>) -> PyResult<Bound<'py, PyAny>> {
        let [max_version, dl_device, copy, stream] = values;
        let (py, tensor) = (tensor.py(), tensor.get());
        if let Some(stream) = stream {
            if !stream.is_instance_of::<PyInt>() {
                let message = format!("expected stream=None or an integer, got {}", stream.get_type());
                return Err(PyTypeError::new_err(message));
            }
            return Err(exchange(
                py,
                "stream",
                "the memory is on the CPU, which has no streams: expected stream=None",
            ));
        }
        if let Some(device) = dl_device {
            let (device_type, device_id) = device.extract()?;
            let device = DLDevice::new(device_type, device_id);
            if device != DLDevice::CPU {
                let message = format!(
                    "the memory is on the CPU, not on {device}: copy it there with a library for that device"
                );
                return Err(exchange(py, "device", message));
            }
        }
        let versioned = max_version.map(major).transpose()?.is_some_and(|major| major >= 1);
        let copy = match copy {
            Some(copy) => copy.extract()?,
            None => false,
        };
        match (copy, versioned) {
            (true, true) => capsule::dlpack(py, dlpack::versioned_copy(&tensor.copied(py)?).raise(py)?),
            (true, false) => capsule::dlpack(py, dlpack::legacy(&tensor.copied(py)?).raise(py)?),
            (false, true) => capsule::dlpack(py, dlpack::versioned(tensor.shared()).raise(py)?),
            (false, false) => capsule::dlpack(py, dlpack::legacy(tensor.shared()).raise(py)?),
        }
    }
}

/// `Tensor.__dlpack_device__`.
pub struct DlpackDevice;

impl FastMethod<0> for DlpackDevice {
    type Class = Tensor;
    const NAME: &'static CStr = c"__dlpack_device__";
    const DOC: &'static str =
        concat!("__dlpack_device__($self, /)\n--\n\n", help!("Tensor.__dlpack_device__"), "\0");
    const PARAMETERS: [&'static str; 0] = [];
    const POSITIONAL: usize = 0;

    fn names() -> &'static Names<0> {
        static NAMES: Names<0> = Names::new();
        &NAMES
    }

    fn answer<'py>(tensor: &Bound<'py, Tensor>, _: Values<'_, 'py, 0>) -> PyResult<Bound<'py, PyAny>> {
        static CPU: OnceCell<Py<PyTuple>> = OnceCell::new();
        let py = tensor.py();
        let device = (DLDevice::CPU.device_type, DLDevice::CPU.device_id);
        let made = made_once(&CPU, || device.into_pyobject(py).map(Bound::unbind))?;
        Ok(made.bind(py).clone().into_any())
    }
}

/// Returns the major version of a version tuple.
fn major(version: Borrowed<'_, '_, PyAny>) -> PyResult<u64> {
    static LAST: LastTuple = LastTuple::new();
    let version = version.cast::<PyTuple>()?;
    // A malformed tuple raises Python's own error.
    LAST.number(&version, || version.extract::<(u32, u32)>().map(|(major, _)| u64::from(major)))
}
