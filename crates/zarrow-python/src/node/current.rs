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

    /// Sets the value, unless that which is there knows a later state by its `revision`: of two threads that change what
    /// one object stands for, either may be the first to get here.
    pub fn set_later(&self, value: T, revision: impl Fn(&T) -> u64) {
        let mut other = Arc::new(value);
        let mut current = self.0.lock();
        if revision(&other) >= revision(&current) {
            std::mem::swap(&mut *current, &mut other);
        }
        // What is not needed goes after the lock: it may be the last to hold a store.
        drop(current);
        drop(other);
    }
}
