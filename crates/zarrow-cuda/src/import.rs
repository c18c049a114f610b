//! Import of device tensors from other libraries: same address, same strides, without a copy.
//!
//! Sources: the DLPack 1.3 header; `__cuda_array_interface__`, version 3 (Numba's documentation); Arrow C device
//! data interface.

use crate::device::Device;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::foreign::ForeignMemory;
use crate::tensor::DeviceTensor;
use std::ffi::c_int;
use zarrow_array::shape::{self, Axes};
use zarrow_array::{DataType, Error as ArrayError, Number, StridedLayout};
use zarrow_dlpack::{DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, Foreign, Managed};

/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const DEVICE_ORDINAL: c_int = 9;

/// Imports a versioned struct, read-only if it is flagged so.
///
/// The producer must have received [`Device::stream`] of its device, and have ordered its work before that
/// stream's.
///
/// # Errors
/// [`Error::Array`] for memory not on a CUDA device, and for an unsupported type.
pub fn versioned(foreign: Foreign<DLManagedTensorVersioned>) -> Result<DeviceTensor> {
    let read_only = foreign.is_read_only();
    tensor(foreign, read_only)
}

/// Imports a struct of DLPack 0.x as writable: PyTorch, CuPy and Numba only export writable memory.
///
/// # Errors
/// See [`versioned`].
pub fn legacy(foreign: Foreign<DLManagedTensor>) -> Result<DeviceTensor> {
    tensor(foreign, false)
}

fn tensor<M: Managed>(foreign: Foreign<M>, read_only: bool) -> Result<DeviceTensor> {
    let device = device(foreign.device())?;
    let dtype = foreign.dtype();
    let unknown = || ArrayError::UnknownType { protocol: "the DLPack", name: dtype.to_string() };
    let number = Number::from_dlpack(dtype).filter(|_| !dtype.is_sub_byte()).ok_or_else(unknown)?;
    let layout = StridedLayout::new(foreign.shape().into(), foreign.strides().into());
    let address = foreign.data().addr() as u64;
    // If the producer names the wrong device, the first access would break the context.
    if !foreign.shape().contains(&0) && device_of(address)?.ordinal() != device.ordinal() {
        let text = format!("the memory of the DLPack tensor is not on {device}, its declared device");
        return Err(ArrayError::BadView(text).into());
    }
    let memory = ForeignMemory::new(device, Box::new(foreign));
    // SAFETY: the producer promised that the elements stay until its deleter runs, which happens when the memory is
    // dropped; `Foreign` checked the arithmetic of shape and strides. The caller has had the producer order its
    // work.
    unsafe { DeviceTensor::from_foreign(memory, address, layout, number.into(), read_only) }
}

/// Returns the device for a DLPack device.
///
/// # Errors
/// [`Error::Array`] if it is not a CUDA device; see also [`Device::get`].
pub fn device(device: DLDevice) -> Result<&'static Device> {
    match (device.device_type, usize::try_from(device.device_id)) {
        (DLDeviceType::CUDA | DLDeviceType::CUDA_MANAGED, Ok(ordinal)) => Device::get(ordinal),
        _ => Err(ArrayError::Device { device }.into()),
    }
}

/// Memory as described by `__cuda_array_interface__`: an address, a shape, and strides in bytes, `None` for C
/// order. Also used for Arrow's device arrays.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name of the protocol, for errors.
    pub protocol: &'static str,
    /// The device, if the protocol has it.
    pub device: Option<usize>,
    /// Address of the first element.
    pub address: u64,
    /// Extents, outermost axis first.
    pub shape: Vec<i64>,
    /// Strides in bytes.
    pub strides: Option<Vec<i64>>,
    /// Type of the elements.
    pub dtype: DataType,
    /// Whether the memory must not be written to.
    pub read_only: bool,
}

impl Interface {
    /// Creates the tensor, on the device that owns the address; `owner` keeps the memory.
    ///
    /// # Errors
    /// [`Error::Array`] for inconsistent shapes and strides; errors of the driver for an address that it does not
    /// know.
    ///
    /// # Safety
    /// While `owner` lives, the elements must be in device memory. Earlier work on them must be ordered before the
    /// device's stream.
    pub unsafe fn tensor(self, owner: Box<dyn Send + Sync>) -> Result<DeviceTensor> {
        let Interface { protocol, device, address, shape: extents, strides, dtype, read_only } = self;
        let item_size = dtype.item_size().unwrap_or(0);
        let bad = |why: &str| Error::Array(ArrayError::BadView(format!("{protocol}: {why}")));
        let counted: Option<Vec<u64>> = extents.iter().map(|extent| u64::try_from(*extent).ok()).collect();
        shape::nbytes(&counted.ok_or_else(|| bad("an extent is negative"))?, item_size)?;
        let strides = match strides {
            Some(strides) => {
                if strides.len() != extents.len() || item_size == 0 {
                    return Err(bad("expected one stride per axis"));
                }
                if strides.iter().any(|stride| stride % item_size as i64 != 0) {
                    return Err(bad("strides are not multiples of the element size"));
                }
                strides.iter().map(|stride| stride / item_size as i64).collect::<Axes<i64>>()
            }
            None => shape::c_strides(&extents).ok_or_else(|| bad("the shape is too large"))?,
        };
        shape::element_bounds(&extents, &strides)?;
        let device = match (extents.contains(&0), device) {
            (true, ordinal) => Device::get(ordinal.unwrap_or(0))?,
            (false, ordinal) => {
                let found = device_of(address)?;
                if ordinal.is_some_and(|ordinal| ordinal != found.ordinal()) {
                    return Err(bad("the memory is not on its declared device"));
                }
                found
            }
        };
        let layout = StridedLayout::new(extents.into(), strides);
        let memory = ForeignMemory::new(device, owner);
        // SAFETY: the caller's contract.
        unsafe { DeviceTensor::from_foreign(memory, address, layout, dtype, read_only) }
    }
}

/// Returns the device of an address.
fn device_of(address: u64) -> Result<&'static Device> {
    let driver = Driver::get()?;
    let mut ordinal: c_int = 0;
    // SAFETY: the attribute is a number of this size, which lives through the call; for an address that it does not
    // know, the driver returns an error.
    unsafe { driver.pointer_attribute((&raw mut ordinal).cast(), DEVICE_ORDINAL, address)? };
    Device::get(usize::try_from(ordinal).unwrap_or(usize::MAX))
}
