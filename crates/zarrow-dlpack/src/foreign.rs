//! Borrowed tensors.
//!
//! 1. The pointer is not NULL; from here on, a handle runs the deleter on every path.
//! 2. The major version is ours; otherwise only the deleter is touched.
//! 3. Device and element type are as expected, and the element type is known.
//! 4. Extents and strides describe bytes that memory can hold (see `layout`); NULL strides mean C order.
//! 5. These bytes, counted from `data + byte_offset`, overflow neither end of the address space.

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use crate::layout::Layout;
use crate::managed::Handle;
use crate::{DLDataType, DLDevice, DLTensor, Error, IS_SUBBYTE_TYPE_PADDED, MAX_NDIM, Managed, READ_ONLY};

/// A checked tensor from another library. Dropping it runs its deleter, on any thread.
///
/// The data is shared with the producer, who only promises to keep it until then: it may be unaligned, it may
/// change at any time, and its elements may overlap (strides of 0).
pub struct Foreign<M: Managed> {
    handle: Handle<M>,
    layout: Layout,
}

/// Consumes the managed tensor at `pointer`, if it is on `expect_device` and has type `expect_dtype`.
///
/// `None` accepts any device, or any type known to [`DLDataType::to_dtype`]. Memory is shared, not copied. See
/// [`Owned`](crate::Owned) for the other direction, and the crate for an example.
///
/// # Errors
///
/// [`Error`] if the tensor is malformed or unexpected; its deleter has been called by then.
///
/// # Safety
///
/// `pointer` must be NULL or point to a managed tensor that lives until its deleter is called, and only we may call
/// the deleter. `shape` and `strides` must be NULL or point to `ndim` aligned numbers. The struct and both arrays
/// must not change while the tensor is borrowed. A versioned tensor of another major version only needs the fields
/// up to `flags`.
pub unsafe fn from_dlpack<M: Managed>(
    pointer: *mut M,
    expect_device: Option<DLDevice>,
    expect_dtype: Option<DLDataType>,
) -> Result<Foreign<M>, Error> {
    let pointer = NonNull::new(pointer).ok_or(Error::NullTensor)?;
    // SAFETY: by this function's contract.
    let handle = unsafe { Handle::new(pointer) };

    // SAFETY: the tensor is live by this function's contract, and every version has this field.
    if let Some(found) = unsafe { M::version(handle.as_ptr()) }.filter(|version| !version.is_readable()) {
        return Err(Error::Version { found });
    }

    // SAFETY: the tensor is live and, after the check of its version, has our layout.
    let (tensor, flags) = unsafe { (&*M::dl_tensor(handle.as_ptr()), M::flags(handle.as_ptr())) };
    if let Some(expected) = expect_device.filter(|&device| device != tensor.device) {
        return Err(Error::Device { expected, found: tensor.device });
    }
    if let Some(expected) = expect_dtype.filter(|&dtype| dtype != tensor.dtype) {
        return Err(Error::DtypeMismatch { expected, found: tensor.dtype });
    }
    tensor.dtype.to_dtype()?;

    if !usize::try_from(tensor.ndim).is_ok_and(|ndim| ndim <= MAX_NDIM) {
        return Err(Error::Ndim { ndim: tensor.ndim });
    }
    // SAFETY: a non-NULL pointer has `ndim` numbers by this function's contract.
    let (shape, strides) = unsafe { (axes(tensor, tensor.shape), axes(tensor, tensor.strides)) };
    let shape = shape.ok_or(Error::NullShape)?;
    let packed = flags & IS_SUBBYTE_TYPE_PADDED == 0;
    let layout = Layout::check(shape, strides, tensor.dtype, packed)?;

    check_addresses(tensor, &layout.extent)?;
    Ok(Foreign { handle, layout })
}

/// Step 5: checks that the elements stay within the address space.
fn check_addresses(tensor: &DLTensor, extent: &Range<isize>) -> Result<(), Error> {
    if tensor.data.is_null() && !extent.is_empty() {
        return Err(Error::NullData);
    }
    let offset = isize::try_from(tensor.byte_offset).map_err(|_| Error::Overflow)?;
    let start = tensor.data.addr().checked_add_signed(offset);
    let reaches = |end: isize| start.and_then(|start| start.checked_add_signed(end)).is_some();
    if reaches(extent.start) && reaches(extent.end) { Ok(()) } else { Err(Error::Overflow) }
}

