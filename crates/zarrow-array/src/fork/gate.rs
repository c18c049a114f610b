//! The gate that every thread passes when it takes a [`Mutex`](super::Mutex).
//!
//! 1. A thread that takes its first lock counts itself in one of a few lanes, so that threads do not share one cache
//!    line, and then checks whether the gate is closed. If so, it takes the count back and waits until the gate is open.
//! 2. Before a fork the gate is closed, and the forking thread waits until every other lane is empty. A thread that
//!    comes at that moment either shows in its lane or sees the gate closed: both sides store before they load, in one
//!    total order (`SeqCst`).
//! 3. A thread that is inside takes further locks without asking, so that it can finish and leave.
//! 4. The child opens the gate and clears the lanes, which may still count threads that were turned back.

use super::watch;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many forks are about to happen.
static CLOSED: AtomicUsize = AtomicUsize::new(0);

/// Threads inside, each lane in cache lines of its own.
#[repr(align(128))]
struct Lane(AtomicUsize);

static LANES: [Lane; 16] = [const { Lane(AtomicUsize::new(0)) }; 16];

struct Here {
    /// The thread's lane and one more; 0 before its first lock.
    lane: Cell<usize>,
    /// How many locks it holds.
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

/// A stay inside the gate, of the thread that entered.
#[derive(Debug)]
pub struct Inside(PhantomData<*const ()>);

impl Inside {
    /// Enters, and waits where a fork is about to happen (steps 1 and 3).
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

/// Step 2.
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

/// Step 4.
pub fn open_in_child() {
    let (own, inside) = HERE.with(|here| (here.lane.get(), usize::from(here.depth.get() > 0)));
    for (number, lane) in LANES.iter().enumerate() {
        lane.0.store(if number + 1 == own { inside } else { 0 }, Ordering::SeqCst);
    }
    CLOSED.store(0, Ordering::SeqCst);
}
