//! Taking a tensor of a device from another library: the same address, the same strides. Nothing is copied.
//!
//! Sources: the DLPack 1.3 header; `__cuda_array_interface__`, version 3 (Numba's documentation); Arrow C device data
//! interface.

use crate::device::Device;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::foreign::ForeignMemory;
use crate::tensor::DeviceTensor;
use std::ffi::c_int;
use zarrow_array::{DataType, Error as ArrayError, Number, StridedLayout, shape};
use zarrow_dlpack::{DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, Foreign, Managed};

/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const DEVICE_ORDINAL: c_int = 9;

/// The tensor of a versioned struct, read-only where it says so.
///
/// The producer was given [`Device::stream`] of its device, and has ordered its work before it.
///
/// # Errors
/// [`Error::Array`] for memory that is of no CUDA device, and for a type that has no name here.
pub fn versioned(foreign: Foreign<DLManagedTensorVersioned>) -> Result<DeviceTensor> {
    let read_only = foreign.is_read_only();
    tensor(foreign, read_only)
}

/// The tensor of a struct of DLPack 0.x, which is taken as writable: what PyTorch, CuPy and Numba lend is.
///
/// # Errors
/// As [`versioned`].
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
    // A producer that names another device would end the context at the first access.
    if !foreign.shape().contains(&0) && device_of(address)?.ordinal() != device.ordinal() {
        let text = format!("the memory of the DLPack tensor is not on {device}, as it says");
        return Err(ArrayError::BadView(text).into());
    }
    let memory = ForeignMemory::new(device, Box::new(foreign));
    // SAFETY: the producer promised that the elements stay until its deleter runs, which is when the memory is dropped;
    // `Foreign` checked the arithmetic of shape and strides. The caller has had the producer order its work.
    unsafe { DeviceTensor::from_foreign(memory, address, layout, number.into(), read_only) }
}

/// The device of DLPack's number.
///
/// # Errors
/// [`Error::Array`] where it is no CUDA device; as [`Device::get`].
pub fn device(device: DLDevice) -> Result<&'static Device> {
    match (device.device_type, usize::try_from(device.device_id)) {
        (DLDeviceType::CUDA | DLDeviceType::CUDA_MANAGED, Ok(ordinal)) => Device::get(ordinal),
        _ => Err(ArrayError::Device { device }.into()),
    }
}

/// Memory as `__cuda_array_interface__` describes it: an address, a shape, and strides in bytes, `None` for C order. Arrow's
/// arrays on a device are described so, too.
#[derive(Debug, Clone)]
pub struct Interface {
    /// What the description is of, for errors to name.
    pub protocol: &'static str,
    /// The device, where the protocol says it.
    pub device: Option<usize>,
    /// The address of the first element.
    pub address: u64,
    /// Extents, outermost axis first.
    pub shape: Vec<i64>,
    /// Distances of neighbours on each axis, in bytes.
    pub strides: Option<Vec<i64>>,
    /// The type of the elements.
    pub dtype: DataType,
    /// Whether nobody may write to them.
    pub read_only: bool,
}

impl Interface {
    /// The tensor of it, on the device that has the address; `owner` keeps the memory.
    ///
    /// # Errors
    /// [`Error::Array`] for shapes and strides that do not hold together; what the driver answers for an address that is
    /// none of its own.
    ///
    /// # Safety
    /// As long as `owner` lives, the elements lie in memory of a device. What was given to the device before is ordered
    /// before its stream.
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
                    return Err(bad("strides are no whole number of elements"));
                }
                strides.iter().map(|stride| stride / item_size as i64).collect()
            }
            None => shape::c_strides(&extents).ok_or_else(|| bad("the shape is too large"))?,
        };
        shape::element_bounds(&extents, &strides)?;
        let device = match (extents.contains(&0), device) {
            (true, told) => Device::get(told.unwrap_or(0))?,
            (false, told) => {
                let found = device_of(address)?;
                if told.is_some_and(|told| told != found.ordinal()) {
                    return Err(bad("the memory is not on the device that it says"));
                }
                found
            }
        };
        let layout = StridedLayout::new(extents.into(), strides.into());
        let memory = ForeignMemory::new(device, owner);
        // SAFETY: the caller's contract.
        unsafe { DeviceTensor::from_foreign(memory, address, layout, dtype, read_only) }
    }
}

/// The device whose memory has the address.
fn device_of(address: u64) -> Result<&'static Device> {
    let driver = Driver::get()?;
    let mut ordinal: c_int = 0;
    // SAFETY: the attribute is a number of this size, which lives through the call; an address that is none of the
    // driver's is an error of its.
    unsafe { driver.pointer_attribute((&raw mut ordinal).cast(), DEVICE_ORDINAL, address)? };
    Device::get(usize::try_from(ordinal).unwrap_or(usize::MAX))
}
