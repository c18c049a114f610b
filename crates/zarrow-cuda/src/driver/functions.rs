//! The driver functions in use, each declared once.
//!
//! Source: CUDA driver API, <https://docs.nvidia.com/cuda/cuda-driver-api/>. `cuda.h` maps some
//! names to symbols that end in `_v2`.

use super::forked_process::ProcessOfDriver;
use super::library::Library;
use super::status::Status;
use crate::error::Result;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};

/// `CUcontext`.
pub type Context = *mut c_void;
/// `CUstream`; NULL and the numbers 1 and 2 are the default streams.
pub type StreamHandle = *mut c_void;
/// `CUevent`.
pub type EventHandle = *mut c_void;
/// `CUmodule`.
pub type Module = *mut c_void;
/// `CUfunction`.
pub type Function = *mut c_void;
/// `CUmemoryPool`.
pub type MemoryPool = *mut c_void;
/// `CUdeviceptr`.
pub type Address = u64;
/// `CUdevice`.
pub type Ordinal = c_int;

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Debug)]
pub struct MemoryPoolProperties {
    /// 1, `CU_MEM_ALLOCATION_TYPE_PINNED`: device memory.
    pub allocation_type: c_int,
    /// 0: no export to other processes.
    pub handle_types: c_int,
    /// 1, `CU_MEM_LOCATION_TYPE_DEVICE`.
    pub location_type: c_int,
    /// Index of the device.
    pub location_id: c_int,
    /// Used on another operating system only.
    pub security_attributes: *mut c_void,
    /// 0: unlimited.
    pub max_size: usize,
    /// Reserved for later versions; 0.
    pub reserved: [u8; 56],
}

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ident: $kind:ty),*);)+) => {
        /// Addresses of the functions.
        #[derive(Debug)]
        pub struct Functions {
            process: ProcessOfDriver,
            $($name: unsafe extern "C" fn($($kind),*) -> c_int,)+
        }

        impl Functions {
            /// Looks up each function in `library`.
            pub fn find(library: &Library) -> std::result::Result<Functions, String> {
                Ok(Functions {
                    process: ProcessOfDriver::current(),
                    $($name: {
                        let symbol = CString::new($symbol).map_err(|_| $symbol.to_owned())?;
                        let address = library.function(&symbol).ok_or_else(|| {
                            format!("the driver has no function {}: CUDA 12.0 or newer is needed", $symbol)
                        })?;
                        // SAFETY: the driver declares the function of this name with these arguments.
                        unsafe {
                            std::mem::transmute::<
                                std::ptr::NonNull<c_void>,
                                unsafe extern "C" fn($($kind),*) -> c_int,
                            >(address)
                        }
                    },)+
                })
            }
        }

        impl Functions {
            $(
                #[doc = concat!("`", $symbol, "`.")]
                ///
                /// # Safety
                /// See the driver's documentation.
                #[allow(clippy::too_many_arguments, reason = "defined by the driver")]
                pub unsafe fn $name(&self, $($argument: $kind),*) -> Result<()> {
                    self.check_process()?;
                    // SAFETY: the caller's contract.
                    let code = unsafe { (self.$name)($($argument),*) };
                    Status { function: $symbol, code }.check()
                }
            )+
        }
    };
}

functions! {
    init = "cuInit" (flags: c_uint);
    version = "cuDriverGetVersion" (version: *mut c_int);
    device_count = "cuDeviceGetCount" (count: *mut c_int);
    device = "cuDeviceGet" (device: *mut Ordinal, ordinal: c_int);
    device_name = "cuDeviceGetName" (name: *mut c_char, length: c_int, device: Ordinal);
    device_attribute = "cuDeviceGetAttribute" (value: *mut c_int, attribute: c_int, device: Ordinal);
    primary_context_retain = "cuDevicePrimaryCtxRetain" (context: *mut Context, device: Ordinal);
    context_push = "cuCtxPushCurrent_v2" (context: Context);
    context_pop = "cuCtxPopCurrent_v2" (context: *mut Context);
    exchange_capture_mode = "cuThreadExchangeStreamCaptureMode" (mode: *mut c_int);
    context_synchronize = "cuCtxSynchronize" ();
    memory_info = "cuMemGetInfo_v2" (free: *mut usize, total: *mut usize);
    stream_create = "cuStreamCreate" (stream: *mut StreamHandle, flags: c_uint);
    stream_synchronize = "cuStreamSynchronize" (stream: StreamHandle);
    stream_wait_event = "cuStreamWaitEvent" (stream: StreamHandle, event: EventHandle, flags: c_uint);
    event_create = "cuEventCreate" (event: *mut EventHandle, flags: c_uint);
    event_destroy = "cuEventDestroy_v2" (event: EventHandle);
    event_record = "cuEventRecord" (event: EventHandle, stream: StreamHandle);
    event_query = "cuEventQuery" (event: EventHandle);
    event_elapsed_time = "cuEventElapsedTime"
        (milliseconds: *mut f32, start: EventHandle, end: EventHandle);
    event_synchronize = "cuEventSynchronize" (event: EventHandle);
    pool_create = "cuMemPoolCreate" (pool: *mut MemoryPool, properties: *const MemoryPoolProperties);
    pool_set_attribute = "cuMemPoolSetAttribute" (pool: MemoryPool, attribute: c_int, value: *mut c_void);
    pool_get_attribute = "cuMemPoolGetAttribute" (pool: MemoryPool, attribute: c_int, value: *mut c_void);
    pool_trim = "cuMemPoolTrimTo" (pool: MemoryPool, nbytes_to_keep: usize);
    allocate = "cuMemAlloc_v2" (address: *mut Address, nbytes: usize);
    free = "cuMemFree_v2" (address: Address);
    allocate_from_pool = "cuMemAllocFromPoolAsync"
        (address: *mut Address, nbytes: usize, pool: MemoryPool, stream: StreamHandle);
    free_async = "cuMemFreeAsync" (address: Address, stream: StreamHandle);
    host_allocate = "cuMemHostAlloc" (pointer: *mut *mut c_void, nbytes: usize, flags: c_uint);
    host_free = "cuMemFreeHost" (pointer: *mut c_void);
    copy_to_device = "cuMemcpyHtoDAsync_v2"
        (to: Address, from: *const c_void, nbytes: usize, stream: StreamHandle);
    copy_to_host = "cuMemcpyDtoHAsync_v2"
        (to: *mut c_void, from: Address, nbytes: usize, stream: StreamHandle);
    copy_on_device = "cuMemcpyDtoDAsync_v2"
        (to: Address, from: Address, nbytes: usize, stream: StreamHandle);
    set_bytes = "cuMemsetD8Async" (to: Address, value: u8, nbytes: usize, stream: StreamHandle);
    module_load = "cuModuleLoadData" (module: *mut Module, image: *const c_void);
    module_function = "cuModuleGetFunction" (function: *mut Function, module: Module, name: *const c_char);
    launch = "cuLaunchKernel" (
        function: Function, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared_nbytes: c_uint, stream: StreamHandle,
        parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    pointer_attribute = "cuPointerGetAttribute" (value: *mut c_void, attribute: c_int, address: Address);
}

impl Functions {
    /// Refuses calls in a process that was forked after the driver was initialized.
    pub fn check_process(&self) -> Result<()> {
        self.process.check()
    }
}
