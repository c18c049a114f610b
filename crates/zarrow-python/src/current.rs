//! What a Python object stands for, where it can be exchanged: an array after its own resize.

use std::sync::Arc;
use zarrow_array::fork::Mutex;

/// A value that is read as it is at the moment, and set as a whole.
///
/// The lock is held while a pointer is copied.
#[derive(Debug)]
pub struct Current<T>(Mutex<Arc<T>>);

impl<T> Current<T> {
    /// A value to begin with.
    pub fn new(value: T) -> Current<T> {
        Current(Mutex::new(Arc::new(value)))
    }

    /// The value as it is now, which stays as it is for whoever has it.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock())
    }

    /// Sets the value.
    pub fn set(&self, value: T) {
        let before = std::mem::replace(&mut *self.0.lock(), Arc::new(value));
        // After the lock: it may be the last to hold a store.
        drop(before);
    }
}
