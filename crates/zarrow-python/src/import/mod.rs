//! Import of other libraries' arrays to the four layouts: for `asarray` and related functions, for `out=` and for
//! values to write. Arrays on a GPU: `device/import.rs`.
//!
//! The protocols are tried in order, and the first that can describe the array gives its memory:
//!
//! 1. Our own arrays are used directly.
//! 2. NumPy arrays of numbers by the fields of their C struct; then the buffer protocol; NumPy arrays of types without
//!    a buffer format give their address.
//! 3. DLPack by the type's table of C functions.
//! 4. Arrow, the only protocol with missing elements, text and times. If Arrow describes a table, the object may
//!    still be an array to NumPy: then `__array__` is tried.
//! 5. DLPack by capsule, then `__array_interface__`.
//! 6. Conversion by pyarrow through `__arrow_array__`, for pandas' own arrays, which may have missing elements;
//!    then conversion by NumPy, through `__array__` or from Python objects.

mod arrow;
mod buffer;
mod buffer_view;
mod dlpack;
mod interface;
mod masked;
mod producer;
pub mod sequence;
pub mod text;
mod torch;

pub use buffer::bytes;

use crate::export::data_type;
use crate::export::numpy;
use crate::export::numpy_api::NumpyApi;
use crate::layout::consumers::introduce;
use crate::layout::decoded_array::DecodedArray;
use crate::layout::masked_tensor::MaskedTensor;
use crate::layout::masked_variable::MaskedVariable;
use crate::layout::tensor::Tensor;
use crate::layout::variable::Variable;
use crate::python::argument::{argument, known};
use crate::python::error::{Attempt, Raise, byte_order, data_type_mismatch, exchange};
use crate::python::importing::import;
use crate::python::interpreter_exit;
use producer::{Family, Producer};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zarrow_array::import::Imported;
use zarrow_array::{Buffer, DataType, SharedTensor, shape};

/// Memory shared by a protocol.
enum SharedMemory {
    /// A tensor over the memory.
    Shared(SharedTensor),
    /// Memory in a form that no tensor supports; it must be copied.
    NotShareable(NotShareable),
}

/// Reason why a tensor cannot share some memory.
#[derive(Clone, Copy)]
enum NotShareable {
    /// The memory is not native-endian.
    ByteOrder,
    /// The strides are not multiples of the element size.
    Strides,
}

impl NotShareable {
    /// Returns the error if copies are forbidden.
    fn refusal(self, py: Python<'_>) -> PyErr {
        match self {
            NotShareable::ByteOrder => byte_order(py),
            NotShareable::Strides => {
                needs_copy(py, "memory with strides that are not multiples of the element size")
            }
        }
    }
}

#[doc = help!("asarray")]
#[pyfunction]
#[pyo3(signature = (x, dtype = None, copy = None, **unknown), text_signature = "(x, dtype=None, copy=None)")]
pub fn asarray<'py>(
    x: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = argument)] copy: Option<bool>,
    unknown: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    interpreter_exit::guard_thread();
    let py = x.py();
    known(py, "asarray", unknown)?;
    if dtype.is_none()
        && copy != Some(true)
        && let Some(tensor) = from_numbers(x)?
    {
        return Ok(tensor);
    }
    let expected = dtype.map(data_type::requested).transpose()?;
    if let Some(ours) = ours(x) {
        check(py, &ours, expected.as_ref())?;
        return if copy == Some(true) { wrap(py, copied(py, ours)?) } else { Ok(x.clone()) };
    }
    let array = theirs(x, expected.as_ref(), copy)?;
    check(py, &array, expected.as_ref())?;
    wrap(py, array)
}

#[doc = help!("from_dlpack")]
#[pyfunction]
#[pyo3(
    signature = (x, dtype = None, *, copy = None, **unknown),
    text_signature = "(x, dtype=None, *, copy=None)"
)]
pub fn from_dlpack<'py>(
    x: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = argument)] copy: Option<bool>,
    unknown: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    interpreter_exit::guard_thread();
    let py = x.py();
    known(py, "from_dlpack", unknown)?;
    let Some(tensor) = dlpack::tensor(x, copy)? else {
        let message = format!("expected a DLPack capsule or an object with __dlpack__, got {}", x.get_type());
        return Err(PyTypeError::new_err(message));
    };
    finish(py, Imported::Tensor(tensor), dtype, copy)
}

