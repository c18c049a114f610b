//! An exported tensor is one heap block, and all of it is freed.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use zarrow_dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, Description, Dtype, Foreign, Managed,
    Owned,
};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
    static WIDE_ENDS: Cell<usize> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a counter per thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as isize);
        // SAFETY: by this function's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.set(FREED.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as isize);
        // SAFETY: by this function's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// An owner with a larger alignment than the rest of the block. It checks itself when dropped.
#[repr(align(128))]
struct WideOwner(u8);

impl Drop for WideOwner {
    fn drop(&mut self) {
        assert!(self.0 == 7 && std::ptr::from_ref(self).addr().is_multiple_of(128));
        WIDE_ENDS.set(WIDE_ENDS.get() + 1);
    }
}

fn assert_one_block<M: Managed, O: Send + Sync + 'static>(
    ndim: usize,
    owner: O,
    overwrite_ndim: impl Fn(*mut M),
) {
    let axes = vec![1; ndim];
    let description = Description {
        data: std::ptr::dangling_mut::<u64>().cast(),
        device: DLDevice::CPU,
        dtype: DLDataType::from_dtype(Dtype::UInt64),
        shape: &axes,
        strides: &axes,
        flags: 0,
    };
    let before = (ALLOCATIONS.get(), FREED.get(), LIVE_BYTES.get());
    // SAFETY: the data is never read.
    let managed = unsafe { Owned::<M>::new(description, owner) }.into_raw();
    assert_eq!((ALLOCATIONS.get(), FREED.get()), (before.0 + 1, before.1));
    assert!(LIVE_BYTES.get() - before.2 >= (size_of::<M>() + 16 * ndim + size_of::<O>()) as isize);

    // SAFETY: the tensor is live and only consumed here.
    let foreign = unsafe { Foreign::from_raw(managed) }.unwrap();
    assert_eq!(foreign.shape(), axes);
    assert_eq!(ALLOCATIONS.get(), before.0 + 1, "C-order strides are borrowed");
    overwrite_ndim(managed.as_ptr());
    drop(foreign);
    assert_eq!((FREED.get(), LIVE_BYTES.get()), (before.1 + 1, before.2));
}

#[test]
fn one_block_is_allocated_and_freed() {
    for ndim in [0, 1, 3, 64] {
        assert_one_block::<DLManagedTensor, _>(ndim, (), |_| ());
        assert_one_block::<DLManagedTensor, _>(ndim, [0_u8; 3], |_| ());
        assert_one_block::<DLManagedTensorVersioned, _>(ndim, 1_u64, |_| ());
        assert_one_block::<DLManagedTensorVersioned, _>(ndim, WideOwner(7), |_| ());
    }
    // The deleter swallows panics of the owner, so the count of drops proves that the checks passed.
    assert_eq!(WIDE_ENDS.get(), 4);
}

#[test]
fn writes_by_the_consumer_do_not_change_the_freed_size() {
    assert_one_block::<DLManagedTensorVersioned, _>(3, 1_u64, |managed| {
        // SAFETY: the tensor is live, and only this thread reads it.
        unsafe { (*managed).dl_tensor.ndim = 64 };
    });
}
