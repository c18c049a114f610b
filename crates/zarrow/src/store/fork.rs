//! Files that a forked child closes at once: those whose locks its parent holds.
//!
//! The kernel keeps a lock as long as any process has the file open that was locked. A child that lives on when its parent
//! was killed would keep its parent's locks for ever, and nobody would know whom to ask. So a handler that runs in the
//! child closes these files there: it reads an array of atomics, which a child may do at any point of its life.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// No file.
const NONE: RawFd = -1;

/// Files that are open and have locks. A process that holds more locks at once keeps the others as the kernel does.
static FILES: [AtomicI32; 256] = [const { AtomicI32::new(NONE) }; 256];

/// How many forks lie between the first process that asked and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The number of this process among those that were forked one from the other: what has another belongs to a parent.
pub fn generation() -> u64 {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler uses atomics and `close` alone, which a child may do at any point of its life.
        unsafe { libc::pthread_atfork(None, None, Some(close_in_child)) };
    }
    GENERATION.load(Ordering::Relaxed)
}

/// A file that a forked child closes.
pub struct OfThisProcess {
    file: Option<OwnedFd>,
    place: Option<&'static AtomicI32>,
    generation: u64,
}

impl OfThisProcess {
    /// Takes the file.
    pub fn new(file: OwnedFd) -> OfThisProcess {
        let (number, generation) = (file.as_raw_fd(), generation());
        let taken = |place: &&AtomicI32| {
            place.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let place = FILES.iter().find(taken);
        OfThisProcess { file: Some(file), place, generation }
    }

    /// The file, unless this process was forked from the one that opened it.
    pub fn file(&self) -> Option<&OwnedFd> {
        self.file.as_ref().filter(|_| self.generation == generation())
    }
}

impl Drop for OfThisProcess {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if self.generation != generation() {
            // Closed already, and the number may be another file's by now.
            std::mem::forget(file);
            return;
        }
        if let Some(place) = self.place {
            place.store(NONE, Ordering::Relaxed);
        }
    }
}

/// Runs in a forked child.
unsafe extern "C" fn close_in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for place in &FILES {
        let number = place.swap(NONE, Ordering::Relaxed);
        if number != NONE {
            // SAFETY: the number was taken out before its file is closed anywhere else, so that it is open here; whoever
            // had it does not close it again in this process.
            unsafe { libc::close(number) };
        }
    }
}