#[doc = help!("from_arrow")]
#[pyfunction]
pub fn from_arrow<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    if ours(x).is_some() {
        return Ok(x.clone());
    }
    match arrow::array(x, true)? {
        Some(arrow::Found::Array(array)) => wrap(py, array),
        Some(arrow::Found::OtherType(error)) => Err(error),
        None => {
            let message = format!(
                "expected an object with __arrow_c_array__ or __arrow_c_stream__, got {}",
                x.get_type()
            );
            Err(PyTypeError::new_err(message))
        }
    }
}

#[doc = help!("from_numpy")]
#[pyfunction]
#[pyo3(signature = (x, dtype = None))]
pub fn from_numpy<'py>(
    x: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    interpreter_exit::guard_thread();
    let py = x.py();
    if dtype.is_none()
        && let Some(tensor) = from_numbers(x)?
    {
        return Ok(tensor);
    }
    let array = match Producer::from_object(x)?.family {
        family @ (Family::NumpyArray | Family::NumpyMasked) => shared_numpy(x, family, Some(false))?,
        Family::NumpyScalar => return Err(no_interface(x)),
        _ => match interface::tensor(x)? {
            Some(SharedMemory::Shared(tensor)) => Imported::Tensor(tensor),
            Some(SharedMemory::NotShareable(memory)) => return Err(memory.refusal(py)),
            None => return Err(no_interface(x)),
        },
    };
    finish(py, array, dtype, None)
}

/// Returns the tensor of a NumPy array of numbers by the shortest path, since it is the most frequent case; `None` for other
/// objects.
fn from_numbers<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(SharedMemory::Shared(tensor)) = interface::from_numbers(x)? else { return Ok(None) };
    introduce(x.py())?;
    Ok(Some(Tensor::create(x.py(), tensor)?.into_any()))
}

fn no_interface(object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type();
    PyTypeError::new_err(format!("{kind} has no __array_interface__ with the address of its memory"))
}

/// Returns the memory of `object` as a tensor, without copying or converting anything.
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<SharedTensor> {
    interpreter_exit::guard_thread();
    let found = match ours(object) {
        Some(array) => Some(array),
        None => borrowed(object, Producer::from_object(object)?, Some(false))?,
    };
    let kind = object.get_type();
    match found {
        Some(Imported::Tensor(tensor)) => Ok(tensor),
        Some(_) => Err(PyTypeError::new_err(format!(
            "{kind} has a mask or text, expected plain memory: use zarrow.asarray(x)"
        ))),
        None => Err(PyTypeError::new_err(format!(
            "{kind} exposes no buffer, DLPack, array-interface or Arrow memory"
        ))),
    }
}

/// Imports any array to one of the four layouts. Python objects are converted to the `expected` type.
///
/// The type of other arrays is not checked. `copy` has the meaning of `asarray`'s argument.
pub fn array<'py>(
    object: &Bound<'py, PyAny>,
    expected: Option<&DataType>,
    copy: Option<bool>,
) -> PyResult<Imported> {
    interpreter_exit::guard_thread();
    match ours(object) {
        Some(ours) if copy == Some(true) => copied(object.py(), ours),
        Some(ours) => Ok(ours),
        None => theirs(object, expected, copy),
    }
}

/// Like [`array`], for objects of other libraries.
fn theirs(object: &Bound<'_, PyAny>, expected: Option<&DataType>, copy: Option<bool>) -> PyResult<Imported> {
    let producer = Producer::from_object(object)?;
    match borrowed(object, producer, copy)? {
        Some(borrowed) if copy == Some(true) => copied(object.py(), borrowed),
        Some(borrowed) => Ok(borrowed),
        None => made(object, producer, expected, copy),
    }
}

