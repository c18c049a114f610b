//! The current state of a Python object, for example of an array after a resize.

use std::sync::Arc;
use zarrow_array::fork::Mutex;

/// A value that is read and replaced as a whole; clones share it.
///
/// The lock is only held while a pointer is copied.
#[derive(Debug)]
pub struct Current<T>(Arc<Mutex<Arc<T>>>);

impl<T> Clone for Current<T> {
    fn clone(&self) -> Current<T> {
        Current(Arc::clone(&self.0))
    }
}

impl<T> Current<T> {
    /// Creates the initial value.
    pub fn new(value: T) -> Current<T> {
        Current(Arc::new(Mutex::new(Arc::new(value))))
    }

    /// Returns the current value; the snapshot never changes.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.lock())
    }

    /// Replaces the value, unless the current value has a later `revision`: if two threads change the same object,
    /// either may get here first.
    pub fn set_later(&self, value: T, revision: impl Fn(&T) -> u64) {
        let mut other = Arc::new(value);
        let mut current = self.0.lock();
        if revision(&other) >= revision(&current) {
            std::mem::swap(&mut *current, &mut other);
        }
        // Dropped after the lock: each may be the last reference to a store.
        drop(current);
        drop(other);
    }
}
