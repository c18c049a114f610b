//! A value that is created once, without a lock.

use std::fmt;
use std::marker::PhantomData;
use std::sync::RwLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is created once and kept. Racing threads each create a value, and the first one is kept: waiting
/// for another thread could last forever in a forked child, which has none of its parent's threads.
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
    // Makes the cell `Send` and `Sync` under the same conditions as a lock of the value.
    owned: PhantomData<RwLock<T>>,
}

impl<T> OnceCell<T> {
    /// Creates an empty cell.
    #[must_use]
    pub const fn new() -> OnceCell<T> {
        OnceCell { value: AtomicPtr::new(std::ptr::null_mut()), owned: PhantomData }
    }

    /// Returns the value; `None` if the cell is empty.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the pointer is null, or points to a value that `set` had completed before it stored the pointer. The
        // value lives as long as the cell.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// Stores a value if the cell is empty; returns the value that is kept.
    pub fn set(&self, value: T) -> &T {
        let new = Box::into_raw(Box::new(value));
        let stored =
            self.value.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        match stored {
            // SAFETY: the pointer is in the cell now, and the cell keeps it for its own lifetime.
            Ok(_) => unsafe { &*new },
            Err(first) => {
                // SAFETY: the box was created above, and no other thread has its pointer.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: a pointer that is not null, as in `get`.
                unsafe { &*first }
            }
        }
    }

    /// Returns the value, calling `make` if the cell is empty.
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
            // SAFETY: `set` made it a box, and the cell owns it; the cell has no other users any more.
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
