//! A [`SharedTensor`] as a DLPack tensor: same address, same strides, the owner counted once more.
//!
//! Source: the DLPack 1.3 header, and the array API's `__dlpack__`.

use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use std::sync::Arc;
use zarrow_dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, Description, IS_COPIED, Managed, Owned,
    READ_ONLY,
};

/// The DLPack type of `dtype`.
///
/// # Errors
/// [`Error::NoSuchType`] for types that are not one number: times, text, raw bytes.
pub fn dtype(dtype: &DataType) -> Result<DLDataType> {
    dtype
        .as_number()
        .and_then(|number| number.names().dlpack)
        .ok_or_else(|| Error::NoSuchType { protocol: "DLPack", dtype: dtype.clone() })
}

/// The tensor in the versioned form (DLPack 1.x), which says when memory is read-only. Nothing is copied.
///
/// # Errors
/// [`Error::NoSuchType`]; [`Error::NeedsCopy`] for elements that are not aligned.
pub fn versioned(tensor: &SharedTensor) -> Result<Owned<DLManagedTensorVersioned>> {
    export(tensor, if tensor.is_read_only() { READ_ONLY } else { 0 })
}

/// As [`versioned`], for a tensor that was copied for this very export: the consumer is its only holder.
///
/// # Errors
/// [`Error::NoSuchType`]; [`Error::NeedsCopy`] for elements that are not aligned.
pub fn versioned_copy(tensor: &SharedTensor) -> Result<Owned<DLManagedTensorVersioned>> {
    export(tensor, IS_COPIED)
}

/// The tensor in the form of DLPack 0.x, which cannot say that memory is read-only. Nothing is copied.
///
/// # Errors
/// [`Error::ReadOnly`] for read-only memory, [`Error::NoSuchType`].
pub fn legacy(tensor: &SharedTensor) -> Result<Owned<DLManagedTensor>> {
    if tensor.is_read_only() {
        return Err(Error::ReadOnly { protocol: "DLPack before 1.0" });
    }
    export(tensor, 0)
}

fn export<M: Managed>(tensor: &SharedTensor, flags: u64) -> Result<Owned<M>> {
    if !tensor.is_aligned() {
        return Err(Error::NeedsCopy { protocol: "DLPack", what: "elements that are not aligned" });
    }
    let description = Description {
        data: tensor.pointer().as_ptr().cast(),
        device: DLDevice::CPU,
        dtype: dtype(tensor.dtype())?,
        shape: tensor.shape(),
        strides: tensor.strides(),
        flags,
    };
    let owner: Arc<dyn Send + Sync> = tensor.owner();
    // SAFETY: shape and strides describe memory inside the owner's (every constructor of `SharedTensor`
    // checked that), and the owner, which the managed tensor now holds, keeps it alive.
    Ok(unsafe { Owned::new(description, owner) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Mask, Number, Tensor};
    use zarrow_dlpack::Foreign;

    fn tensor(dtype: DataType) -> SharedTensor {
        let nbytes = 6 * dtype.item_size().unwrap();
        Tensor::new(Buffer::zeroed(nbytes).unwrap(), vec![2, 3], dtype).unwrap().into_shared().unwrap()
    }

    #[test]
    fn every_number_goes_out_at_its_address() {
        for number in Number::ALL {
            let tensor = tensor((*number).into());
            let exported = versioned(&tensor).unwrap();
            assert_eq!(exported.tensor().data, tensor.pointer().as_ptr().cast());
            assert_eq!(Number::from_dlpack(exported.tensor().dtype), Some(*number));
        }
    }

    #[test]
    fn a_mask_goes_out_read_only_or_not_at_all() {
        let mask = Mask::new(vec![Buffer::zeroed(3).unwrap()]).unwrap().tensor(&[3]).unwrap();
        // SAFETY: the pointer was exported here, and is consumed once.
        let consumed = unsafe { Foreign::from_raw(versioned(&mask).unwrap().into_raw()) };
        assert!(consumed.unwrap().is_read_only());
        assert!(matches!(legacy(&mask), Err(Error::ReadOnly { .. })));
    }

    #[test]
    fn times_have_no_dlpack_type() {
        let time = DataType::DateTime64 { unit: crate::TimeUnit::Second, scale: 1 };
        assert!(matches!(versioned(&tensor(time)), Err(Error::NoSuchType { .. })));
    }

    #[test]
    fn the_export_keeps_the_memory_alive() {
        let tensor = tensor(Number::Int64.into());
        let owner = tensor.owner();
        let before = Arc::strong_count(&owner);
        let exported = legacy(&tensor).unwrap();
        assert_eq!(Arc::strong_count(&owner), before + 1);
        drop(exported);
        assert_eq!(Arc::strong_count(&owner), before);
    }
}
