//! `Array.read` with its options.

use crate::device::read::{Arguments, Destination};
use crate::export::{data_type, numpy};
use crate::index::advanced::Indexing;
use crate::index::field::ElementPart;
use crate::layout::decoded_array::wrap;
use crate::layout::tensor::Tensor;
use crate::node::current::Current;
use crate::node::missing;
use crate::node::out::read_selection;
use crate::python::error::Raise;
use crate::python::importing::import;
use crate::python::interrupt::interruptible;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyEllipsis};

/// Message for `progress` with reads that are not reported.
pub const UNREPORTED: &str =
    "progress= is for reads to the CPU: pass it without mmap=, device=, stream= and decompress=";

const MASKED_OUT: &str = "out= and mask= exclude each other, because a masked result is new memory";

/// The options of a read, as Python passes them.
pub struct Reading<'a, 'py> {
    /// Memory to read into.
    pub out: Option<Bound<'py, PyAny>>,
    /// Number type to read as.
    pub dtype: Option<Bound<'py, PyAny>>,
    /// Whether to map the store's files.
    pub mmap: bool,
    /// Values of missing elements.
    pub mask: Option<Bound<'py, PyAny>>,
    /// Conventions to decode by.
    pub decode: Option<Bound<'py, PyAny>>,
    /// Memory layout of the result.
    pub order: &'a str,
    /// The device to read to.
    pub device: Option<Bound<'py, PyAny>>,
    /// The stream that uses the result.
    pub stream: Option<Bound<'py, PyAny>>,
    /// Where chunks are decompressed.
    pub decompress: Option<&'a str>,
    /// How progress is reported.
    pub progress: Option<Bound<'py, PyAny>>,
}

