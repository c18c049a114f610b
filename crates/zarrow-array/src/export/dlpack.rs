//! Export of a [`SharedTensor`] to DLPack: same address, same strides, one more reference to the owner.
//!
//! Source: the DLPack 1.3 header, and the array API's `__dlpack__`.

use crate::buffer::UninitBuffer;
use crate::dtype::{DataType, Number};
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use crate::shape;
use std::sync::Arc;
use zarrow_dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, Description, IS_COPIED,
    MAX_NDIM, Managed, Owned, READ_ONLY,
};

/// Returns the DLPack type of `dtype`.
///
/// # Errors
/// [`Error::NoSuchType`] for types that are not a single number (times, text, raw bytes, structures), and for
/// sub-byte numbers: DLPack packs these, but here they take a byte each.
pub fn dtype(dtype: &DataType) -> Result<DLDataType> {
    let number = dtype.as_number();
    if let Some(found) = number.and_then(|number| number.names().dlpack) {
        return Ok(found);
    }
    let is_packed = number.is_some_and(|number| number.part().is_none() && number.is_sub_byte());
    let protocol = if is_packed { "DLPack, which packs sub-byte types," } else { "DLPack" };
    Err(Error::NoSuchType { protocol, dtype: dtype.clone() })
}

/// Exports the tensor in the versioned form (DLPack 1.x), which can mark memory as read-only. Nothing is copied.
///
/// # Errors
/// [`Error::NoSuchType`]; [`Error::NeedsCopy`] for misaligned elements.
pub fn versioned(tensor: &SharedTensor) -> Result<Owned<DLManagedTensorVersioned>> {
    export(tensor, if tensor.is_read_only() { READ_ONLY } else { 0 })
}

/// Exports a tensor copied for this export alone, as in [`versioned`]: the consumer is its only holder.
///
/// # Errors
/// [`Error::NoSuchType`]; [`Error::NeedsCopy`] for misaligned elements.
pub fn versioned_copy(tensor: &SharedTensor) -> Result<Owned<DLManagedTensorVersioned>> {
    export(tensor, IS_COPIED)
}

/// Exports the tensor in the form of DLPack 0.x, which cannot mark memory as read-only. Nothing is copied.
///
/// # Errors
/// [`Error::ReadOnly`] for read-only memory, [`Error::NoSuchType`].
pub fn legacy(tensor: &SharedTensor) -> Result<Owned<DLManagedTensor>> {
    if tensor.is_read_only() {
        return Err(Error::ReadOnly { protocol: "DLPack before 1.0" });
    }
    export(tensor, 0)
}

/// Describes the tensor to DLPack without ownership, without a copy or an allocation.
///
/// # Errors
/// [`Error::ReadOnly`] for read-only memory, because the description has no flag for it; [`Error::NoSuchType`];
/// [`Error::NeedsCopy`] for misaligned elements; [`Error::BadView`] for more axes than DLPack consumers accept.
///
/// ```
/// use zarrow_array::{Buffer, Number, Tensor, export};
/// let tensor = Tensor::new(Buffer::zeroed(24)?, vec![2, 3], Number::Int32.into())?.into_shared()?;
/// let described = export::dlpack::described(&tensor)?;
/// assert_eq!((described.ndim, described.shape.cast_const()), (2, tensor.shape().as_ptr()));
/// # Ok::<(), zarrow_array::Error>(())
/// ```
pub fn described(tensor: &SharedTensor) -> Result<DLTensor> {
    if tensor.is_read_only() {
        return Err(Error::ReadOnly { protocol: "a DLTensor" });
    }
    Ok(description(tensor, 0)?.to_tensor())
}

/// Allocates a C-contiguous tensor with uninitialized elements.
///
/// # Errors
/// [`Error::Device`] for memory not on the CPU; [`Error::UnknownType`] for a type not in [`Number`], or smaller
/// than a byte; [`Error::BadView`] for a negative extent or too many axes; [`Error::ShapeOverflow`];
/// [`Error::OutOfMemory`].
///
/// ```
/// use zarrow_array::export::dlpack;
/// use zarrow_dlpack::{DLDataType, DLDevice, Dtype};
/// let tensor = dlpack::empty(DLDevice::CPU, DLDataType::from_dtype(Dtype::Int16), &[2, 3])?;
/// assert_eq!(tensor.tensor().ndim, 2);
/// # Ok::<(), zarrow_array::Error>(())
/// ```
pub fn empty(
    device: DLDevice,
    dtype: DLDataType,
    extents: &[i64],
) -> Result<Owned<DLManagedTensorVersioned>> {
    if device != DLDevice::CPU {
        return Err(Error::Device { device });
    }
    let number = Number::from_dlpack(dtype).filter(|_| !dtype.is_sub_byte());
    let number =
        number.ok_or_else(|| Error::UnknownType { protocol: "the DLPack", name: dtype.to_string() })?;
    let bad = || Error::BadView(format!("{extents:?} is not a valid shape of a DLPack tensor"));
    let sizes: Option<Vec<u64>> = extents.iter().map(|extent| u64::try_from(*extent).ok()).collect();
    let sizes = sizes.filter(|sizes| sizes.len() <= MAX_NDIM).ok_or_else(bad)?;
    let mut buffer = UninitBuffer::new(shape::nbytes(&sizes, number.names().item_size)?)?;
    let strides = shape::c_strides(extents).ok_or_else(bad)?;
    let data = buffer.as_mut_ptr().cast();
    let description = Description { data, device, dtype, shape: extents, strides: &strides, flags: 0 };
    // SAFETY: the buffer has the bytes of all elements, at an address that does not change when the buffer moves;
    // only the consumer accesses them, and it must write before it reads.
    Ok(unsafe { Owned::new(description, buffer) })
}

