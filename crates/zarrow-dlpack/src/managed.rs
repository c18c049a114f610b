//! What the two managed structs have in common, and the one place where a deleter is called.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::{DLManagedTensor, DLManagedTensorDeleter, DLManagedTensorVersioned, DLPackVersion, DLTensor};

/// A struct by which a tensor is handed over: [`DLManagedTensor`] or [`DLManagedTensorVersioned`], and no other.
pub trait Managed: sealed::Fields {}

impl Managed for DLManagedTensor {}
impl Managed for DLManagedTensorVersioned {}

pub(crate) mod sealed {
    use super::{DLManagedTensorDeleter, DLPackVersion, DLTensor};

    /// The fields of both structs. They are read through raw pointers, because a struct of another major version
    /// may be smaller than ours, so that not even a reference to it may be made.
    pub trait Fields: Sized + 'static {
        /// A struct with these fields; the legacy one has no place for `flags`.
        fn assemble(dl_tensor: DLTensor, flags: u64, deleter: DLManagedTensorDeleter<Self>) -> Self;

        /// The version written in the struct; the legacy one has none.
        ///
        /// # Safety
        ///
        /// `this` must point to a live managed tensor of any version.
        unsafe fn version(this: *const Self) -> Option<DLPackVersion>;

        /// The deleter; NULL if there is nothing to free.
        ///
        /// # Safety
        ///
        /// `this` must point to a live managed tensor of any version.
        unsafe fn deleter(this: *const Self) -> Option<DLManagedTensorDeleter<Self>>;

        /// The flags; 0 for the legacy struct.
        ///
        /// # Safety
        ///
        /// `this` must point to a live managed tensor of any version.
        unsafe fn flags(this: *const Self) -> u64;

        /// The place of the tensor in the struct.
        fn dl_tensor(this: *const Self) -> *const DLTensor;
    }
}

impl sealed::Fields for DLManagedTensor {
    fn assemble(dl_tensor: DLTensor, _flags: u64, deleter: DLManagedTensorDeleter<Self>) -> Self {
        Self { dl_tensor, manager_ctx: std::ptr::null_mut(), deleter: Some(deleter) }
    }

    unsafe fn version(_this: *const Self) -> Option<DLPackVersion> {
        None
    }

    unsafe fn deleter(this: *const Self) -> Option<DLManagedTensorDeleter<Self>> {
        // SAFETY: `this` is live by this function's contract.
        unsafe { (*this).deleter }
    }

    unsafe fn flags(_this: *const Self) -> u64 {
        0
    }

    fn dl_tensor(this: *const Self) -> *const DLTensor {
        this.cast()
    }
}

impl sealed::Fields for DLManagedTensorVersioned {
    fn assemble(dl_tensor: DLTensor, flags: u64, deleter: DLManagedTensorDeleter<Self>) -> Self {
        let version = DLPackVersion::LATEST;
        Self { version, manager_ctx: std::ptr::null_mut(), deleter: Some(deleter), flags, dl_tensor }
    }

    unsafe fn version(this: *const Self) -> Option<DLPackVersion> {
        // SAFETY: `this` is live by this function's contract, and every version begins with this field.
        Some(unsafe { (*this).version })
    }

    unsafe fn deleter(this: *const Self) -> Option<DLManagedTensorDeleter<Self>> {
        // SAFETY: `this` is live by this function's contract, and every version has this field here.
        unsafe { (*this).deleter }
    }

    unsafe fn flags(this: *const Self) -> u64 {
        // SAFETY: `this` is live by this function's contract, and every version has this field here.
        unsafe { (*this).flags }
    }

    fn dl_tensor(this: *const Self) -> *const DLTensor {
        this.wrapping_byte_add(std::mem::offset_of!(Self, dl_tensor)).cast()
    }
}

/// The right and the duty to call a managed tensor's deleter.
#[derive(Debug)]
pub(crate) struct Handle<M: Managed>(NonNull<M>);

impl<M: Managed> Handle<M> {
    /// # Safety
    ///
    /// `pointer` must be a live managed tensor whose deleter nobody else will call.
    pub(crate) unsafe fn new(pointer: NonNull<M>) -> Self {
        Self(pointer)
    }

    pub(crate) fn as_ptr(&self) -> *mut M {
        self.0.as_ptr()
    }

    /// Gives the duty to call the deleter to the caller.
    pub(crate) fn into_raw(self) -> NonNull<M> {
        ManuallyDrop::new(self).0
    }
}

impl<M: Managed> Drop for Handle<M> {
    fn drop(&mut self) {
        // SAFETY: the tensor is live and the call is ours alone (`Handle::new`); `into_raw` does not come here.
        unsafe {
            if let Some(deleter) = M::deleter(self.as_ptr()) {
                deleter(self.as_ptr());
            }
        }
    }
}

// SAFETY: DLPack asks of every producer that its deleter may be called from any thread, and the descriptor behind
// the pointer is not changed while it is lent, so that it may be read from several. The data itself is only ever
// handed out as a raw pointer, whose use is the caller's own `unsafe`.
unsafe impl<M: Managed> Send for Handle<M> {}
// SAFETY: as for `Send`; a shared handle does no more than read.
unsafe impl<M: Managed> Sync for Handle<M> {}
