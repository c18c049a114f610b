//! Tensors that we lend out.
//!
//! 1. One heap block holds the managed struct, the owner of the data, the extents and the strides.
//! 2. The struct comes first, so that the deleter finds the block from the pointer that it is given.
//! 3. The deleter drops the owner, then frees the block, and never unwinds into the consumer.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, addr_of_mut, drop_in_place, null_mut};

use crate::managed::Handle;
use crate::{DLDataType, DLDevice, DLTensor, MAX_NDIM, Managed};

/// What a tensor to lend looks like.
#[derive(Debug, Clone, Copy)]
pub struct Description<'a> {
    /// Address of the element at index 0 of every axis; what it is does not matter if there are no elements.
    pub data: *mut c_void,
    /// Where the data lies.
    pub device: DLDevice,
    /// What one element is.
    pub dtype: DLDataType,
    /// One extent for each axis, none negative.
    pub shape: &'a [i64],
    /// One step for each axis, in elements.
    pub strides: &'a [i64],
    /// Any of [`READ_ONLY`](crate::READ_ONLY), [`IS_COPIED`](crate::IS_COPIED),
    /// [`IS_SUBBYTE_TYPE_PADDED`](crate::IS_SUBBYTE_TYPE_PADDED). The legacy struct cannot carry them: whoever
    /// exports read-only memory by it must ask the consumer's consent by other means.
    pub flags: u64,
}

impl Description<'_> {
    /// The ABI's form, which borrows the extents and strides: the consumer may only read them, while they live.
    ///
    /// `byte_offset` is 0; `data` is NULL if there are no elements; `shape` and `strides` are NULL if there are
    /// no axes. All consumers understand these forms, and some of them no other.
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

/// A tensor of ours, ready to be lent; until then, dropping it calls its deleter.
pub struct Owned<M: Managed> {
    handle: Handle<M>,
}

/// Step 1. The extents and the strides follow behind it, where [`Block::layout`] says.
#[repr(C)]
struct Block<M, O> {
    managed: M,
    /// Kept beside `managed.dl_tensor.ndim`, which is in the consumer's hands, to free what was allocated.
    ndim: usize,
    owner: O,
}

impl<M: Managed, O> Block<M, O> {
    /// The layout of the whole block; the extents begin at `size_of::<Self>()`.
    const fn layout(ndim: usize) -> Layout {
        // The extents need no padding before them, nor any alignment of their own.
        const { assert!(align_of::<M>() >= align_of::<i64>()) };
        let size = size_of::<Self>() + 2 * ndim * size_of::<i64>();
        // SAFETY: the alignment is that of a type. `ndim` is at most `MAX_NDIM` (`Description::to_tensor`), so
        // that 1 KiB and the size of a type, a value of which was passed by move, stay far below `isize::MAX`.
        unsafe { Layout::from_size_align_unchecked(size, align_of::<Self>()) }
    }
}

impl<M: Managed> Owned<M> {
    /// Makes a managed tensor of `description`, whose memory `owner` keeps alive. The data is shared, not copied.
    ///
    /// The extents and strides are copied, with the owner, into one allocation, the only one made here.
    ///
    /// # Safety
    ///
    /// Every element that `description` reaches must lie in memory that stays valid at this address, also when
    /// `owner` moves, until `owner` is dropped, and that may be read from any thread. Without
    /// [`READ_ONLY`](crate::READ_ONLY), and always in the legacy struct, it may be written to as well: nothing
    /// else may rely on its contents.
    ///
    /// # Panics
    ///
    /// As [`Description::to_tensor`].
    #[must_use]
    pub unsafe fn new<O: Send + Sync + 'static>(description: Description<'_>, owner: O) -> Self {
        let mut tensor = description.to_tensor();
        let ndim = description.shape.len();
        let layout = Block::<M, O>::layout(ndim);
        // SAFETY: the layout holds at least the managed struct, so it is not empty.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: the layout has room for the block and behind it, aligned, for `ndim` extents and as many strides;
        // the memory is new, so that the slices cannot overlap it. Nobody else knows of the tensor yet, so that the
        // handle's duty to delete it is the only one.
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

    /// The tensor as the consumer will see it.
    #[must_use]
    pub fn tensor(&self) -> &DLTensor {
        // SAFETY: `new` made the struct, in our version, and it lives as long as the handle.
        unsafe { &*M::dl_tensor(self.handle.as_ptr()) }
    }

    /// Takes back a tensor that [`into_raw`](Self::into_raw) gave away, and nobody consumed.
    ///
    /// # Safety
    ///
    /// `pointer` must come from `into_raw`, and its deleter not have been called, nor be called by anybody else.
    #[must_use]
    pub unsafe fn from_raw(pointer: NonNull<M>) -> Self {
        // SAFETY: by this function's contract.
        Self { handle: unsafe { Handle::new(pointer) } }
    }

    /// Gives the tensor away: the consumer must call the deleter once, or the memory leaks.
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

/// Gives `owned` away; the same as [`Owned::into_raw`].
#[must_use]
pub fn to_dlpack<M: Managed>(owned: Owned<M>) -> NonNull<M> {
    owned.into_raw()
}

/// Step 3: the deleter of the tensors that [`Owned::new`] makes.
///
/// # Safety
///
/// `managed` must come from `Owned::<M>::new` with an owner of type `O`, and not have been deleted.
unsafe extern "C" fn delete<M: Managed, O>(managed: *mut M) {
    let block = managed.cast::<Block<M, O>>();
    // SAFETY: the managed struct is the block's first field (step 2), and its pointer has come back unchanged, so
    // it stands for the whole block, whose owner is live until here.
    unsafe {
        let layout = Block::<M, O>::layout((*block).ndim);
        let owner = addr_of_mut!((*block).owner);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop_in_place(owner))) {
            // The panic hook has told of it; dropping the payload could panic again, with nobody to catch it.
            std::mem::forget(payload);
        }
        dealloc(block.cast(), layout);
    }
}
