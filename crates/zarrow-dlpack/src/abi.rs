//! The C structs of DLPack 1.3, field by field as in `dlpack.h`.
//!
//! None of them is `Clone` or `Copy`: a second managed tensor would be a second call of its deleter.

use std::ffi::c_void;

use crate::{DLDataType, DLDevice, DLPackVersion};

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the consumer must not write to the data.
pub const READ_ONLY: u64 = 1 << 0;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`: the producer made a copy, which the consumer alone owns.
pub const IS_COPIED: u64 = 1 << 1;
/// `DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED`: each sub-byte element fills whole bytes, instead of being packed.
pub const IS_SUBBYTE_TYPE_PADDED: u64 = 1 << 2;

/// `DLTensor`: a strided array in memory that something else keeps alive.
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// Start of the data, an address on `device`; NULL if the tensor has no elements.
    pub data: *mut c_void,
    /// Where the data lies.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// What one element is.
    pub dtype: DLDataType,
    /// `ndim` extents; may be NULL if `ndim` is 0.
    pub shape: *mut i64,
    /// `ndim` steps, in elements; may be NULL if `ndim` is 0, and before DLPack 1.2 for C order.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `void (*deleter)(struct M *self)`: frees the managed tensor itself and lets go of its data.
///
/// It is called once, on any thread, and must not unwind.
pub type DLManagedTensorDeleter<M = DLManagedTensor> = unsafe extern "C" fn(*mut M);

/// `DLManagedTensor`: the legacy form, which has neither version nor flags.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor that is lent.
    pub dl_tensor: DLTensor,
    /// The producer's own; may be NULL.
    pub manager_ctx: *mut c_void,
    /// NULL if there is nothing to free.
    pub deleter: Option<DLManagedTensorDeleter<Self>>,
}

/// `DLManagedTensorVersioned`: every later major version keeps the fields up to and with `flags`.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of the whole struct.
    pub version: DLPackVersion,
    /// The producer's own; may be NULL.
    pub manager_ctx: *mut c_void,
    /// NULL if there is nothing to free.
    pub deleter: Option<DLManagedTensorDeleter<Self>>,
    /// Any of [`READ_ONLY`], [`IS_COPIED`], [`IS_SUBBYTE_TYPE_PADDED`].
    pub flags: u64,
    /// The tensor that is lent.
    pub dl_tensor: DLTensor,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::{align_of, offset_of, size_of};

    assert!(size_of::<DLPackVersion>() == 8 && offset_of!(DLPackVersion, minor) == 4);
    assert!(size_of::<DLDevice>() == 8 && offset_of!(DLDevice, device_id) == 4);
    assert!(size_of::<DLDataType>() == 4 && offset_of!(DLDataType, bits) == 1);
    assert!(offset_of!(DLDataType, lanes) == 2);

    assert!(size_of::<DLTensor>() == 48 && align_of::<DLTensor>() == 8);
    assert!(offset_of!(DLTensor, data) == 0 && offset_of!(DLTensor, device) == 8);
    assert!(offset_of!(DLTensor, ndim) == 16 && offset_of!(DLTensor, dtype) == 20);
    assert!(offset_of!(DLTensor, shape) == 24 && offset_of!(DLTensor, strides) == 32);
    assert!(offset_of!(DLTensor, byte_offset) == 40);

    assert!(size_of::<DLManagedTensor>() == 64 && offset_of!(DLManagedTensor, dl_tensor) == 0);
    assert!(offset_of!(DLManagedTensor, manager_ctx) == 48 && offset_of!(DLManagedTensor, deleter) == 56);

    assert!(
        size_of::<DLManagedTensorVersioned>() == 80 && offset_of!(DLManagedTensorVersioned, version) == 0
    );
    assert!(offset_of!(DLManagedTensorVersioned, manager_ctx) == 8);
    assert!(offset_of!(DLManagedTensorVersioned, deleter) == 16);
    assert!(offset_of!(DLManagedTensorVersioned, flags) == 24);
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
};
