//! The DLPack ABI 1.x under its standard names, and sound owners for both directions.
//!
//! DLPack ([specification](https://dmlc.github.io/dlpack/latest/)) is a C struct that array libraries use to share
//! memory. This crate has the struct layouts ([`DLTensor`], [`DLManagedTensor`], [`DLManagedTensorVersioned`],
//! [`DLPackExchangeAPI`]), their field types ([`DLDevice`], [`DLDataType`], [`DLPackVersion`]), and enforces that
//! the deleter runs exactly once:
//!
//! * [`Owned`] is an exported tensor. It holds the memory's owner until the consumer calls the deleter.
//! * [`Foreign`] is a borrowed tensor. It is checked once, on import, and calls the deleter on drop.
//!
//! Memory is always shared, never copied. The crate has no dependencies, not even Python.
//!
//! # Example
//!
//! ```
//! use zarrow_dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, Description, Dtype, Owned};
//! use zarrow_dlpack::{from_dlpack, to_dlpack};
//!
//! let mut values = vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let float32 = DLDataType::from_dtype(Dtype::Float32);
//! let description = Description {
//!     data: values.as_mut_ptr().cast(),
//!     device: DLDevice::CPU,
//!     dtype: float32,
//!     shape: &[2, 3],
//!     strides: &[3, 1],
//!     flags: 0,
//! };
//! // SAFETY: the description stays within `values`, and `values` moves in as the owner of its heap memory.
//! let owned = unsafe { Owned::<DLManagedTensorVersioned>::new(description, values) };
//! let pointer = to_dlpack(owned);
//!
//! // SAFETY: `pointer` comes from `to_dlpack` and is consumed here only.
//! let foreign = unsafe { from_dlpack(pointer.as_ptr(), Some(DLDevice::CPU), Some(float32)) }?;
//! assert_eq!(foreign.shape(), [2, 3]);
//! assert_eq!(foreign.byte_extent(), 0..24);
//! # Ok::<(), zarrow_dlpack::Error>(())
//! ```

mod abi;
mod device;
mod dtype;
mod error;
mod exchange_api;
mod foreign;
mod layout;
mod managed;
mod owned;
mod version;

pub use abi::{
    DLManagedTensor, DLManagedTensorDeleter, DLManagedTensorVersioned, DLPackCurrentWorkStream,
    DLPackDLTensorFromPyObjectNoSync, DLPackExchangeAPI, DLPackExchangeAPIHeader,
    DLPackManagedTensorAllocator, DLPackManagedTensorFromPyObjectNoSync, DLPackManagedTensorToPyObjectNoSync,
    DLPackSetError, DLTensor, IS_COPIED, IS_SUBBYTE_TYPE_PADDED, MAX_NDIM, READ_ONLY,
};
pub use device::{DLDevice, DLDeviceType};
pub use dtype::{DLDataType, DLDataTypeCode, Dtype, DtypeError};
pub use error::Error;
pub use foreign::{Foreign, from_dlpack};
pub use managed::Managed;
pub use owned::{Description, Owned, to_dlpack};
pub use version::DLPackVersion;
