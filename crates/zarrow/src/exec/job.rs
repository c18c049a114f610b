//! One list of tasks: who takes which, and how it stops.
//!
//! 1. Each thread takes the next number until there is none, a task has failed, or the caller was interrupted.
//! 2. Long tasks pass their [`Checkpoint`] now and then, so that they stop too. On the calling thread it also asks
//!    whether the caller was interrupted.
//! 3. Where the store is slow a thread takes turns at fetching and decoding: see [`turns`](super::turns).
//! 4. A panic, in a task or in the question, is caught and becomes an error.

use crate::error::{Error, ErrorKind, Result};
use crate::exec::idle;
use crate::exec::scratch::Worker;
use crate::exec::turns::{Turn, Turns};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zarrow_array::fork::{Forked, Mutex, generation};

/// How often a caller is asked whether it was interrupted.
pub const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// A task: its number, what the thread works with, and where to stop.
pub type Task<'a> = dyn Fn(u64, &mut Worker, &Checkpoint<'_>) -> Result<()> + Sync + 'a;

/// The tasks of one call.
pub struct Job {
    count: u64,
    next: AtomicU64,
    stop: AtomicBool,
    error: Mutex<Option<Error>>,
    turns: Option<Turns>,
    /// The process that began it: see step 4 of [`pool`](super::pool).
    generation: u64,
}

/// Where a task finds out that it should stop.
pub struct Checkpoint<'a> {
    job: &'a Job,
    interrupted: Option<&'a dyn Fn() -> bool>,
    /// When the caller was asked last, or the clock was first looked at: short work never does.
    asked: Cell<Option<Instant>>,
    /// The turn that the thread has (step 3).
    turn: Cell<Option<Turn>>,
}

impl Checkpoint<'_> {
    /// Goes on, or stops the task.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`], also where another task has failed, whose error comes first.
    pub fn pass(&self) -> Result<()> {
        if let Some(interrupted) = self.interrupted {
            match self.asked.get() {
                None => self.asked.set(Some(Instant::now())),
                Some(asked) if asked.elapsed() >= INTERRUPT_INTERVAL => {
                    self.job.ask(interrupted);
                    self.asked.set(Some(Instant::now()));
                }
                Some(_) => {}
            }
        }
        if self.job.stop.load(Ordering::Relaxed) { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    /// Waits for a turn, where threads take turns.
    ///
    /// # Errors
    /// As [`pass`](Checkpoint::pass).
    pub fn take(&self, turn: Turn) -> Result<()> {
        let Some(turns) = &self.job.turns else { return Ok(()) };
        if self.turn.get() == Some(turn) {
            return Ok(());
        }
        self.give_back();
        while !turns.take(turn) {
            self.pass()?;
        }
        self.turn.set(Some(turn));
        // Much may have happened meanwhile.
        self.pass()
    }

    /// Whether the store is slow, so that a request costs more than many bytes.
    pub fn store_is_slow(&self) -> bool {
        self.job.turns.is_some()
    }

    /// Ends the turn that the thread has.
    fn give_back(&self) {
        if let (Some(turns), Some(turn)) = (&self.job.turns, self.turn.take())
            && !self.job.is_of_parent()
        {
            turns.give(turn);
        }
    }
}

impl Job {
    /// Tasks numbered below `count`.
    pub fn new(count: u64, turns: Option<Turns>) -> Job {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        Job { count, next, stop, error: Mutex::new(None), turns, generation: generation() }
    }

    /// Whether this process was forked from the one that began the job: then other threads' tasks are lost.
    pub fn is_of_parent(&self) -> bool {
        self.generation != generation()
    }

    /// The next task's number.
    fn claim(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        // Threads are few, so that the number cannot wrap once it is beyond the last.
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < self.count)
    }

    fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        let mut first = self.error.lock();
        let later = if first.is_some() { Some(error) } else { first.replace(error) };
        drop(first);
        // After the lock: what an error holds may do anything when it goes.
        drop(later);
    }

    /// Asks the caller whether to go on.
    pub fn ask(&self, interrupted: &dyn Fn() -> bool) {
        let answer = catch_unwind(AssertUnwindSafe(interrupted));
        if self.is_of_parent() {
            // The question forked, and this is the child, where the other threads' tasks are lost.
            self.stop.store(true, Ordering::Relaxed);
            return;
        }
        match answer {
            Ok(false) => {}
            Ok(true) => self.fail(ErrorKind::Interrupted.into()),
            Err(panic) => self.fail(caught(panic)),
        }
    }

    /// Works until there is no more task. The calling thread passes how it asks for interruption.
    pub fn work(&self, task: &Task<'_>, interrupted: Option<&dyn Fn() -> bool>) {
        let mut worker = idle::take();
        self.work_with(task, interrupted, &mut worker);
        idle::give(worker);
    }

    fn work_with(&self, task: &Task<'_>, interrupted: Option<&dyn Fn() -> bool>, worker: &mut Worker) {
        let checkpoint = Checkpoint { job: self, interrupted, asked: Cell::new(None), turn: Cell::new(None) };
        while let Some(number) = self.claim() {
            match catch_unwind(AssertUnwindSafe(|| task(number, worker, &checkpoint))) {
                Ok(Ok(())) => {}
                Ok(Err(_)) if self.is_of_parent() => return,
                Ok(Err(error)) => self.fail(error),
                Err(panic) => {
                    // The worker's state is that of a task cut short: start afresh.
                    *worker = Worker::default();
                    self.fail(caught(panic));
                }
            }
            checkpoint.give_back();
            if number + 1 < self.count {
                // What it finds is in the job.
                let _ = checkpoint.pass();
            }
        }
    }

    /// The first error.
    ///
    /// # Errors
    /// What a task returned; [`ErrorKind::Interrupted`]; [`ErrorKind::Internal`] for a panic.
    pub fn result(&self) -> Result<()> {
        if self.is_of_parent() {
            return Err(Forked.into());
        }
        // Who failed has set the sign before it left.
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.error.lock().take().map_or(Ok(()), Err)
    }
}

/// The error of a panic. Its payload is leaked: dropping it might panic again.
fn caught(panic: Box<dyn std::any::Any + Send>) -> Error {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a task panicked".into(),
    };
    std::mem::forget(panic);
    ErrorKind::Internal(text).into()
}
