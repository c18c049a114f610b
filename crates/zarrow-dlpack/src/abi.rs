//! The C structs of DLPack 1.3, field by field as in `dlpack.h`.
//!
//! The structs are neither `Clone` nor `Copy`: a second managed tensor would run its deleter a second time.

use std::ffi::{c_char, c_int, c_void};

use crate::{DLDataType, DLDevice, DLPackVersion};

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the consumer must not write to the data.
pub const READ_ONLY: u64 = 1 << 0;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`: the producer made a copy, owned by the consumer alone.
pub const IS_COPIED: u64 = 1 << 1;
/// `DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED`: sub-byte elements are padded to whole bytes, not packed.
pub const IS_SUBBYTE_TYPE_PADDED: u64 = 1 << 2;

/// Maximum number of axes, as in NumPy. The ABI sets no limit.
pub const MAX_NDIM: usize = 64;

/// `DLTensor`: a strided array in borrowed memory.
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// Start of the data, an address on `device`; NULL if the tensor has no elements.
    pub data: *mut c_void,
    /// Device that holds the data.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// Type of one element.
    pub dtype: DLDataType,
    /// `ndim` extents; may be NULL if `ndim` is 0.
    pub shape: *mut i64,
    /// `ndim` strides, in elements; may be NULL if `ndim` is 0, and before DLPack 1.2 also for C order.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `void (*deleter)(struct M *self)`: frees the managed tensor and releases its data.
///
/// Called once, on any thread; must not unwind.
pub type DLManagedTensorDeleter<M = DLManagedTensor> = unsafe extern "C" fn(*mut M);

/// `DLManagedTensor`: the legacy form, without version and flags.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// Private to the producer; may be NULL.
    pub manager_ctx: *mut c_void,
    /// NULL if there is nothing to free.
    pub deleter: Option<DLManagedTensorDeleter<Self>>,
}

/// `DLManagedTensorVersioned`: later major versions keep all fields up to and including `flags`.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// Version of the whole struct.
    pub version: DLPackVersion,
    /// Private to the producer; may be NULL.
    pub manager_ctx: *mut c_void,
    /// NULL if there is nothing to free.
    pub deleter: Option<DLManagedTensorDeleter<Self>>,
    /// Any of [`READ_ONLY`], [`IS_COPIED`], [`IS_SUBBYTE_TYPE_PADDED`].
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// `DLPackExchangeAPIHeader`: the start of the table, the same in every version.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPIHeader {
    /// Version of the whole table.
    pub version: DLPackVersion,
    /// Header of a table of an older version, or NULL.
    pub prev_api: *const DLPackExchangeAPIHeader,
}

/// Writes the kind and message of an error to `error_ctx`.
pub type DLPackSetError =
    unsafe extern "C" fn(error_ctx: *mut c_void, kind: *const c_char, message: *const c_char);

/// Allocates a tensor with the prototype's device, type and shape. Returns 0, or -1 after calling `set_error`.
pub type DLPackManagedTensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    set_error: Option<DLPackSetError>,
) -> c_int;

/// Exports the tensor of a Python object. Returns 0, or -1 with a Python exception set.
pub type DLPackManagedTensorFromPyObjectNoSync =
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int;

/// Makes a Python object that takes ownership of a tensor. Returns 0, or -1 with an exception set.
pub type DLPackManagedTensorToPyObjectNoSync =
    unsafe extern "C" fn(tensor: *mut DLManagedTensorVersioned, out_py_object: *mut *mut c_void) -> c_int;

/// Describes the tensor of a Python object, which keeps ownership: the description is valid until the caller
/// returns to Python. Returns 0, or -1 with an exception set.
pub type DLPackDLTensorFromPyObjectNoSync =
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut DLTensor) -> c_int;

/// Returns a device's current work stream through `out_current_stream`. Returns 0, or -1 with an exception set.
pub type DLPackCurrentWorkStream =
    unsafe extern "C" fn(device_type: i32, device_id: i32, out_current_stream: *mut *mut c_void) -> c_int;

/// `DLPackExchangeAPI`: a Python type's C functions. They do not synchronize streams.
///
/// The table lives as long as the process. The type exposes it as `__dlpack_c_exchange_api__`, in a capsule named
/// `dlpack_exchange_api`. Only the fourth function may be NULL.
#[repr(C)]
#[derive(Debug)]
pub struct DLPackExchangeAPI {
    /// The part that all versions share.
    pub header: DLPackExchangeAPIHeader,
    /// Allocates a new tensor.
    pub managed_tensor_allocator: Option<DLPackManagedTensorAllocator>,
    /// Exports the tensor of a Python object.
    pub managed_tensor_from_py_object_no_sync: Option<DLPackManagedTensorFromPyObjectNoSync>,
    /// Makes a Python object from a tensor.
    pub managed_tensor_to_py_object_no_sync: Option<DLPackManagedTensorToPyObjectNoSync>,
    /// Describes the tensor of a Python object.
    pub dltensor_from_py_object_no_sync: Option<DLPackDLTensorFromPyObjectNoSync>,
    /// Returns the current stream of a device.
    pub current_work_stream: Option<DLPackCurrentWorkStream>,
}

// SAFETY: the table is never written to after publication, and its functions may be called from any thread.
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
