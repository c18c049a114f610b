//! Tensors that we borrow.
//!
//! 1. The pointer is not NULL; from here on a handle answers for the deleter, on every path.
//! 2. The major version is ours; otherwise nothing but the deleter is touched.
//! 3. Device and element type are those asked for, and the element type is a known one.
//! 4. Extents and strides describe bytes that memory can have (see `layout`), and NULL strides mean C order.
//! 5. These bytes, counted from `data + byte_offset`, do not run over either end of the addresses.

use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use crate::layout::Layout;
use crate::managed::Handle;
use crate::{DLDataType, DLDevice, DLTensor, Error, IS_SUBBYTE_TYPE_PADDED, MAX_NDIM, Managed, READ_ONLY};

/// A checked tensor of another library, whose deleter runs when this is dropped, on whatever thread.
///
/// The data is shared with the producer, who promises that it stays until then, and no more than that: it may be
/// unaligned, may be written to meanwhile, and its elements may overlap (strides of 0).
pub struct Foreign<M: Managed> {
    handle: Handle<M>,
    layout: Layout,
}

/// Takes over the managed tensor at `pointer`, if it lies on `expect_device` and holds `expect_dtype`.
///
/// With `None` any device or any type that [`DLDataType::to_dtype`] knows is taken. Memory is shared, not copied.
/// See [`Owned`](crate::Owned) for the other direction, and the crate for an example.
///
/// # Errors
///
/// [`Error`] says what is wrong with the tensor; its deleter has then been called.
///
/// # Safety
///
/// `pointer` must be NULL or point to a managed tensor that lives until its deleter is called, and the call must
/// be ours alone. `shape` and `strides` must be NULL or point to `ndim` aligned numbers, and nothing of all this
/// may change while it is lent. A versioned tensor of another major version need only have the fields up to `flags`.
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
    // SAFETY: a pointer that is not NULL has `ndim` numbers by this function's contract.
    let (shape, strides) = unsafe { (axes(tensor, tensor.shape), axes(tensor, tensor.strides)) };
    let shape = shape.ok_or(Error::NullShape)?;
    let packed = flags & IS_SUBBYTE_TYPE_PADDED == 0;
    let layout = Layout::check(shape, strides, tensor.dtype, packed)?;

    check_addresses(tensor, &layout.extent)?;
    Ok(Foreign { handle, layout })
}

/// Step 5.
fn check_addresses(tensor: &DLTensor, extent: &Range<isize>) -> Result<(), Error> {
    if tensor.data.is_null() && !extent.is_empty() {
        return Err(Error::NullData);
    }
    let offset = isize::try_from(tensor.byte_offset).map_err(|_| Error::Overflow)?;
    let start = tensor.data.addr().checked_add_signed(offset);
    let reaches = |end: isize| start.and_then(|start| start.checked_add_signed(end)).is_some();
    if reaches(extent.start) && reaches(extent.end) { Ok(()) } else { Err(Error::Overflow) }
}

/// The `ndim` numbers at `pointer`, or `None` if it is NULL although there are axes.
///
/// # Safety
///
/// `pointer` must be NULL or point to `tensor.ndim` numbers that outlive `'a`, and `ndim` not be negative.
unsafe fn axes<'a>(tensor: &DLTensor, pointer: *const i64) -> Option<&'a [i64]> {
    match tensor.ndim {
        0 => Some(&[]),
        _ if pointer.is_null() => None,
        // SAFETY: by this function's contract.
        ndim => Some(unsafe { slice::from_raw_parts(pointer, ndim as usize) }),
    }
}

impl<M: Managed> Foreign<M> {
    /// Takes over the managed tensor at `pointer`, on any device and of any known type.
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
        // SAFETY: `from_dlpack` has found our layout, and the tensor lives as long as the handle.
        unsafe { &*M::dl_tensor(self.handle.as_ptr()) }
    }

    /// Address of the element at index 0 of every axis, with the byte offset; NULL or dangling without elements.
    ///
    /// It is an address of [`Foreign::device`], and for some of them (OpenCL) only a handle.
    #[must_use]
    pub fn data(&self) -> *mut c_void {
        let tensor = self.tensor();
        if tensor.data.is_null() {
            return tensor.data;
        }
        // The offset fits: `check_addresses` has seen to it.
        tensor.data.wrapping_byte_add(tensor.byte_offset as usize)
    }

    /// One extent for each axis, none negative.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        // SAFETY: `from_dlpack` has found `ndim` not negative and a pointer where there are axes.
        unsafe { axes(self.tensor(), self.tensor().shape) }.unwrap_or_default()
    }

    /// One step for each axis, in elements; an axis that is never stepped along has the one of C order.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        match &self.layout.strides {
            Some(strides) => strides,
            // SAFETY: without strides of our own, `from_dlpack` has found those of the producer.
            None => unsafe { axes(self.tensor(), self.tensor().strides) }.unwrap_or_default(),
        }
    }

    /// What one element is; [`DLDataType::to_dtype`] knows it.
    #[must_use]
    pub fn dtype(&self) -> DLDataType {
        self.tensor().dtype
    }

    /// Where the data lies.
    #[must_use]
    pub fn device(&self) -> DLDevice {
        self.tensor().device
    }

    /// The producer's flags; 0 for the legacy struct, and bits that are not known here are left in.
    #[must_use]
    pub fn flags(&self) -> u64 {
        // SAFETY: the tensor lives as long as the handle.
        unsafe { M::flags(self.handle.as_ptr()) }
    }

    /// Whether the producer forbids writing. The legacy struct cannot say so: `false` there is no permission.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.flags() & READ_ONLY != 0
    }

    /// The bytes that the elements lie in, counted from [`Foreign::data`]: the lowest one, not above 0, to the one
    /// behind the highest. Empty if there are no elements. Both ends are addresses without overflow.
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
