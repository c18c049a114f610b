//! A [`SharedTensor`] as a DLPack tensor: same address, same strides, the owner counted once more.
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

/// The DLPack type of `dtype`.
///
/// # Errors
/// [`Error::NoSuchType`] for types that are not one number: times, text, raw bytes, structures; and for numbers of fewer
/// bits than a byte, which DLPack packs, and which here have a byte each.
pub fn dtype(dtype: &DataType) -> Result<DLDataType> {
    let number = dtype.as_number();
    if number.is_some_and(|number| number.part().is_none() && number.is_sub_byte()) {
        return Err(Error::NoSuchType {
            protocol: "DLPack, which packs what is smaller than a byte,",
            dtype: dtype.clone(),
        });
    }
    number
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

/// The tensor as DLPack describes one that somebody else keeps alive. Nothing is copied, and nothing allocated.
///
/// # Errors
/// [`Error::ReadOnly`] for read-only memory, of which the description could not say so; [`Error::NoSuchType`];
/// [`Error::NeedsCopy`] for elements that are not aligned; [`Error::BadView`] for more axes than DLPack's consumers take.
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

/// A tensor in new memory, whose elements have no values yet, C-contiguous.
///
/// # Errors
/// [`Error::Device`] for memory that the CPU does not have; [`Error::UnknownType`] for a type that is none of
/// [`Number`], or of less than a byte; [`Error::BadView`] for a negative extent or too many axes;
/// [`Error::ShapeOverflow`]; [`Error::OutOfMemory`].
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
    let bad = || Error::BadView(format!("no DLPack tensor has the shape {extents:?}"));
    let sizes: Option<Vec<u64>> = extents.iter().map(|extent| u64::try_from(*extent).ok()).collect();
    let sizes = sizes.filter(|sizes| sizes.len() <= MAX_NDIM).ok_or_else(bad)?;
    let mut buffer = UninitBuffer::new(shape::nbytes(&sizes, number.names().item_size)?)?;
    let strides = shape::c_strides(extents).ok_or_else(bad)?;
    let data = buffer.as_mut_ptr().cast();
    let description = Description { data, device, dtype, shape: extents, strides: &strides, flags: 0 };
    // SAFETY: the buffer has the bytes of as many elements, at an address that stays when it moves; nobody reads them
    // but the consumer, who has yet to write them.
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
    fn a_mask_goes_out_read_only_or_not_at_all() {
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
    fn new_tensors_are_of_what_was_asked_for() {
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
