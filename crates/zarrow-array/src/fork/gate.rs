//! The gate that every thread passes when it locks a [`Mutex`](super::Mutex).
//!
//! 1. A thread that takes its first lock increments a counter and then checks whether the gate is closed. If so, it
//!    decrements the counter and waits until the gate is open. There are a few counters, each on its own cache line,
//!    so that threads do not slow each other down.
//! 2. Before a fork the gate is closed, and the forking thread waits until all other counters are zero. A thread
//!    that enters at that moment is either visible in its counter or sees the gate closed: both sides store before
//!    they load, in one total order (`SeqCst`).
//! 3. A thread inside the gate takes further locks without checking, so that it can finish and leave.
//! 4. The child opens the gate and clears the counters, which may still include threads that were turned back.

use super::watch;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Number of forks about to happen.
static CLOSED: AtomicUsize = AtomicUsize::new(0);

/// Counter of threads inside the gate, on separate cache lines.
#[repr(align(128))]
struct Counter(AtomicUsize);

static LANES: [Counter; 16] = [const { Counter(AtomicUsize::new(0)) }; 16];

struct Here {
    /// Index of the thread's counter plus one; 0 before its first lock.
    lane: Cell<usize>,
    /// Number of locks that it holds.
    depth: Cell<usize>,
}

thread_local! {
    static HERE: Here = const { Here { lane: Cell::new(0), depth: Cell::new(0) } };
}

impl Here {
    fn lane(&self) -> &'static AtomicUsize {
        if self.lane.get() == 0 {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            watch();
            self.lane.set(NEXT.fetch_add(1, Ordering::Relaxed) % LANES.len() + 1);
        }
        &LANES[self.lane.get() - 1].0
    }
}

/// RAII guard: the thread is inside the gate while this lives.
#[derive(Debug)]
pub struct Inside(PhantomData<*const ()>);

impl Inside {
    /// Enters the gate, and waits if a fork is about to happen (steps 1 and 3).
    pub fn enter() -> Inside {
        HERE.with(|here| {
            if here.depth.get() == 0 {
                let lane = here.lane();
                lane.fetch_add(1, Ordering::SeqCst);
                while CLOSED.load(Ordering::SeqCst) != 0 {
                    lane.fetch_sub(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_micros(20));
                    lane.fetch_add(1, Ordering::SeqCst);
                }
            }
            here.depth.set(here.depth.get() + 1);
        });
        Inside(PhantomData)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        HERE.with(|here| {
            here.depth.set(here.depth.get() - 1);
            if here.depth.get() == 0 {
                here.lane().fetch_sub(1, Ordering::Release);
            }
        });
    }
}

/// Step 2: closes the gate and waits until all other threads have left.
pub fn close() {
    CLOSED.fetch_add(1, Ordering::SeqCst);
    let (own, inside) = HERE.with(|here| (here.lane.get(), usize::from(here.depth.get() > 0)));
    for (number, lane) in LANES.iter().enumerate() {
        let expected = if number + 1 == own { inside } else { 0 };
        while lane.0.load(Ordering::SeqCst) > expected {
            std::thread::yield_now();
        }
    }
}

/// Opens the gate in the process that forked.
pub fn open() {
    CLOSED.fetch_sub(1, Ordering::SeqCst);
}

/// Step 4: opens the gate in the child.
pub fn open_in_child() {
    let (own, inside) = HERE.with(|here| (here.lane.get(), usize::from(here.depth.get() > 0)));
    for (number, lane) in LANES.iter().enumerate() {
        lane.0.store(if number + 1 == own { inside } else { 0 }, Ordering::SeqCst);
    }
    CLOSED.store(0, Ordering::SeqCst);
}
