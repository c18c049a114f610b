//! Workers that no thread works with, for the next job of any thread.
//!
//! 1. A thread takes a worker for a job, at best the one that it had last, whose memory is warm in its cache; and gives it
//!    back afterwards. So there are never more workers than threads that worked at once, and an idle thread holds none.
//! 2. Each place is one atomic pointer: there is no lock to wait for, and none that a fork could leave taken.
//! 3. Together they keep as many bytes as dropped results may ([`zarrow_array::recycled_limit`]); a worker that would be
//!    more is given back without its memory. Memory that recent jobs did not need is let go (`codec/context.rs`).
//! 4. [`release`] frees all.

use crate::codec::Worker;
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// More than there are threads at work at once on most machines; a worker without a place is dropped.
const PLACES: usize = 64;

static IDLE: [AtomicPtr<Worker>; PLACES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PLACES];

/// Bytes that the idle workers keep.
static KEPT_NBYTES: AtomicUsize = AtomicUsize::new(0);

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The place where a thread looks first. It has no destructor, so that a thread that is ending has it too.
    static HOME: Cell<Option<usize>> = const { Cell::new(None) };
}

fn home() -> usize {
    HOME.get().unwrap_or_else(|| {
        let home = THREADS.fetch_add(1, Ordering::Relaxed) % PLACES;
        HOME.set(Some(home));
        home
    })
}

/// Takes the worker out of a place.
fn take_from(place: &AtomicPtr<Worker>) -> Option<Box<Worker>> {
    if place.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let worker = place.swap(std::ptr::null_mut(), Ordering::Acquire);
    if worker.is_null() {
        return None;
    }
    // SAFETY: a pointer in a place is that of a box which `give` let go, and the swap above gave it to nobody else.
    let worker = unsafe { Box::from_raw(worker) };
    let nbytes = worker.nbytes();
    if nbytes > 0 {
        KEPT_NBYTES.fetch_sub(nbytes, Ordering::Relaxed);
    }
    Some(worker)
}

/// A worker for a job of this thread (step 1).
pub fn take() -> Box<Worker> {
    let home = home();
    (0..PLACES).find_map(|number| take_from(&IDLE[(home + number) % PLACES])).unwrap_or_default()
}

/// Keeps a worker whose job is done (steps 1 and 3).
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

/// Frees what idle workers keep (step 4); returns the bytes.
pub fn release() -> usize {
    IDLE.iter().filter_map(take_from).map(|worker| worker.nbytes()).sum()
}

/// Bytes that idle workers keep.
pub fn kept() -> usize {
    KEPT_NBYTES.load(Ordering::Relaxed)
}
