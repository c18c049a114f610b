//! The C structs of DLPack 1.3, field by field as in `dlpack.h`.
//!
//! None of them is `Clone` or `Copy`: a second managed tensor would be a second call of its deleter.

use std::ffi::{c_char, c_int, c_void};

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

/// `DLPackExchangeAPIHeader`: the start of the table, which every version of it keeps.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPIHeader {
    /// The version of the whole table.
    pub version: DLPackVersion,
    /// The header of a table of an older version, or NULL.
    pub prev_api: *const DLPackExchangeAPIHeader,
}

/// Writes kind and message of an error to where `error_ctx` says.
pub type DLPackSetError =
    unsafe extern "C" fn(error_ctx: *mut c_void, kind: *const c_char, message: *const c_char);

/// Allocates a tensor of the prototype's device, type and extents. Returns 0, or -1 after `set_error`.
pub type DLPackManagedTensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int;

/// Lends the tensor of a Python object. Returns 0, or -1 with a Python exception set.
pub type DLPackManagedTensorFromPyObjectNoSync =
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int;

/// Makes a Python object of a tensor, for which it answers from then on. Returns 0, or -1 with an exception set.
pub type DLPackManagedTensorToPyObjectNoSync =
    unsafe extern "C" fn(tensor: *mut DLManagedTensorVersioned, out_py_object: *mut *mut c_void) -> c_int;

/// Describes the tensor of a Python object, which stays the owner: the description is good until the caller
/// returns to Python. Returns 0, or -1 with an exception set.
pub type DLPackDLTensorFromPyObjectNoSync =
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut DLTensor) -> c_int;

/// Tells the stream on which a device works for the library now. Returns 0, or -1 with an exception set.
pub type DLPackCurrentWorkStream =
    unsafe extern "C" fn(device_type: i32, device_id: i32, out_current_stream: *mut *mut c_void) -> c_int;

/// `DLPackExchangeAPI`: a Python type's functions for C, which do not wait for streams.
///
/// It lives as long as the process. The type has it as `__dlpack_c_exchange_api__`, in a capsule with the name
/// `dlpack_exchange_api`. None of the functions is NULL, but the fourth may be.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPI {
    /// The part that stays the same in all versions.
    pub header: DLPackExchangeAPIHeader,
    /// Makes a new tensor.
    pub managed_tensor_allocator: Option<DLPackManagedTensorAllocator>,
    /// Lends the tensor of a Python object.
    pub managed_tensor_from_py_object_no_sync: Option<DLPackManagedTensorFromPyObjectNoSync>,
    /// Makes a Python object of a tensor.
    pub managed_tensor_to_py_object_no_sync: Option<DLPackManagedTensorToPyObjectNoSync>,
    /// Describes the tensor of a Python object.
    pub dltensor_from_py_object_no_sync: Option<DLPackDLTensorFromPyObjectNoSync>,
    /// Tells the stream of a device.
    pub current_work_stream: Option<DLPackCurrentWorkStream>,
}

// SAFETY: the table is never written to after it was published, and its functions may be called from any thread.
unsafe impl Send for DLPackExchangeAPI {}
// SAFETY: as above.
unsafe impl Sync for DLPackExchangeAPI {}

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

    assert!(size_of::<DLPackExchangeAPIHeader>() == 16 && offset_of!(DLPackExchangeAPIHeader, prev_api) == 8);
    assert!(size_of::<DLPackExchangeAPI>() == 56 && offset_of!(DLPackExchangeAPI, header) == 0);
    assert!(offset_of!(DLPackExchangeAPI, managed_tensor_allocator) == 16);
    assert!(offset_of!(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync) == 24);
    assert!(offset_of!(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync) == 32);
    assert!(offset_of!(DLPackExchangeAPI, dltensor_from_py_object_no_sync) == 40);
    assert!(offset_of!(DLPackExchangeAPI, current_work_stream) == 48);
};
