//! Descriptors of other libraries' tensors: accepted ones lie inside their memory.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::ptr::null_mut;
use zarrow_dlpack::{
    DLDataType, DLDataTypeCode, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
    Foreign, Managed, from_dlpack,
};

#[derive(Arbitrary, Debug)]
struct Case {
    version: Option<(u32, u32, u64)>,
    data: usize,
    device: (i32, i32),
    dtype: (u8, u8, u16),
    /// A number of axes that contradicts the arrays of shape and strides.
    ndim: Option<i32>,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    byte_offset: u64,
    expect: Option<(i32, i32)>,
}

fn take<M: Managed>(managed: &mut M, case: &Case) {
    let device = case.expect.map(|(kind, number)| DLDevice::new(kind, number));
    // SAFETY: the struct lives until the end of the caller, has no deleter, and its two pointers are NULL or point to
    // `ndim` numbers.
    if let Ok(foreign) = unsafe { from_dlpack(managed, device, None) } {
        look(&foreign);
    }
}

/// Checks that every element's bytes are inside the extent, by visiting the corners.
fn look<M: Managed>(foreign: &Foreign<M>) {
    let extent = foreign.byte_extent();
    assert_eq!(foreign.shape().len(), foreign.strides().len());
    assert!(extent.start <= 0 && extent.end >= 0);
    let start = (foreign.data().addr() as i128) + extent.start as i128;
    assert!(foreign.data().is_null() || start >= 0);
    assert!(foreign.data().addr() as i128 + extent.end as i128 <= usize::MAX as i128);
    let bits = i128::from(foreign.dtype().bits) * i128::from(foreign.dtype().lanes);
    if foreign.shape().contains(&0) {
        assert!(extent.is_empty());
    } else if bits % 8 == 0 {
        let reach = |sign: i128| -> i128 {
            let axes = foreign.shape().iter().zip(foreign.strides());
            axes.map(|(extent, stride)| (i128::from(*extent) - 1) * i128::from(*stride))
                .filter(|step| step * sign > 0)
                .sum()
        };
        assert_eq!(extent.start as i128, reach(-1) * bits / 8);
        assert_eq!(extent.end as i128, (reach(1) + 1) * bits / 8);
    }
    let _ = format!("{foreign:?}");
}

fuzz_target!(|case: Case| {
    let (mut shape, mut strides) = (case.shape.clone(), case.strides.clone());
    if let Some(strides) = &mut strides {
        strides.resize(shape.len(), 1);
    }
    let ndim = match case.ndim {
        Some(ndim) if shape.is_empty() => ndim,
        _ => shape.len() as i32,
    };
    let dl_tensor = DLTensor {
        data: std::ptr::without_provenance_mut(case.data),
        device: DLDevice::new(case.device.0, case.device.1),
        ndim,
        dtype: DLDataType { code: DLDataTypeCode(case.dtype.0), bits: case.dtype.1, lanes: case.dtype.2 },
        shape: if shape.is_empty() { null_mut() } else { shape.as_mut_ptr() },
        strides: strides
            .as_mut()
            .filter(|strides| !strides.is_empty())
            .map_or(null_mut(), |strides| strides.as_mut_ptr()),
        byte_offset: case.byte_offset,
    };
    match case.version {
        Some((major, minor, flags)) => {
            let version = DLPackVersion::new(major % 3, minor);
            take(
                &mut DLManagedTensorVersioned {
                    version,
                    manager_ctx: null_mut(),
                    deleter: None,
                    flags,
                    dl_tensor,
                },
                &case,
            );
        }
        None => take(&mut DLManagedTensor { dl_tensor, manager_ctx: null_mut(), deleter: None }, &case),
    }
});
