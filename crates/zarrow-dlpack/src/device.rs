//! The device of a tensor's memory.

use std::fmt;

/// `DLDevice`: a kind of memory, and the index of the device.
///
/// The constants name device 0 of each kind; for another device use `DLDevice::new(DLDeviceType::CUDA, 1)`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// One of the constants of [`DLDeviceType`], or a code from a newer version of DLPack.
    pub device_type: i32,
    /// Index from 0; always 0 for CPU and pinned memory.
    pub device_id: i32,
}

impl DLDevice {
    /// Returns device `device_id` of kind `device_type`, a constant of [`DLDeviceType`].
    #[must_use]
    pub const fn new(device_type: i32, device_id: i32) -> Self {
        Self { device_type, device_id }
    }
}

/// The constants of `DLDeviceType` up to DLPack 1.3 (5 and 6 are unused).
#[derive(Debug)]
pub enum DLDeviceType {}

macro_rules! device_types {
    ($($name:ident = $code:literal, $standard:literal, $meaning:literal;)+) => {
        impl DLDeviceType {
            $(#[doc = concat!("`", $standard, "`: ", $meaning, ".")]
            pub const $name: i32 = $code;)+

            /// Every constant with its name in the DLPack header, in ascending order.
            pub const ALL: &'static [(i32, &'static str)] = &[$(($code, $standard)),+];
        }

        impl DLDevice {
            $(#[doc = concat!("`", $standard, "`, device 0: ", $meaning, ".")]
            pub const $name: Self = Self::new(DLDeviceType::$name, 0);)+
        }
    };
}

device_types! {
    CPU = 1, "kDLCPU", "main memory";
    CUDA = 2, "kDLCUDA", "memory of a CUDA GPU";
    CUDA_HOST = 3, "kDLCUDAHost", "main memory pinned by CUDA";
    OPENCL = 4, "kDLOpenCL", "an OpenCL buffer; its data pointer is a handle";
    VULKAN = 7, "kDLVulkan", "a Vulkan buffer";
    METAL = 8, "kDLMetal", "a Metal buffer";
    VPI = 9, "kDLVPI", "a buffer of the Verilog simulator";
    ROCM = 10, "kDLROCM", "memory of a ROCm GPU";
    ROCM_HOST = 11, "kDLROCMHost", "main memory pinned by ROCm";
    EXT_DEV = 12, "kDLExtDev", "reserved to try out new devices";
    CUDA_MANAGED = 13, "kDLCUDAManaged", "CUDA unified memory";
    ONE_API = 14, "kDLOneAPI", "oneAPI unified shared memory";
    WEB_GPU = 15, "kDLWebGPU", "a WebGPU buffer";
    HEXAGON = 16, "kDLHexagon", "memory of a Hexagon processor";
    MAIA = 17, "kDLMAIA", "memory of a MAIA accelerator";
    TRN = 18, "kDLTrn", "memory of a Trainium accelerator";
}

impl fmt::Display for DLDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DLDeviceType::ALL.iter().find(|(code, _)| *code == self.device_type) {
            Some((_, name)) => write!(formatter, "{name}:{}", self.device_id),
            None => write!(formatter, "device type {}:{}", self.device_type, self.device_id),
        }
    }
}
