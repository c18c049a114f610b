//! Idle workers, ready for the next job of any thread.
//!
//! 1. A thread takes a worker for a job, preferably its latest one, with memory that is warm in its cache, and returns
//!    it afterwards. The number of workers therefore never exceeds the number of threads that worked at once, and idle
//!    threads hold none.
//! 2. Each slot is one atomic pointer: there is no lock to wait for, and no lock that a fork could leave taken.
//! 3. Together, idle workers keep at most as many bytes as dropped results may ([`zarrow_array::recycled_limit`]); a
//!    worker beyond that limit is returned without its memory. Memory that recent jobs did not need is released
//!    (`codec/context.rs`).
//! 4. [`release`] frees all.

use crate::codec::Worker;
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// More than the threads that work at once on most machines; a worker without a slot is dropped.
const PLACES: usize = 64;

static IDLE: [AtomicPtr<Worker>; PLACES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES];

/// Bytes kept by the idle workers.
static KEPT_NBYTES: AtomicUsize = AtomicUsize::new(0);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The slot that a thread checks first. It has no destructor, so that it is accessible in an exiting thread too.
    static HOME: Cell<Option<usize>> = const { Cell::new(None) };
}

fn home() -> usize {
    HOME.get().unwrap_or_else(|| {
        let home = THREADS.fetch_add(1, Ordering::Relaxed) % PLACES;
        HOME.set(Some(home));
        home
    })
}

/// Takes the worker out of a slot.
fn take_from(place: &AtomicPtr<Worker>) -> Option<Box<Worker>> {
    if place.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let worker = place.swap(std::ptr::null_mut(), Ordering::Acquire);
    if worker.is_null() {
        return None;
    }
    // SAFETY: a pointer in a slot comes from a box released by `give`, and the swap above gave it to this thread only.
    let worker = unsafe { Box::from_raw(worker) };
    let nbytes = worker.nbytes();
    if nbytes > 0 {
        KEPT_NBYTES.fetch_sub(nbytes, Ordering::Relaxed);
    }
    Some(worker)
}

/// Returns a worker for a job of this thread (step 1).
pub fn take() -> Box<Worker> {
    let home = home();
    (0..PLACES).find_map(|number| take_from(&IDLE[(home + number) % PLACES])).unwrap_or_default()
}

/// Returns a worker after its job (steps 1 and 3).
pub fn give(mut worker: Box<Worker>) {
    worker.trim();
    let mut nbytes = worker.nbytes();
    if nbytes > 0
        && KEPT_NBYTES.fetch_add(nbytes, Ordering::Relaxed).saturating_add(nbytes)
            > zarrow_array::recycled_limit()
    {
        KEPT_NBYTES.fetch_sub(nbytes, Ordering::Relaxed);
        worker.free_memory();
        nbytes = worker.nbytes();
        KEPT_NBYTES.fetch_add(nbytes, Ordering::Relaxed);
    }
    let (home, worker) = (home(), Box::into_raw(worker));
    let kept = (0..PLACES).any(|number| {
        let place = &IDLE[(home + number) % PLACES];
        let (order, failed) = (Ordering::Release, Ordering::Relaxed);
        place.compare_exchange(std::ptr::null_mut(), worker, order, failed).is_ok()
    });
    if !kept {
        KEPT_NBYTES.fetch_sub(nbytes, Ordering::Relaxed);
        // SAFETY: it is the box that was let go above, and no place has it.
        drop(unsafe { Box::from_raw(worker) });
    }
}

/// Frees the memory of idle workers (step 4); returns the number of bytes.
pub fn release() -> usize {
    IDLE.iter().filter_map(take_from).map(|worker| worker.nbytes()).sum()
}

/// Bytes that idle workers keep.
pub fn kept() -> usize {
    KEPT_NBYTES.load(Ordering::Relaxed)
}
