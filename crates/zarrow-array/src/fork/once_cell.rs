//! A value that is made once, with no lock at all.

use std::fmt;
use std::marker::PhantomData;
use std::sync::RwLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is made once and stays. Threads that race to make it each make one, and the first one stays: waiting for
/// another thread could last for ever in a forked child, which has none of its parent's.
///
/// ```
/// use zarrow_array::fork::OnceCell;
/// static NAME: OnceCell<String> = OnceCell::new();
/// assert_eq!(NAME.get(), None);
/// assert_eq!(NAME.get_or_make(|| "rain".to_owned()), "rain");
/// assert_eq!(NAME.set("snow".to_owned()), "rain");
/// ```
pub struct OnceCell<T> {
    value: AtomicPtr<T>,
    // It can be shared between threads, and set by any, where a lock of such a value could be.
    owned: PhantomData<RwLock<T>>,
}

impl<T> OnceCell<T> {
    /// An empty cell.
    #[must_use]
    pub const fn new() -> OnceCell<T> {
        OnceCell { value: AtomicPtr::new(std::ptr::null_mut()), owned: PhantomData }
    }

    /// The value, `None` where there is none yet.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or a value that `set` put there whole before the pointer, which stays as long as the cell.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// Puts a value into an empty cell; returns the one that stays.
    pub fn set(&self, value: T) -> &T {
        let new = Box::into_raw(Box::new(value));
        let stored =
            self.value.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        match stored {
            // SAFETY: it is in the cell now, which keeps it as long as it is there itself.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                // SAFETY: it was made above, and nobody else has it.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: a pointer that is not null, as in `get`.
                unsafe { &*first }
            }
        }
    }

    /// The value, which `make` gives where there is none yet.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.set(make()),
        }
    }
}

impl<T> Drop for OnceCell<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: `set` made it a box, and the cell, which nobody can use any more, owns it.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> OnceCell<T> {
        let cell = OnceCell::new();
        cell.set(value);
        cell
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> OnceCell<T> {
        OnceCell::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("OnceCell").field(&self.get()).finish()
    }
}
