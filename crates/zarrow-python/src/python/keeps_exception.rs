//! Values whose drop may run Python, in objects that Python may free while an exception is on its way.
//!
//! Python frees what a failed call leaves behind while its exception is set. The owner of borrowed memory is dropped with
//! it, and may call a function of Python's, which would take that exception for its own.

use pyo3::ffi;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null_mut;

/// A value of an object or a capsule of Python's, dropped with the GIL: the exception that is set stays set. In memory it is
/// the value.
#[repr(transparent)]
pub struct KeepsException<T>(ManuallyDrop<T>);

impl<T> KeepsException<T> {
    /// `value`, which is dropped where Python frees it.
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
        // SAFETY: Python frees objects attached, and what creates them has the GIL; the value is dropped once, here.
        unsafe {
            ffi::PyErr_Fetch(&mut kind, &mut value, &mut trace);
            ManuallyDrop::drop(&mut self.0);
            ffi::PyErr_Restore(kind, value, trace);
        }
    }
}
