//! Import of a DLPack tensor as a [`SharedTensor`]: same address, same strides. Dropping the last view runs the
//! producer's deleter.
//!
//! Source: the DLPack 1.3 header, and the array API's `from_dlpack`.

use crate::dtype::Number;
use crate::error::{Error, Result};
use crate::layout::{ForeignMemory, ForeignStrides, SharedTensor};
use std::sync::Arc;
use zarrow_dlpack::{
    DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, Foreign, IS_SUBBYTE_TYPE_PADDED,
    Managed,
};

/// Imports a versioned struct (DLPack 1.x), read-only if it is flagged so. Nothing is copied.
///
/// # Errors
/// [`Error::Device`] for memory not on the CPU; [`Error::UnknownType`]; [`Error::Misaligned`]. The producer's
/// deleter has run by then.
pub fn versioned(foreign: Foreign<DLManagedTensorVersioned>) -> Result<SharedTensor> {
    let read_only = foreign.is_read_only();
    tensor(foreign, read_only)
}

/// Imports a struct of DLPack 0.x, which cannot mark memory as read-only. Set `writable` only for producers known
/// to always allow writes. Nothing is copied.
///
/// # Errors
/// See [`versioned`].
pub fn legacy(foreign: Foreign<DLManagedTensor>, writable: bool) -> Result<SharedTensor> {
    tensor(foreign, !writable)
}

fn tensor<M: Managed>(foreign: Foreign<M>, read_only: bool) -> Result<SharedTensor> {
    let (device, dtype) = (foreign.device(), foreign.dtype());
    if !is_host(device) {
        return Err(Error::Device { device });
    }
    let unknown = |name: String| Error::UnknownType { protocol: "the DLPack", name };
    if dtype.is_sub_byte() && foreign.flags() & IS_SUBBYTE_TYPE_PADDED == 0 {
        return Err(unknown(format!("{dtype} (several elements per byte)")));
    }
    let number = Number::from_dlpack(dtype).ok_or_else(|| unknown(dtype.to_string()))?;
    let (pointer, strides) = (foreign.data().cast(), ForeignStrides::Elements(foreign.strides()));
    let memory = ForeignMemory::check(pointer, foreign.shape(), strides, number.into(), read_only)?;
    // SAFETY: the producer promised that the elements stay valid until its deleter runs, which happens when the
    // owner is dropped; a producer without READ_ONLY allows writing, and memory of unknown writability is
    // read-only.
    let tensor = unsafe { SharedTensor::from_foreign(memory, Arc::new(foreign)) };
    if tensor.is_aligned() {
        Ok(tensor)
    } else {
        Err(Error::Misaligned { protocol: "DLPack", dtype: number.into() })
    }
}

/// Returns whether the memory is on the host; pinned memory is.
fn is_host(device: DLDevice) -> bool {
    matches!(device.device_type, DLDeviceType::CPU | DLDeviceType::CUDA_HOST | DLDeviceType::ROCM_HOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Tensor, export};
    use zarrow_dlpack::{DLDataType, Description, Owned, READ_ONLY};

    fn lend<M: Managed>(description: Description<'_>, owner: Arc<Vec<i64>>) -> Foreign<M> {
        // SAFETY: the descriptions of these tests stay within the vector; the pointer is consumed once, here.
        unsafe { Foreign::from_raw(Owned::new(description, owner).into_raw()).unwrap() }
    }

    fn description<'a>(memory: &Arc<Vec<i64>>, shape: &'a [i64], strides: &'a [i64]) -> Description<'a> {
        Description {
            data: memory.as_ptr().cast_mut().cast(),
            device: DLDevice::CPU,
            dtype: DLDataType::new(zarrow_dlpack::DLDataTypeCode::INT, 64),
            shape,
            strides,
            flags: 0,
        }
    }

    #[test]
    fn memory_is_shared_until_the_last_view_is_dropped() {
        let memory = Arc::new((0..12).collect::<Vec<i64>>());
        let mut borrowed = description(&memory, &[2, 3], &[-6, 2]);
        // SAFETY: element 6 is inside the vector.
        borrowed.data = unsafe { memory.as_ptr().add(6) }.cast_mut().cast();
        let tensor = versioned(lend(borrowed, Arc::clone(&memory))).unwrap();
        assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[-6, 2][..]));
        assert_eq!(tensor.pointer().as_ptr().cast_const(), memory[6..].as_ptr().cast());
        assert!(!tensor.is_read_only());
        let row =
            tensor.view(&[crate::IndexStep::At(1), crate::IndexStep::Range { start: 2, step: 1, count: 1 }]);
        drop(tensor);
        assert_eq!(Arc::strong_count(&memory), 2);
        // SAFETY: the vector is never written to.
        let copied = unsafe { row.unwrap().copy().unwrap() };
        assert_eq!(Arc::strong_count(&memory), 1);
        // SAFETY: as above.
        assert_eq!(unsafe { copied.bytes() }, Some(&4i64.to_ne_bytes()[..]));
    }

    #[test]
    fn read_only_memory_stays_read_only() {
        let memory = Arc::new(vec![0i64; 4]);
        let borrowed = || description(&memory, &[4], &[1]);
        let read_only = Description { flags: READ_ONLY, ..borrowed() };
        assert!(versioned(lend(read_only, memory.clone())).unwrap().is_read_only());
        assert!(legacy(lend(borrowed(), memory.clone()), false).unwrap().is_read_only());
        assert!(!legacy(lend(borrowed(), memory.clone()), true).unwrap().is_read_only());
    }

    #[test]
    fn unsupported_tensors_are_refused_and_deleted() {
        let memory = Arc::new(vec![0i64; 4]);
        let refused = |change: &dyn Fn(&mut Description<'_>)| {
            let mut borrowed = description(&memory, &[2], &[1]);
            change(&mut borrowed);
            let error = versioned(lend(borrowed, memory.clone())).unwrap_err();
            assert_eq!(Arc::strong_count(&memory), 1, "{error}");
            error
        };
        assert!(matches!(refused(&|borrowed| borrowed.device = DLDevice::CUDA), Error::Device { .. }));
        assert!(matches!(
            refused(&|borrowed| borrowed.data = borrowed.data.wrapping_byte_add(1)),
            Error::Misaligned { .. }
        ));
        let handle = DLDataType::new(zarrow_dlpack::DLDataTypeCode::OPAQUE_HANDLE, 64);
        assert!(matches!(refused(&|borrowed| borrowed.dtype = handle), Error::UnknownType { .. }));
        let int4 = DLDataType::new(zarrow_dlpack::DLDataTypeCode::INT, 4);
        assert!(matches!(refused(&|borrowed| borrowed.dtype = int4), Error::UnknownType { .. }));
        let pinned = Description { device: DLDevice::CUDA_HOST, ..description(&memory, &[2], &[1]) };
        assert!(versioned(lend(pinned, memory.clone())).is_ok());
    }

    #[test]
    fn every_number_round_trips() {
        for number in Number::ALL.iter().filter(|number| number.names().dlpack.is_some()) {
            let buffer = Buffer::zeroed(2 * number.names().item_size).unwrap();
            let ours = Tensor::new(buffer, vec![2], (*number).into()).unwrap().into_shared().unwrap();
            let borrowed = export::dlpack::versioned(&ours).unwrap();
            // SAFETY: the pointer was exported here, and is consumed once.
            let back = versioned(unsafe { Foreign::from_raw(borrowed.into_raw()) }.unwrap()).unwrap();
            assert_eq!((back.dtype(), back.pointer()), (ours.dtype(), ours.pointer()));
        }
    }
}
