//! Helper threads, with errors if the system refuses one.
//!
//! All threads of zarrow's crates are started here, or in one of the few other places listed in
//! `docs/architecture.md`. A refusal is an error of the call that needed the thread, and a later call tries again.

pub use crate::occupied_thread::{OccupiedThread, ThreadPool, work_for};
use std::io;
use std::thread::{Builder, JoinHandle};

/// Address space that must be free: a thread's stack, and more than that again for the thread's first allocations.
/// If a stack takes the last of it, the next small allocation aborts the process.
const NBYTES: usize = 8 << 20;

/// Starts a thread.
///
/// # Errors
/// The system is out of threads, or of memory for one.
pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let started = if has_room() {
        Builder::new().name(name.to_owned()).spawn(work)
    } else {
        Err(io::ErrorKind::OutOfMemory.into())
    };
    started.map_err(|error| io::Error::other(format!("cannot start a thread: {error}")))
}

/// Returns whether the address space has room for a thread. This bypasses the allocator, which would tune itself to
/// the size.
#[cfg(all(unix, not(miri)))]
fn has_room() -> bool {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new anonymous mapping touches no memory in use.
    let pages = unsafe { libc::mmap(std::ptr::null_mut(), NBYTES, protection, flags, -1, 0) };
    if pages == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: the mapping was made above, with this size, and nothing points to it.
    unsafe { libc::munmap(pages, NBYTES) };
    true
}

#[cfg(not(all(unix, not(miri))))]
fn has_room() -> bool {
    true
}
