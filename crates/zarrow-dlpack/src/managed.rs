//! The common interface of both managed structs, and the only call of a deleter.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::{DLManagedTensor, DLManagedTensorDeleter, DLManagedTensorVersioned, DLPackVersion, DLTensor};

/// A managed struct: [`DLManagedTensor`] or [`DLManagedTensorVersioned`]. The trait is sealed.
pub trait Managed: sealed::Fields {}

impl Managed for DLManagedTensor {}
impl Managed for DLManagedTensorVersioned {}

pub(crate) mod sealed {
    use super::{DLManagedTensorDeleter, DLPackVersion, DLTensor};

    /// The fields of both structs. They are read through raw pointers: a struct of another major version may be
    /// smaller than ours, so that even a reference to it would be unsound.
    pub trait Fields: Sized + 'static {
        /// Makes a struct with these fields; the legacy struct drops `flags`.
        fn assemble(dl_tensor: DLTensor, flags: u64, deleter: DLManagedTensorDeleter<Self>) -> Self;

        /// Returns the version of the struct; `None` for the legacy struct.
        ///
        /// # Safety
        ///
        /// `this` must point to a live managed tensor of any version.
        unsafe fn version(this: *const Self) -> Option<DLPackVersion>;

        /// Returns the deleter; `None` if there is nothing to free.
        ///
        /// # Safety
        ///
        /// `this` must point to a live managed tensor of any version.
        unsafe fn deleter(this: *const Self) -> Option<DLManagedTensorDeleter<Self>>;

        /// Returns the flags; 0 for the legacy struct.
        ///
        /// # Safety
        ///
        /// `this` must point to a live managed tensor of any version.
        unsafe fn flags(this: *const Self) -> u64;

        /// Returns a pointer to the tensor within the struct.
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

/// Calls a managed tensor's deleter on drop.
#[derive(Debug)]
pub(crate) struct Handle<M: Managed>(NonNull<M>);

impl<M: Managed> Handle<M> {
    /// # Safety
    ///
    /// `pointer` must be a live managed tensor, and no other code may call its deleter.
    pub(crate) unsafe fn new(pointer: NonNull<M>) -> Self {
        Self(pointer)
    }

    pub(crate) fn as_ptr(&self) -> *mut M {
        self.0.as_ptr()
    }

    /// Passes the duty to call the deleter to the caller.
    pub(crate) fn into_raw(self) -> NonNull<M> {
        ManuallyDrop::new(self).0
    }
}

impl<M: Managed> Drop for Handle<M> {
    fn drop(&mut self) {
        // SAFETY: the tensor is live and only we call its deleter (`Handle::new`); `into_raw` skips this drop.
        unsafe {
            if let Some(deleter) = M::deleter(self.as_ptr()) {
                deleter(self.as_ptr());
            }
        }
    }
}

// SAFETY: DLPack requires that a deleter may be called from any thread, and the descriptor behind the pointer does
// not change while it is borrowed, so that several threads may read it. The data itself is only handed out as a raw
// pointer, and using that is the caller's own `unsafe`.
unsafe impl<M: Managed> Send for Handle<M> {}
// SAFETY: as for `Send`; a shared handle only reads.
unsafe impl<M: Managed> Sync for Handle<M> {}
