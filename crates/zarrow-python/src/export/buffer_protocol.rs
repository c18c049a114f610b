//! The buffer protocol over a shared tensor.
//!
//! 1. An unsupported request (writable, contiguous, a format for a type without one) is a `BufferError`. Without
//!    `PyBUF_ND` the consumer takes all bytes as one run: the view has 0 axes, as in NumPy.
//! 2. The view's shape, byte strides and format are in a box behind `internal`; the view's reference to the Python
//!    object keeps the tensor alive.
//! 3. The consumer releases the view once, which frees the box.
//!
//! Source: PEP 3118 and "Buffer Protocol" of the C API.

use crate::python::error::{exchange, warning};
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use zarrow_array::shape::is_c_contiguous;
use zarrow_array::{DataType, SharedTensor};

/// The box of step 2.
struct Geometry {
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
    format: CString,
}

/// Fills `view` with the memory of `tensor`, held by `owner`.
///
/// # Safety
/// `view` must point to a writable `Py_buffer`, and `owner` must keep `tensor` alive.
pub unsafe fn fill(
    owner: Bound<'_, PyAny>,
    tensor: &SharedTensor,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let asks = |flag: c_int| flags & flag == flag;
    let checked = check(owner.py(), tensor, &asks).and_then(|()| check_torch(&owner, tensor, flags));
    if let Err(refusal) = checked {
        // SAFETY: the caller passes a writable view; a refused view has no owner.
        unsafe { (*view).obj = null_mut() };
        return Err(refusal);
    }
    let item_size = tensor.item_size() as ffi::Py_ssize_t;
    let ndim = if asks(ffi::PyBUF_ND) { tensor.shape().len() } else { 0 };
    // Without axes both must be null.
    let has_axes = ndim > 0;
    let mut geometry = Box::new(Geometry {
        shape: tensor.shape().iter().map(|extent| *extent as ffi::Py_ssize_t).collect(),
        strides: strides(tensor, &asks),
        format: format(tensor.dtype()).unwrap_or_default(),
    });
    let filled = ffi::Py_buffer {
        buf: tensor.pointer().as_ptr().cast(),
        len: tensor.nbytes() as ffi::Py_ssize_t,
        itemsize: item_size,
        readonly: c_int::from(tensor.is_read_only()),
        ndim: ndim as c_int,
        format: if asks(ffi::PyBUF_FORMAT) { geometry.format.as_ptr().cast_mut() } else { null_mut() },
        shape: if has_axes { geometry.shape.as_mut_ptr() } else { null_mut() },
        strides: if has_axes && asks(ffi::PyBUF_STRIDES) {
            geometry.strides.as_mut_ptr()
        } else {
            null_mut()
        },
        internal: Box::into_raw(geometry).cast(),
        obj: owner.into_ptr(),
        ..ffi::Py_buffer::new()
    };
    // SAFETY: the caller passes a writable view.
    unsafe { view.write(filled) };
    Ok(())
}

thread_local! {
    /// Address of the tensor that this thread last requested a buffer from.
    static LAST_REQUEST: Cell<Request> = const { Cell::new(Request::Other) };
}

/// Requests that identify `torch.asarray`.
#[derive(Clone, Copy, PartialEq)]
enum Request {
    Other,
    /// Type, shape and strides: PyTorch takes the type from here since 2.15, and drops the rest.
    Described(*mut ffi::PyObject),
    /// The refused request for writable bytes, after which PyTorch asks for read-only bytes.
    Refused(*mut ffi::PyObject),
}

