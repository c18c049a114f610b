//! A mutex for caches. It has only `try_lock`: a thread that fails to lock works without the cache.
//!
//! 1. The lock word identifies the process of its holder by [`generation`].
//! 2. If a child finds the lock held by its parent, the holder does not exist in the child, and the value may be
//!    half changed. The child takes the lock and starts with an empty value. The old value is leaked on purpose.

use super::generation;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lock word of an unlocked mutex; otherwise the holder's generation plus one.
const FREE: u64 = 0;

/// A cached value with a lock that has only `try_lock`: a thread that fails to lock does the work itself.
///
/// ```
/// use zarrow_array::fork::CacheMutex;
/// static KEPT: CacheMutex<Vec<u8>> = CacheMutex::new(Vec::new());
/// if let Some(mut kept) = KEPT.try_lock() {
///     kept.push(1);
///     assert!(KEPT.try_lock().is_none());
/// }
/// assert_eq!(KEPT.try_lock().as_deref(), Some(&vec![1]));
/// ```
#[derive(Default)]
pub struct CacheMutex<T> {
    holder: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives the value to one thread at a time.
unsafe impl<T: Send> Sync for CacheMutex<T> {}

/// RAII guard of a [`CacheMutex`], for the thread that locked it.
#[derive(Debug)]
pub struct CacheGuard<'a, T> {
    mutex: &'a CacheMutex<T>,
    thread: PhantomData<*const T>,
}

// SAFETY: a reference to the guard only gives a reference to the value.
unsafe impl<T: Sync> Sync for CacheGuard<'_, T> {}

impl<T> CacheMutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> CacheMutex<T> {
        CacheMutex { holder: AtomicU64::new(FREE), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> CacheMutex<T> {
    /// Locks the value; `None` if a thread of this process holds the lock.
    pub fn try_lock(&self) -> Option<CacheGuard<'_, T>> {
        let own = generation() + 1;
        let guard = CacheGuard { mutex: self, thread: PhantomData };
        let take = |word| self.holder.compare_exchange(word, own, Ordering::Acquire, Ordering::Relaxed);
        match take(FREE) {
            Ok(_) => Some(guard),
            // Step 2.
            Err(parent) if parent != own && take(parent).is_ok() => {
                // SAFETY: this thread took the lock in the line above, and the previous holder is not in this
                // process. The old value is not read.
                unsafe { self.value.get().write(T::default()) };
                Some(guard)
            }
            Err(_) => {
                std::mem::forget(guard);
                None
            }
        }
    }
}

impl<T> Deref for CacheGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a guard only exists for the thread that took the lock, and unlocks on drop.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for CacheGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the guard is borrowed mutably.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for CacheGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.holder.store(FREE, Ordering::Release);
    }
}

impl<T> fmt::Debug for CacheMutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CacheMutex").finish_non_exhaustive()
    }
}
