//! Values with a drop that calls a driver, which may wait for a thread that waits for the GIL.
//!
//! CUDA runs host functions on its own threads, and driver calls may wait for these. A Python function there waits
//! for the GIL.

use crate::python::gil;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A value in a Python object, dropped without the GIL.
pub struct WithoutGil<T>(ManuallyDrop<T>);

impl<T> WithoutGil<T> {
    /// Wraps `value`; it is dropped without the GIL.
    pub fn new(value: T) -> WithoutGil<T> {
        WithoutGil(ManuallyDrop::new(value))
    }
}

impl<T> Deref for WithoutGil<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for WithoutGil<T> {
    fn drop(&mut self) {
        // SAFETY: the value is dropped once, here.
        gil::without(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}