impl<'py> Reading<'_, 'py> {
    /// Reads `selection` of `current`, the state of the Python array `array`; the whole array without a selection.
    pub fn read(
        self,
        array: &Bound<'py, PyAny>,
        current: &Current<zarrow::Array>,
        selection: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = array.py();
        let Reading { out, dtype, mmap, mask, decode, order, device, stream, decompress, progress } = self;
        if order != "C" && (out.is_some() || mmap || mask.is_some()) {
            let text = "order= needs new memory without a mask: pass it without out=, mmap= and mask=";
            return Err(PyValueError::new_err(text));
        }
        if out.is_some() && mmap {
            return Err(PyValueError::new_err(
                "out= and mmap=True exclude each other, because a mapping is new memory",
            ));
        }
        if dtype.is_some() && (mmap || mask.is_some() || decode.is_some()) {
            let text = "dtype= casts the stored elements: pass it without mmap=, mask= and decode=";
            return Err(PyValueError::new_err(text));
        }
        let index = selection.unwrap_or_else(|| PyEllipsis::get(py).to_owned().into_any());
        let is_on_device = device.is_some() || stream.is_some() || decompress.is_some();
        if progress.is_some() && (mmap || is_on_device) {
            return Err(PyValueError::new_err(UNREPORTED));
        }
        if let Some(decode) = decode {
            let others = [
                ("out", out),
                ("mmap", mmap.then(|| true.into_bound_py_any(py)).transpose()?),
                ("mask", mask),
                ("order", (order != "C").then(|| order.into_bound_py_any(py)).transpose()?),
                ("device", device),
                ("stream", stream),
                ("decompress", decompress.map(|route| route.into_bound_py_any(py)).transpose()?),
            ];
            let arguments = (array, index, decode, others.into_py_dict(py)?, progress);
            return import(py, "zarrow.arrays.cf")?.call_method1("read", arguments);
        }
        if let Some(progress) = progress {
            if out.is_some() && mask.is_some() {
                return Err(PyValueError::new_err(MASKED_OUT));
            }
            let read = import(py, "zarrow.api.reported_reads")?.getattr("read_selection")?;
            return read.call1((array, index, out, dtype, mask, order, progress));
        }
        if let Some(dtype) = dtype {
            let is_on_device = device.is_some();
            let casting = import(py, "zarrow.arrays.casting")?;
            let (part, _) = ElementPart::of(current.get(), &index)?;
            let own = numpy::dtype(py, part.data_type())?;
            let wanted = casting.call_method1("read_type", (own, dtype))?;
            if part.field.is_some() && !is_on_device {
                let nothing = py.None();
                return casting.call_method1("read_then_cast", (array, index, wanted, out, order, nothing));
            }
            let read = read_as(current, &wanted).and_then(|cast| {
                let out = out.clone();
                let options = Reading {
                    out,
                    dtype: None,
                    mmap,
                    mask: None,
                    decode: None,
                    order,
                    device,
                    stream,
                    decompress,
                    progress: None,
                };
                options.read(array, &cast, Some(index.clone()))
            });
            return match read {
                Err(error) if !is_on_device && is_castable_later(py, &error)? => {
                    casting.call_method1("read_then_cast", (array, index, wanted, out, order, error))
                }
                read => read,
            };
        }
        let (device, stream) = (device.as_ref(), stream.as_ref());
        let arguments = Arguments { device, out: out.as_ref(), stream, decompress };
        if let Some(place) = Destination::from_arguments(&arguments)? {
            if mmap || mask.is_some() || order != "C" {
                let text = "mmap=, mask= and order= are not supported on a device: pass device= without them";
                return Err(PyValueError::new_err(text));
            }
            return current.read_by(&index, Indexing::Plain, None, Some(place));
        }
        let (elements, selection) = current.selected(&index, Indexing::Plain)?;
        if is_column_major(order, &elements)? {
            let read = |interrupt: &dyn Fn() -> bool| {
                elements.request(&selection)?.cancel(interrupt).column_major().read()
            };
            return Ok(Tensor::create(py, interruptible(py, read)?)?.into_any());
        }
        if let Some(mask) = mask {
            if out.is_some() {
                return Err(PyValueError::new_err(MASKED_OUT));
            }
            let missing = missing::values(elements.metadata(), &mask)?;
            let read = |interrupt: &dyn Fn() -> bool| {
                elements.request(&selection)?.cancel(interrupt).missing(&missing).read()
            };
            return wrap(py, interruptible(py, read)?);
        }
        if mmap && let Some(mapped) = py.detach(|| elements.request(&selection)?.map()).raise(py)? {
            return Ok(Tensor::create(py, mapped)?.into_any());
        }
        read_selection(py, &elements, &selection, out)
    }
}

/// Returns the array read as the NumPy dtype `wanted`.
fn read_as(current: &Current<zarrow::Array>, wanted: &Bound<'_, PyAny>) -> PyResult<Current<zarrow::Array>> {
    let (py, array) = (wanted.py(), current.get());
    let element = data_type::from_numpy(wanted)?.ok_or_else(|| data_type::unknown(wanted))?;
    Ok(Current::new(py.detach(|| array.read_as(&element.dtype)).raise(py)?))
}

/// Whether a read failed because chunks cannot be cast while they are decoded: a type that the engine does not compute
/// with, or an integer that does not fit, which may lie outside of the selection.
fn is_castable_later(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let kind = error.value(py).getattr_opt("kind")?;
    let kind = kind.and_then(|kind| kind.extract::<String>().ok());
    Ok(matches!(kind.as_deref(), Some("bad_value" | "unsupported" | "data_type")))
}

/// Returns whether `order` means Fortran order; "A" is the stored order.
fn is_column_major(order: &str, elements: &ElementPart) -> PyResult<bool> {
    match order {
        "C" => Ok(false),
        "F" => Ok(true),
        "A" => Ok(elements.is_tensor() && elements.array.is_stored_column_major()),
        other => {
            let text = format!("order is {other:?}, expected \"C\", \"F\" or \"A\" (the stored order)");
            Err(PyValueError::new_err(text))
        }
    }
}
