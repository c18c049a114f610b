//! Locks that a fork cannot leave held.
//!
//! `fork` copies all memory, but only the calling thread. If another thread holds a lock, the child's copy of that
//! lock is never released, and the data it protects may be half changed. So zarrow's crates use these types instead
//! of the standard library's locks:
//!
//! 1. [`Mutex`], for data that parent and child both keep using. A `gate` counts the threads that hold a mutex. A
//!    handler closes the gate before a fork and waits until no thread is inside. So in the child every mutex is free
//!    and its data are consistent. Code that holds a mutex must not wait: it calls no store, no Python and no fork.
//! 2. [`Condvar`]: its waiters hold no lock while they wait.
//! 3. [`CacheMutex`], for data that can be lost. It has only `try_lock`, which makes it cheaper than a mutex. It
//!    stores the generation of its holder's process. If that process is a parent, the data are reset to empty.
//! 4. [`ProcessMutex`], for data of a single process, such as a read shared by several threads. It may be held
//!    during a store request. Locking it in a child is an error, because the child lacks the other threads.
//! 5. [`OnceCell`], for values that are created once. Racing threads each create a value, and no thread waits.
//! 6. [`File`], an open file with a kernel lock. The child closes it at once.
//!
//! The handlers are registered with `pthread_atfork`, so that a `fork` by any library runs them. `vfork` and
//! `posix_spawn` do not run them; their children run none of our code.
#![allow(clippy::disallowed_types, reason = "the one module that wraps the standard locks")]

mod cache_mutex;
mod condvar;
mod file;
mod gate;
mod mutex;
mod once_cell;
mod process_mutex;

pub use cache_mutex::{CacheGuard, CacheMutex};
pub use condvar::Condvar;
pub use file::File;
pub use mutex::{Mutex, MutexGuard};
pub use once_cell::OnceCell;
pub use process_mutex::{Forked, ProcessMutex};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of forks between the process that first registered the handlers and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Number of forks that this process has begun.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of forks begun, at a moment when none is in progress: waits for the end of one.
fn fork_count() -> u64 {
    let _inside = gate::Inside::enter();
    FORKS.load(Ordering::SeqCst)
}

/// Returns the fork generation of this process: a value from another generation belongs to a parent.
#[must_use]
pub fn generation() -> u64 {
    watch();
    GENERATION.load(Ordering::Relaxed)
}

/// Registers the handlers when the program or the library is loaded, before any thread can fork while another uses a
/// lock: a fork does not run handlers that are registered during it.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the loader calls the functions in this section, with arguments that the function may ignore.
#[unsafe(link_section = ".init_array")]
static WHEN_LOADED: extern "C" fn() = {
    extern "C" fn when_loaded() {
        watch();
    }
    when_loaded
};

/// Registers the fork handlers.
fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Acquire) {
        // Several threads may register them at once: running the handlers twice is harmless, and waiting for
        // another thread could hang in a child, where that thread does not exist.
        // SAFETY: the handlers use only atomics, `sched_yield` and `close`, which are allowed around a fork.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        WATCHED.store(true, Ordering::Release);
    }
}

unsafe extern "C" fn before() {
    gate::close();
    FORKS.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn in_parent() {
    gate::open();
}

unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    gate::open_in_child();
    file::close_all();
}

#[cfg(test)]
mod tests;
