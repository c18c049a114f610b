//! Threads of a pool that wait for another thread: for a lock, or for their turn.
//!
//! 1. The other thread may await work of the pool: a user's codec may await a read. If all threads of the pool wait, that
//!    work never begins. So the pool learns of each thread that waits, and can start another one.
//! 2. A thread of a pool names its pool once. The wait of any other thread takes no thread from a pool, so that nothing
//!    happens there.

use std::cell::Cell;
use std::fmt;

/// A pool that counts its occupied threads.
pub trait ThreadPool: Sync {
    /// Counts one more thread that waits, and starts another one if there is work for it.
    fn occupy(&self);

    /// Counts one less.
    fn free(&self);
}

thread_local! {
    static POOL: Cell<Option<&'static dyn ThreadPool>> = const { Cell::new(None) };
}

/// Makes this thread one of `pool` (step 2).
pub fn work_for(pool: &'static dyn ThreadPool) {
    POOL.set(Some(pool));
}

/// A wait of this thread for another one, until it is dropped.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use zarrow_array::thread::{OccupiedThread, ThreadPool, work_for};
///
/// struct Pool(AtomicUsize);
///
/// impl ThreadPool for Pool {
///     fn occupy(&self) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
///     fn free(&self) {
///         self.0.fetch_sub(1, Ordering::Relaxed);
///     }
/// }
///
/// static POOL: Pool = Pool(AtomicUsize::new(0));
/// work_for(&POOL);
/// let wait = OccupiedThread::enter();
/// assert_eq!(POOL.0.load(Ordering::Relaxed), 1);
/// drop(wait);
/// assert_eq!(POOL.0.load(Ordering::Relaxed), 0);
/// ```
pub struct OccupiedThread(Option<&'static dyn ThreadPool>);

impl OccupiedThread {
    /// Begins a wait. The caller holds no lock that the pool takes.
    #[must_use]
    pub fn enter() -> OccupiedThread {
        let pool = POOL.get();
        if let Some(pool) = pool {
            pool.occupy();
        }
        OccupiedThread(pool)
    }
}

impl fmt::Debug for OccupiedThread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("OccupiedThread").field(&self.0.is_some()).finish()
    }
}

impl Drop for OccupiedThread {
    fn drop(&mut self) {
        if let Some(pool) = self.0 {
            pool.free();
        }
    }
}
