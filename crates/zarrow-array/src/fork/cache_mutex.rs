//! The lock of a cache: it is only ever tried, and a thread that does not get it goes on without the cache.
//!
//! 1. The word of the lock says which process holds it, as [`generation`] counts them.
//! 2. Where a child finds that its parent holds the lock, the holder does not exist in the child, and the value may be half
//!    changed. The child takes the lock and starts with an empty value. The old value is leaked on purpose.

use super::generation;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// The word of a lock that nobody holds; else it is the holder's generation and one more.
const FREE: u64 = 0;

/// A cached value under a lock that is only ever tried: a thread that does not get it does the work itself.
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

/// A [`CacheMutex`] that is held, by the thread that took it.
#[derive(Debug)]
pub struct CacheGuard<'a, T> {
    mutex: &'a CacheMutex<T>,
    thread: PhantomData<*const T>,
}

// SAFETY: a reference to the guard gives a reference to the value, and nothing else.
unsafe impl<T: Sync> Sync for CacheGuard<'_, T> {}

impl<T> CacheMutex<T> {
    /// A value with its lock.
    pub const fn new(value: T) -> CacheMutex<T> {
        CacheMutex { holder: AtomicU64::new(FREE), value: UnsafeCell::new(value) }
    }
}

impl<T: Default> CacheMutex<T> {
    /// The lock, `None` where a thread of this process has it.
    pub fn try_lock(&self) -> Option<CacheGuard<'_, T>> {
        let own = generation() + 1;
        let guard = CacheGuard { mutex: self, thread: PhantomData };
        let take = |word| self.holder.compare_exchange(word, own, Ordering::Acquire, Ordering::Relaxed);
        match take(FREE) {
            Ok(_) => Some(guard),
            // Step 2.
            Err(parent) if parent != own && take(parent).is_ok() => {
                // SAFETY: the lock is ours since the line above, and the thread that had it is not in this process. The
                // old value is not looked at.
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
        // SAFETY: a guard is made for the thread that took the lock, and releases it when it is dropped.
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
