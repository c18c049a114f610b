//! Exported tensors.
//!
//! 1. One heap block holds the managed struct, the owner of the data, the extents and the strides.
//! 2. The struct is the first field, so that the deleter gets the block from its argument.
//! 3. The deleter drops the owner, then frees the block, and never unwinds into the consumer.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, addr_of_mut, drop_in_place, null_mut};

use crate::managed::Handle;
use crate::{DLDataType, DLDevice, DLTensor, MAX_NDIM, Managed};

/// Description of a tensor to export.
#[derive(Debug, Clone, Copy)]
pub struct Description<'a> {
    /// Address of the element at index 0 of every axis; ignored if there are no elements.
    pub data: *mut c_void,
    /// Device that holds the data.
    pub device: DLDevice,
    /// Type of one element.
    pub dtype: DLDataType,
    /// One extent per axis, all non-negative.
    pub shape: &'a [i64],
    /// One stride per axis, in elements.
    pub strides: &'a [i64],
    /// Any of [`READ_ONLY`](crate::READ_ONLY), [`IS_COPIED`](crate::IS_COPIED),
    /// [`IS_SUBBYTE_TYPE_PADDED`](crate::IS_SUBBYTE_TYPE_PADDED). The legacy struct cannot carry flags: before
    /// exporting read-only memory through it, get the consumer's consent by other means.
    pub flags: u64,
}

impl Description<'_> {
    /// Returns the ABI's form. It borrows the extents and strides: the consumer may only read them, while they
    /// live.
    ///
    /// `byte_offset` is 0; `data` is NULL if there are no elements; `shape` and `strides` are NULL if there are no
    /// axes. All consumers understand these forms, and some consumers understand no other.
    ///
    /// # Panics
    ///
    /// If `shape` and `strides` differ in length, or have more than [`MAX_NDIM`] axes.
    #[must_use]
    pub fn to_tensor(&self) -> DLTensor {
        let ndim = self.shape.len();
        assert!(
            ndim == self.strides.len() && ndim <= MAX_NDIM,
            "expected one extent and one stride per axis"
        );
        let pointer = |axes: &[i64]| if ndim == 0 { null_mut() } else { axes.as_ptr().cast_mut() };
        DLTensor {
            data: if self.shape.contains(&0) { null_mut() } else { self.data },
            device: self.device,
            ndim: ndim as i32,
            dtype: self.dtype,
            shape: pointer(self.shape),
            strides: pointer(self.strides),
            byte_offset: 0,
        }
    }
}

/// An exported tensor. Dropping it before [`into_raw`](Self::into_raw) calls its deleter.
pub struct Owned<M: Managed> {
    handle: Handle<M>,
}

/// The heap block of step 1. The extents and strides follow it, see [`Block::layout`].
#[repr(C)]
struct Block<M, O> {
    managed: M,
    /// Copy of `managed.dl_tensor.ndim`, to free the whole block even if the consumer has overwritten that.
    ndim: usize,
    owner: O,
}

impl<M: Managed, O> Block<M, O> {
    /// Returns the layout of the whole block; the extents begin at `size_of::<Self>()`.
    const fn layout(ndim: usize) -> Layout {
        // The extents need neither padding nor a larger alignment.
        const { assert!(align_of::<M>() >= align_of::<i64>()) };
        let size = size_of::<Self>() + 2 * ndim * size_of::<i64>();
        // SAFETY: the alignment is that of a type. `ndim` is at most `MAX_NDIM` (`Description::to_tensor`), so the
        // size is at most 1 KiB plus that of a type passed by move, far below `isize::MAX`.
        unsafe { Layout::from_size_align_unchecked(size, align_of::<Self>()) }
    }
}

impl<M: Managed> Owned<M> {
    /// Makes a managed tensor from `description`. `owner` keeps its memory alive. The data is shared, not copied.
    ///
    /// The extents, strides and owner are moved into one allocation, the only one made here.
    ///
    /// # Safety
    ///
    /// Every element reachable through `description` must be in memory that `owner` keeps valid and at the same
    /// address until `owner` is dropped, even if `owner` moves. Any thread may read this memory. Without
    /// [`READ_ONLY`](crate::READ_ONLY), and always in the legacy struct, the consumer may also write to it: no
    /// other code may rely on its contents.
    ///
    /// # Panics
    ///
    /// See [`Description::to_tensor`].
    #[must_use]
    pub unsafe fn new<O: Send + Sync + 'static>(description: Description<'_>, owner: O) -> Self {
        let mut tensor = description.to_tensor();
        let ndim = description.shape.len();
        let layout = Block::<M, O>::layout(ndim);
        // SAFETY: the layout holds at least the managed struct, so it is not empty.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: the layout has room for the block and, aligned behind it, for `ndim` extents and `ndim` strides;
        // the memory is new, so the slices cannot overlap it. The tensor is not shared yet, so only this handle
        // calls its deleter.
        unsafe {
            if ndim > 0 {
                tensor.shape = start.cast::<Block<M, O>>().add(1).cast::<i64>().as_ptr();
                tensor.strides = tensor.shape.add(ndim);
                tensor.shape.copy_from_nonoverlapping(description.shape.as_ptr(), ndim);
                tensor.strides.copy_from_nonoverlapping(description.strides.as_ptr(), ndim);
            }
            let managed = M::assemble(tensor, description.flags, delete::<M, O>);
            start.cast::<Block<M, O>>().write(Block { managed, ndim, owner });
            Self { handle: Handle::new(start.cast()) }
        }
    }

    /// Returns the tensor as the consumer will see it.
    #[must_use]
    pub fn tensor(&self) -> &DLTensor {
        // SAFETY: `new` made the struct, in our version, and it lives as long as the handle.
        unsafe { &*M::dl_tensor(self.handle.as_ptr()) }
    }

    /// Takes back a tensor from [`into_raw`](Self::into_raw) that was not consumed.
    ///
    /// # Safety
    ///
    /// `pointer` must come from `into_raw`. Its deleter must not have been called, and no other code may call it.
    #[must_use]
    pub unsafe fn from_raw(pointer: NonNull<M>) -> Self {
        // SAFETY: by this function's contract.
        Self { handle: unsafe { Handle::new(pointer) } }
    }

    /// Transfers ownership: the consumer must call the deleter once, or the memory leaks.
    #[must_use]
    pub fn into_raw(self) -> NonNull<M> {
        self.handle.into_raw()
    }
}

impl<M: Managed> fmt::Debug for Owned<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Owned").field(self.tensor()).finish()
    }
}

/// Transfers ownership of `owned`; same as [`Owned::into_raw`].
#[must_use]
pub fn to_dlpack<M: Managed>(owned: Owned<M>) -> NonNull<M> {
    owned.into_raw()
}

/// Step 3: the deleter of tensors made by [`Owned::new`].
///
/// # Safety
///
/// `managed` must come from `Owned::<M>::new` with an owner of type `O`, and must not have been deleted.
unsafe extern "C" fn delete<M: Managed, O>(managed: *mut M) {
    let block = managed.cast::<Block<M, O>>();
    // SAFETY: the managed struct is the block's first field (step 2), and its pointer came back unchanged, so it
    // points to the whole block, with a live owner.
    unsafe {
        let layout = Block::<M, O>::layout((*block).ndim);
        let owner = addr_of_mut!((*block).owner);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop_in_place(owner))) {
            // The panic hook has reported this panic; dropping the payload could panic again, uncaught.
            std::mem::forget(payload);
        }
        dealloc(block.cast(), layout);
    }
}
