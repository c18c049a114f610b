//! Values whose drop calls a driver that may wait for a thread which waits for the GIL.
//!
//! CUDA runs functions of the host in threads of its own, and calls of the driver may wait for these. A function that is
//! Python's waits for the GIL there.

use crate::python::gil;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A value of an object of Python's, dropped without the GIL.
pub struct WithoutGil<T>(ManuallyDrop<T>);

impl<T> WithoutGil<T> {
    /// `value`, which is dropped without the GIL.
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
