//! A lock that is free, and what it protects whole, in every forked child.

use super::gate::Inside;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// A value of which one thread at a time has the use, for as long as it takes to change it: its holder calls nothing that
/// may wait or fork, and lets no foreign destructor run.
///
/// A holder that panics leaves the lock free.
///
/// ```
/// use zarrow_array::fork::Mutex;
/// static NAMES: Mutex<Vec<&str>> = Mutex::new(Vec::new());
/// NAMES.lock().push("rain");
/// assert_eq!(*NAMES.lock(), ["rain"]);
/// ```
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// A [`Mutex`] that is held.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    // Dropped in this order: a thread leaves the gate when the lock is free.
    guard: std::sync::MutexGuard<'a, T>,
    _inside: Inside,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// A value with its lock.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let inside = Inside::enter();
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, _inside: inside, mutex: self }
    }

    /// The value, of which this is the only user.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// The lock.
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
