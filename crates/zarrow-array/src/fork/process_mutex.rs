//! A mutex for the threads of one process, unusable in its forked children.

use super::generation;
use crate::occupied_thread::OccupiedThread;
use std::fmt;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// A value shared by the threads of one process. Its lock may be held during a store request.
///
/// A forked child never waits for the lock: its holder may be a thread that only the parent has.
#[derive(Debug)]
pub struct ProcessMutex<T> {
    generation: u64,
    value: std::sync::Mutex<T>,
}

/// Error for a lock that belongs to a parent of this forked process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forked;

impl fmt::Display for Forked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the process was forked during the read")
    }
}

impl std::error::Error for Forked {}

impl<T> ProcessMutex<T> {
    /// Creates an unlocked mutex of this process.
    pub fn new(value: T) -> ProcessMutex<T> {
        ProcessMutex { generation: generation(), value: std::sync::Mutex::new(value) }
    }

    /// Waits for the lock. A panic in the holder unlocks it.
    ///
    /// # Errors
    /// [`Forked`].
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, Forked> {
        if self.generation != generation() {
            return Err(Forked);
        }
        match self.value.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let _occupied = OccupiedThread::enter();
                Ok(self.value.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

impl<T: Default> Default for ProcessMutex<T> {
    fn default() -> ProcessMutex<T> {
        ProcessMutex::new(T::default())
    }
}