fn description(tensor: &SharedTensor, flags: u64) -> Result<Description<'_>> {
    if tensor.shape().len() > MAX_NDIM {
        return Err(Error::BadView(format!("a DLPack tensor has at most {MAX_NDIM} axes")));
    }
    let dtype = dtype(tensor.dtype())?;
    if !tensor.is_aligned() {
        return Err(Error::NeedsCopy { protocol: "DLPack", what: "elements that are not aligned" });
    }
    Ok(Description {
        data: tensor.pointer().as_ptr().cast(),
        device: DLDevice::CPU,
        dtype,
        shape: tensor.shape(),
        strides: tensor.strides(),
        flags,
    })
}

fn export<M: Managed>(tensor: &SharedTensor, flags: u64) -> Result<Owned<M>> {
    let description = description(tensor, flags)?;
    let owner: Arc<dyn Send + Sync> = tensor.owner();
    // SAFETY: shape and strides describe memory inside the owner's (every constructor of `SharedTensor` checked
    // that), and the managed tensor now holds the owner, which keeps it alive.
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
    fn every_number_is_exported_at_its_address() {
        for number in Number::ALL {
            let tensor = tensor((*number).into());
            if number.names().dlpack.is_none() {
                assert!(versioned(&tensor).is_err());
                continue;
            }
            let exported = versioned(&tensor).unwrap();
            assert_eq!(exported.tensor().data, tensor.pointer().as_ptr().cast());
            assert_eq!(Number::from_dlpack(exported.tensor().dtype), Some(*number));
        }
    }

    #[test]
    fn a_mask_is_exported_read_only_or_refused() {
        let mask = Mask::new(vec![Buffer::zeroed(3).unwrap()]).unwrap().tensor(&[3]).unwrap();
        // SAFETY: the pointer was exported here, and is consumed once.
        let consumed = unsafe { Foreign::from_raw(versioned(&mask).unwrap().into_raw()) };
        assert!(consumed.unwrap().is_read_only());
        assert!(matches!(legacy(&mask), Err(Error::ReadOnly { .. })));
    }

    #[test]
    fn a_description_points_into_the_tensor() {
        let whole = tensor(Number::Float32.into());
        let column =
            whole.view(&[crate::IndexStep::Range { start: 0, step: 1, count: 2 }, crate::IndexStep::At(2)]);
        let column = column.unwrap();
        let described = described(&column).unwrap();
        assert_eq!(described.data, column.pointer().as_ptr().cast());
        assert_eq!(described.shape.cast_const(), column.shape().as_ptr());
        assert_eq!(described.strides.cast_const(), column.strides().as_ptr());
        let mask = Mask::new(vec![Buffer::zeroed(3).unwrap()]).unwrap().tensor(&[3]).unwrap();
        assert!(matches!(super::described(&mask), Err(Error::ReadOnly { .. })));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where the allocator would refuse")]
    fn empty_tensors_match_the_request() {
        let float = dtype(&Number::Float32.into()).unwrap();
        let made = empty(DLDevice::CPU, float, &[3, 0, 2]).unwrap();
        assert!(made.tensor().data.is_null());
        let scalar = empty(DLDevice::CPU, float, &[]).unwrap();
        assert!(!scalar.tensor().data.is_null() && scalar.tensor().shape.is_null());
        let refused = |device, dtype, shape: &[i64]| empty(device, dtype, shape).unwrap_err();
        assert!(matches!(refused(DLDevice::CUDA, float, &[2]), Error::Device { .. }));
        let vector = DLDataType { lanes: 4, ..float };
        assert!(matches!(refused(DLDevice::CPU, vector, &[2]), Error::UnknownType { .. }));
        assert!(matches!(refused(DLDevice::CPU, float, &[-1]), Error::BadView(_)));
        assert!(matches!(refused(DLDevice::CPU, float, &[1; 65]), Error::BadView(_)));
        assert!(matches!(refused(DLDevice::CPU, float, &[i64::MAX, 2]), Error::ShapeOverflow { .. }));
        assert!(matches!(refused(DLDevice::CPU, float, &[1 << 50]), Error::OutOfMemory { .. }));
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
