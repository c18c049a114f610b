//! Locked files, which a forked child closes at once.
//!
//! The kernel keeps a file lock until every process has closed the file. If the parent is killed, a surviving child
//! would keep the parent's locks. So the fork handler closes these files in the child. It reads their numbers from an
//! array of atomics, which is allowed in a fork handler.

use super::generation;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Marks an unused entry.
const NONE: RawFd = -1;

/// Numbers of the open files with locks. Files beyond the array's length stay open in children, as by default.
static FILES: [AtomicI32; 256] = [const { AtomicI32::new(NONE) }; 256];

/// An open file that forked children close.
#[derive(Debug)]
pub struct File {
    file: Option<OwnedFd>,
    place: Option<&'static AtomicI32>,
    generation: u64,
}

impl File {
    /// Takes ownership of the file.
    #[must_use]
    pub fn new(file: OwnedFd) -> File {
        let (number, generation) = (file.as_raw_fd(), generation());
        let taken = |place: &&AtomicI32| {
            place.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let place = FILES.iter().find(taken);
        File { file: Some(file), place, generation }
    }

    /// Returns the file, unless this process was forked from the one that opened it.
    #[must_use]
    pub fn get(&self) -> Option<&OwnedFd> {
        self.file.as_ref().filter(|_| self.generation == generation())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if self.generation != generation() {
            // Closed already, and the number may belong to another file by now.
            std::mem::forget(file);
            return;
        }
        if let Some(place) = self.place {
            place.store(NONE, Ordering::Relaxed);
        }
    }
}

/// Closes all files; runs in a forked child.
pub fn close_all() {
    for place in &FILES {
        let number = place.swap(NONE, Ordering::Relaxed);
        if number != NONE {
            // SAFETY: the number was taken out before its file is closed anywhere else, so the file is open here;
            // its former holder does not close it again in this process.
            unsafe { libc::close(number) };
        }
    }
}