/// Steps 2 to 5.
fn borrowed(object: &Bound<'_, PyAny>, producer: Producer, copy: Option<bool>) -> PyResult<Option<Imported>> {
    match producer.family {
        family @ (Family::NumpyArray | Family::NumpyMasked) => {
            return shared_numpy(object, family, copy).map(Some);
        }
        Family::NumpyScalar => return Ok(None),
        Family::Torch(_) | Family::Other => {}
    }
    let found = if buffer::is_borrowed(object) { buffer::tensor(object)? } else { None };
    let found = match found {
        Some(found) => Some(found),
        None => {
            if producer.table.is_none() && !has_more_axes(object, producer)? {
                match arrow::array(object, copy != Some(false))? {
                    Some(arrow::Found::Array(array)) => return Ok(Some(array)),
                    Some(arrow::Found::OtherType(error)) => return from_table(object, error, copy).map(Some),
                    None => {}
                }
            }
            match dlpack::by_producer(object, producer, copy)? {
                Some(tensor) => Some(SharedMemory::Shared(tensor)),
                None => interface::tensor(object)?,
            }
        }
    };
    match found {
        Some(SharedMemory::Shared(tensor)) => Ok(Some(Imported::Tensor(tensor))),
        Some(SharedMemory::NotShareable(memory)) if copy == Some(false) => Err(memory.refusal(object.py())),
        Some(SharedMemory::NotShareable(_)) => Ok(Some(Imported::Tensor(turned(object)?))),
        None => Ok(None),
    }
}

/// Returns whether an object has dimensions that its Arrow form would drop: an image has rows of pixels in NumPy,
/// but only pixels in Arrow.
fn has_more_axes(object: &Bound<'_, PyAny>, producer: Producer) -> PyResult<bool> {
    Ok(matches!(producer.family, Family::Other) && object.hasattr("__array_interface__")?)
}

/// Converts a table, or an array that Arrow describes as a table, by NumPy; returns `error` if NumPy finds no
/// common type.
fn from_table(object: &Bound<'_, PyAny>, error: PyErr, copy: Option<bool>) -> PyResult<Imported> {
    let py = object.py();
    if !object.hasattr("__array__")? {
        return Err(error);
    }
    let arguments = PyDict::new(py);
    arguments.set_item("copy", copy)?;
    let made = numpy::module(py)?.getattr("asarray")?.call((object,), Some(&arguments)).attempt(py)?;
    // NumPy turns the fields of a structured column into an additional axis.
    let has_its_axes = |array: &Bound<'_, PyAny>| match object.getattr_opt("shape")? {
        Some(shape) => shape.eq(array.getattr("shape")?),
        None => Ok(true),
    };
    match made {
        Some(array)
            if data_type::from_numpy(&array.getattr("dtype")?)?.is_some() && has_its_axes(&array)? =>
        {
            shared_numpy(&array, Producer::from_object(&array)?.family, copy)
        }
        _ => Err(error),
    }
}

/// Imports a NumPy array in its own memory. If the memory form is unsupported, copies it if `copy` allows that.
fn shared_numpy(array: &Bound<'_, PyAny>, family: Family, copy: Option<bool>) -> PyResult<Imported> {
    let py = array.py();
    if let Family::NumpyMasked = family {
        return masked::array(array, copy);
    }
    NumpyApi::get(py)?;
    let borrowed = match interface::from_numbers(array)? {
        Some(borrowed) => Some(borrowed),
        None => buffer::tensor(array)?,
    };
    let borrowed = match borrowed {
        Some(borrowed) => borrowed,
        None => match interface::from_numpy(array)? {
            Some(borrowed) => borrowed,
            None if copy == Some(false) => {
                return Err(needs_copy(py, "NumPy arrays of objects or text"));
            }
            None => match sequence::masked(array, None)? {
                Some(masked) => return Ok(masked),
                None => return text::array(array, None),
            },
        },
    };
    match borrowed {
        SharedMemory::Shared(tensor) => Ok(Imported::Tensor(tensor)),
        SharedMemory::NotShareable(memory) if copy == Some(false) => Err(memory.refusal(py)),
        SharedMemory::NotShareable(_) => Ok(Imported::Tensor(turned(array)?)),
    }
}