/// Returns the `ndim` numbers at `pointer`, or `None` if it is NULL although `ndim` is positive.
///
/// # Safety
///
/// `pointer` must be NULL or point to `tensor.ndim` numbers that outlive `'a`, and `ndim` must not be negative.
unsafe fn axes<'a>(tensor: &DLTensor, pointer: *const i64) -> Option<&'a [i64]> {
    match tensor.ndim {
        0 => Some(&[]),
        _ if pointer.is_null() => None,
        // SAFETY: by this function's contract.
        ndim => Some(unsafe { slice::from_raw_parts(pointer, ndim as usize) }),
    }
}

impl<M: Managed> Foreign<M> {
    /// Consumes the managed tensor at `pointer`, on any device and of any known type.
    ///
    /// # Errors
    ///
    /// As [`from_dlpack`].
    ///
    /// # Safety
    ///
    /// As [`from_dlpack`].
    pub unsafe fn from_raw(pointer: NonNull<M>) -> Result<Self, Error> {
        // SAFETY: by this function's contract.
        unsafe { from_dlpack(pointer.as_ptr(), None, None) }
    }

    fn tensor(&self) -> &DLTensor {
        // SAFETY: `from_dlpack` checked for our layout, and the tensor lives as long as the handle.
        unsafe { &*M::dl_tensor(self.handle.as_ptr()) }
    }

    /// Returns the address of the element at index 0 of every axis, including the byte offset; NULL or dangling if
    /// the tensor is empty.
    ///
    /// It is an address on [`Foreign::device`]; for OpenCL it is only a handle.
    #[must_use]
    pub fn data(&self) -> *mut c_void {
        let tensor = self.tensor();
        if tensor.data.is_null() {
            return tensor.data;
        }
        // Does not truncate: `check_addresses` checked the offset.
        tensor.data.wrapping_byte_add(tensor.byte_offset as usize)
    }

    /// Returns one extent per axis, all non-negative.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        // SAFETY: `from_dlpack` checked that `ndim` is not negative, and that the pointer is not NULL if there are
        // axes.
        unsafe { axes(self.tensor(), self.tensor().shape) }.unwrap_or_default()
    }

    /// Returns one stride per axis, in elements. Axes of length 1 and empty tensors have the strides of C order.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        match &self.layout.strides {
            Some(strides) => strides,
            // SAFETY: if we store no strides, `from_dlpack` checked the producer's.
            None => unsafe { axes(self.tensor(), self.tensor().strides) }.unwrap_or_default(),
        }
    }

    /// Returns the element type; [`DLDataType::to_dtype`] accepts it.
    #[must_use]
    pub fn dtype(&self) -> DLDataType {
        self.tensor().dtype
    }

    /// Returns the device that holds the data.
    #[must_use]
    pub fn device(&self) -> DLDevice {
        self.tensor().device
    }

    /// Returns the producer's flags: 0 for the legacy struct, and including unknown bits.
    #[must_use]
    pub fn flags(&self) -> u64 {
        // SAFETY: the tensor lives as long as the handle.
        unsafe { M::flags(self.handle.as_ptr()) }
    }

    /// Returns whether the producer forbids writing. The legacy struct cannot express this: there, `false` is no
    /// permission to write.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.flags() & READ_ONLY != 0
    }

    /// Returns the byte range of the elements, counted from [`Foreign::data`]: the start is at most 0, the end is
    /// exclusive. Empty if there are no elements. Neither end overflows the address space.
    #[must_use]
    pub fn byte_extent(&self) -> Range<isize> {
        self.layout.extent.clone()
    }
}

impl<M: Managed> fmt::Debug for Foreign<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Foreign")
            .field("data", &self.data())
            .field("device", &self.device())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("flags", &self.flags())
            .finish()
    }
}
