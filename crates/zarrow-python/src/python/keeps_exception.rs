//! Values that run Python code when dropped, in objects that Python may free while an exception is propagating.
//!
//! After a failed call, Python frees its objects while the exception is set. This drops owners of borrowed memory,
//! which may call a Python function, and that would mistake the exception for its own.

use pyo3::ffi;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null_mut;

/// A value in a Python object or capsule, dropped with the GIL: a pending exception is kept. It has the same layout
/// as the value.
#[repr(transparent)]
pub struct KeepsException<T>(ManuallyDrop<T>);

impl<T> KeepsException<T> {
    /// Wraps `value`; it is dropped when Python frees the object.
    #[inline]
    pub fn new(value: T) -> KeepsException<T> {
        KeepsException(ManuallyDrop::new(value))
    }
}

impl<T> Deref for KeepsException<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for KeepsException<T> {
    #[inline]
    fn drop(&mut self) {
        let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
        // SAFETY: Python frees objects attached, and its creator holds the GIL; the value is dropped once, here.
        unsafe {
            ffi::PyErr_Fetch(&mut kind, &mut value, &mut trace);
            ManuallyDrop::drop(&mut self.0);
            ffi::PyErr_Restore(kind, value, trace);
        }
    }
}
