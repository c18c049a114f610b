//! Locks that a fork cannot leave held.
//!
//! `fork` copies memory as it is at that moment, and only the thread that called. A lock that another thread held would
//! stay held in the child for ever, with half-changed data behind it. The crates of zarrow do not use the locks of the
//! standard library, but these:
//!
//! 1. [`Mutex`], for what both processes go on with. A thread that holds one is counted in a `gate`. A handler closes
//!    the gate before a fork and waits until nobody is inside: in the child the mutex is free and its data are whole.
//!    Code that holds it never waits: no store, no Python, no fork.
//! 2. [`Condvar`], whose waiters hold no lock while they wait.
//! 3. [`CacheMutex`], for data that can be lost. It is only ever tried. If a fork left it held, the number of its
//!    holder's process shows that, and its data start again, empty. It costs less than a lock that threads wait for.
//! 4. [`ProcessMutex`], for what belongs to one process, such as a read that several threads share. It may be held for
//!    as long as a store takes. In a child, which has none of these threads, locking it is an error.
//! 5. [`OnceCell`], for what is made once. A thread that comes too early makes its own value, and no thread waits.
//! 6. [`File`], an open file with a lock of the kernel's. The child closes it at once.
//!
//! The handlers are registered with `pthread_atfork`, so that `fork` of any library runs them. `vfork` and `posix_spawn`
//! do not; their children run none of our code.
#![allow(clippy::disallowed_types, reason = "what keeps the locks of the standard library from forks")]

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

/// How many forks lie between the process that first asked and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The number of this process among those that were forked one from the other: what has another belongs to a parent.
#[must_use]
pub fn generation() -> u64 {
    watch();
    GENERATION.load(Ordering::Relaxed)
}

/// Runs when the program or the library is loaded, before any thread can use a lock while another forks: handlers that are
/// given in the middle of a fork are not run by it.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the loader calls what stands in this section, with arguments that the function need not take.
#[unsafe(link_section = ".init_array")]
static WHEN_LOADED: extern "C" fn() = {
    extern "C" fn when_loaded() {
        watch();
    }
    when_loaded
};

/// Sees to it that the handlers run at each fork from now on.
fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Acquire) {
        // Several threads may register them at once: running the handlers twice does no harm, and no thread waits for
        // another, which might not exist in a child.
        // SAFETY: the handlers use atomics, `sched_yield` and `close` alone, which is allowed around a fork.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        WATCHED.store(true, Ordering::Release);
    }
}

unsafe extern "C" fn before() {
    gate::close();
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