/// Step 6.
fn made(
    object: &Bound<'_, PyAny>,
    producer: Producer,
    expected: Option<&DataType>,
    copy: Option<bool>,
) -> PyResult<Imported> {
    let py = object.py();
    let is_scalar = matches!(producer.family, Family::NumpyScalar);
    let shows_memory = || -> PyResult<bool> {
        // NumPy may know a buffer's element type, for example that of structures.
        Ok(buffer::is_borrowed(object)
            || object.hasattr("__array__")?
            || object.hasattr("__array_interface__")?)
    };
    if is_scalar || !shows_memory()? {
        if copy == Some(false) {
            return Err(needs_copy(py, "an object that is not an array"));
        }
        return sequence::from_python(object, expected);
    }
    // The NumPy form of pandas' integer arrays has floats if an element is missing.
    if matches!(producer.family, Family::Other) && object.hasattr("__arrow_array__")? && copy != Some(false) {
        let arrow = import(py, "pyarrow")?.call_method1("array", (object,))?;
        return theirs(&arrow, expected, copy);
    }
    let arguments = PyDict::new(py);
    arguments.set_item("copy", copy)?;
    let array = numpy::module(py)?.getattr("asarray")?.call((object,), Some(&arguments))?;
    shared_numpy(&array, Producer::from_object(&array)?.family, copy)
}

/// Copies an array of an unsupported memory form by NumPy: native-endian, C order, in our memory.
fn turned(object: &Bound<'_, PyAny>) -> PyResult<SharedTensor> {
    let py = object.py();
    let numpy = numpy::module(py)?;
    let array = numpy.call_method1("asarray", (object,))?;
    let Some(element) = data_type::from_numpy(&array.getattr("dtype")?)? else {
        return Err(data_type::unknown(&array.getattr("dtype")?));
    };
    let extents: Vec<u64> = array.getattr("shape")?.extract()?;
    let nbytes = shape::nbytes(&extents, element.dtype.item_size().unwrap_or(0)).raise(py)?;
    let buffer = Buffer::zeroed(nbytes).raise(py)?;
    let tensor =
        zarrow_array::Tensor::new(buffer, extents, element.dtype).and_then(|tensor| tensor.into_shared());
    let target = Tensor::create(py, tensor.raise(py)?)?;
    numpy.call_method1("copyto", (numpy::view(&target)?, array, "equiv"))?;
    Ok(target.get().shared().clone())
}

/// Copies the elements to our own memory.
fn copied(py: Python<'_>, array: Imported) -> PyResult<Imported> {
    // SAFETY: no other API of the crate writes during the call; a program that concurrently writes through another
    // library copies a mixture of old and new bytes, as with NumPy.
    py.detach(|| unsafe { array.copy() }).raise(py)
}

fn needs_copy(py: Python<'_>, what: &str) -> PyErr {
    exchange(py, "needs_copy", format!("{what} cannot be shared: zarrow.asarray(x) copies"))
}

/// Finishes the functions for a single protocol.
fn finish<'py>(
    py: Python<'py>,
    array: Imported,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(dtype) = dtype {
        check(py, &array, Some(&data_type::requested(dtype)?))?;
    }
    wrap(py, if copy == Some(true) { copied(py, array)? } else { array })
}

fn check(py: Python<'_>, array: &Imported, expected: Option<&DataType>) -> PyResult<()> {
    match expected {
        Some(expected) if expected != array.dtype() => Err(data_type_mismatch(py, expected, array.dtype())),
        _ => Ok(()),
    }
}

/// Step 1.
fn ours(object: &Bound<'_, PyAny>) -> Option<Imported> {
    if !object.is_instance_of::<DecodedArray>() {
        return None;
    }
    if let Ok(tensor) = object.cast::<Tensor>() {
        return Some(Imported::Tensor(tensor.get().shared().clone()));
    }
    if let Ok(variable) = object.cast::<Variable>() {
        return Some(Imported::Variable(variable.get().inner().clone()));
    }
    if let Ok(masked) = object.cast::<MaskedTensor>() {
        let (data, mask) = masked.get().parts();
        return Some(Imported::MaskedTensor(data.clone(), mask.clone()));
    }
    let masked = object.cast::<MaskedVariable>().ok()?;
    Some(Imported::MaskedVariable(masked.get().inner().clone()))
}

/// Creates the Python object of the memory. Nothing is copied.
fn wrap(py: Python<'_>, array: Imported) -> PyResult<Bound<'_, PyAny>> {
    introduce(py)?;
    Ok(match array {
        Imported::Tensor(tensor) => Tensor::create(py, tensor)?.into_any(),
        Imported::Variable(variable) => Variable::create(py, variable)?.into_any(),
        Imported::MaskedTensor(data, mask) => MaskedTensor::from_parts(py, data, mask)?.into_any(),
        Imported::MaskedVariable(masked) => MaskedVariable::create(py, masked)?.into_any(),
    })
}
