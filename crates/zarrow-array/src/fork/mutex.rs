//! A mutex that is free in every forked child, with consistent data.

use super::gate::Inside;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// A mutex for short critical sections: its holder must not wait, fork, or run another library's destructors.
///
/// A panic in the holder unlocks it.
///
/// ```
/// use zarrow_array::fork::Mutex;
/// static NAMES: Mutex<Vec<&str>> = Mutex::new(Vec::new());
/// NAMES.lock().push("rain");
/// assert_eq!(*NAMES.lock(), ["rain"]);
/// ```
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// RAII guard of a [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    // Drop order matters: a thread leaves the gate after unlocking.
    guard: std::sync::MutexGuard<'a, T>,
    _inside: Inside,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let inside = Inside::enter();
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, _inside: inside, mutex: self }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// Returns the mutex of this guard.
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
