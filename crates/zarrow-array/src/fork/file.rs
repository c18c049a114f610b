//! Locked files, which a forked child closes at once.
//!
//! The kernel keeps a file lock until every process has closed the file. If the parent is killed, a surviving child
//! would keep the parent's locks:
//!
//! 1. The number of each file is entered in an array of atomics. The fork handler of the child closes these files; it may
//!    read atomics.
//! 2. A child that is forked after a file was opened and before it was entered keeps that file open. So the parent
//!    counts forks: if the count changed in between, it opens the file once more, and locks only the new one.

use super::{fork_count, generation};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering, fence};

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
    /// Opens a file that has no lock yet. If the process forks during `open`, calls it again (step 2).
    ///
    /// # Errors
    /// Errors of `open`.
    pub fn open<E>(mut open: impl FnMut() -> Result<OwnedFd, E>) -> Result<File, E> {
        loop {
            let before = fork_count();
            let file = File::entered(open()?);
            // The entry is stored before the count is loaded. A fork increments the count before it copies the entry.
            fence(Ordering::SeqCst);
            if fork_count() == before {
                return Ok(file);
            }
        }
    }

    /// Step 1.
    fn entered(file: OwnedFd) -> File {
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