/// Refuses `torch.asarray(tensor)`, which requests bytes and turns them into one axis of float32 or of the given
/// dtype. Other consumers of writable bytes, such as `readinto`, get a warning if PyTorch is imported.
fn check_torch(owner: &Bound<'_, PyAny>, tensor: &SharedTensor, flags: c_int) -> PyResult<()> {
    let (py, address) = (owner.py(), owner.as_ptr());
    let described = ffi::PyBUF_FORMAT | ffi::PyBUF_STRIDES;
    let request = if flags == described { Request::Described(address) } else { Request::Other };
    let last = LAST_REQUEST.replace(request);
    let message = "torch.asarray(tensor) would drop the shape and type of a Tensor: type \
                   tensor.torch(), or memoryview(tensor) where bytes are wanted";
    if flags == ffi::PyBUF_SIMPLE && last == Request::Refused(address) {
        return Err(exchange(py, "needs_copy", message));
    }
    let is_flat = tensor.shape().len() == 1;
    let keeps_type = last == Request::Described(address);
    if flags != ffi::PyBUF_WRITABLE || is_flat && (keeps_type || tensor.item_size() == 1) {
        return Ok(());
    }
    let sys = py.import("sys")?;
    if !sys.getattr("modules")?.contains("torch")? {
        return Ok(());
    }
    // PyTorch discards this error's message, but not a warning.
    warning(py, message)?;
    let caller = sys.call_method0("_getframe")?.getattr("f_code")?.getattr("co_names")?;
    if keeps_type || caller.contains("asarray")? {
        LAST_REQUEST.set(Request::Refused(address));
        return Err(exchange(py, "needs_copy", message));
    }
    Ok(())
}

/// Step 3: frees the box.
///
/// # Safety
/// `view` must have been filled by [`fill`], and not have been released.
pub unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `fill` stored the box there, and this is the only release.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Geometry>()) });
}

/// Step 1: checks the request.
fn check(py: Python<'_>, tensor: &SharedTensor, asks: &dyn Fn(c_int) -> bool) -> PyResult<()> {
    if asks(ffi::PyBUF_WRITABLE) && tensor.is_read_only() {
        return Err(exchange(py, "read_only", "the memory is read-only: call .copy() first"));
    }
    if asks(ffi::PyBUF_FORMAT) && format(tensor.dtype()).is_none() {
        let message = format!("the buffer protocol has no type for {}: call .numpy()", tensor.dtype());
        return Err(exchange(py, "no_such_type", message));
    }
    // All requirements must hold; a consumer without strides only accepts C order.
    let fits = (!asks(ffi::PyBUF_ANY_CONTIGUOUS) || tensor.is_c_contiguous() || is_fortran(tensor))
        && (!asks(ffi::PyBUF_F_CONTIGUOUS) || is_fortran(tensor))
        && ((asks(ffi::PyBUF_STRIDES) && !asks(ffi::PyBUF_C_CONTIGUOUS)) || tensor.is_c_contiguous());
    if fits {
        Ok(())
    } else {
        Err(exchange(py, "needs_copy", "the tensor is not contiguous: call .copy() first"))
    }
}

/// Returns whether the elements are contiguous in Fortran order.
fn is_fortran(tensor: &SharedTensor) -> bool {
    let reversed = |axes: &[i64]| axes.iter().rev().copied().collect::<Vec<i64>>();
    is_c_contiguous(&reversed(tensor.shape()), &reversed(tensor.strides()))
}

/// Returns the byte strides. In contiguous arrays, axes of length 0 or 1 get the stride implied by their
/// neighbours, whatever the tensor's own is: some consumers check it.
fn strides(tensor: &SharedTensor, asks: &dyn Fn(c_int) -> bool) -> Vec<ffi::Py_ssize_t> {
    let item_size = tensor.item_size() as ffi::Py_ssize_t;
    let shape = tensor.shape().iter().map(|extent| *extent as ffi::Py_ssize_t);
    let mut next = item_size;
    let mut step = |extent: ffi::Py_ssize_t| {
        let stride = next;
        // Without elements the stride is arbitrary.
        next = next.wrapping_mul(extent);
        stride
    };
    let c_order = tensor.is_c_contiguous();
    if is_fortran(tensor) && (asks(ffi::PyBUF_F_CONTIGUOUS) || !c_order) {
        shape.map(&mut step).collect()
    } else if c_order {
        let mut strides: Vec<ffi::Py_ssize_t> = shape.rev().map(&mut step).collect();
        strides.reverse();
        strides
    } else {
        tensor.strides().iter().map(|stride| *stride as ffi::Py_ssize_t * item_size).collect()
    }
}

/// Returns the format string of the elements.
fn format(data_type: &DataType) -> Option<CString> {
    CString::new(data_type.pep3118()?).ok()
}
