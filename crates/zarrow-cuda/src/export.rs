//! Export of device tensors by DLPack, without a copy.
//!
//! Source: the DLPack 1.3 header, and the array API's `__dlpack__`.

use crate::error::{Error, Result};
use crate::tensor::{DeviceTensor, Owner};
use std::sync::Arc;
use zarrow_array::{DataType, Error as ArrayError};
use zarrow_dlpack::{
    DLDataType, DLManagedTensor, DLManagedTensorVersioned, Description, IS_COPIED, MAX_NDIM, Managed, Owned,
    READ_ONLY,
};

/// Exports the tensor in a versioned struct (DLPack 1.x), which can mark memory as read-only.
///
/// It has no stream: [`DeviceTensor::lend_to`] orders the consumer's work.
///
/// # Errors
/// [`Error::Array`] for a type that DLPack lacks, and for too many axes.
pub fn versioned(tensor: &DeviceTensor) -> Result<Owned<DLManagedTensorVersioned>> {
    export(tensor, if tensor.is_read_only() { READ_ONLY } else { 0 })
}

/// Exports a tensor copied for this export alone, as in [`versioned`]: the consumer is its only holder.
///
/// # Errors
/// See [`versioned`].
pub fn versioned_copy(tensor: &DeviceTensor) -> Result<Owned<DLManagedTensorVersioned>> {
    export(tensor, IS_COPIED)
}

/// Exports the tensor in a struct of DLPack 0.x.
///
/// # Errors
/// See [`versioned`]; [`Error::ReadOnly`] for read-only memory, since the struct has no flag for it.
pub fn legacy(tensor: &DeviceTensor) -> Result<Owned<DLManagedTensor>> {
    if tensor.is_read_only() { Err(Error::ReadOnly) } else { export(tensor, 0) }
}

fn export<M: Managed>(tensor: &DeviceTensor, flags: u64) -> Result<Owned<M>> {
    if tensor.shape().len() > MAX_NDIM {
        return Err(ArrayError::BadView(format!("a DLPack tensor has at most {MAX_NDIM} axes")).into());
    }
    // Some consumers check the strides of axes of length 1; all of them accept the strides of C order.
    let c_order = zarrow_array::shape::c_strides(tensor.shape()).unwrap_or_else(|| tensor.strides().into());
    let is_empty = tensor.shape().contains(&0);
    let strides: Vec<i64> = (tensor.strides().iter().zip(tensor.shape()).zip(c_order))
        .map(|((stride, extent), of_c)| if *extent == 1 || is_empty { of_c } else { *stride })
        .collect();
    let description = Description {
        data: std::ptr::with_exposed_provenance_mut(tensor.address() as usize),
        device: tensor.device().dlpack(),
        dtype: dtype(tensor.dtype())?,
        shape: tensor.shape(),
        strides: &strides,
        flags,
    };
    let owner: Arc<dyn Send + Sync> = match tensor.owner() {
        Owner::Own(memory) => memory.clone(),
        Owner::Foreign(memory) => memory.clone(),
    };
    // SAFETY: the layout only reaches memory of the owner (checked by the code that made the layout), and the
    // managed tensor now keeps the owner.
    Ok(unsafe { Owned::new(description, owner) })
}

fn dtype(dtype: &DataType) -> Result<DLDataType> {
    let known = dtype.as_number().and_then(|number| number.names().dlpack);
    known.ok_or_else(|| ArrayError::NoSuchType { protocol: "DLPack", dtype: dtype.clone() }.into())
}
