//! One list of tasks: how threads take tasks, and how the list stops.
//!
//! 1. Each thread takes the next number until no task is left, a task has failed, or the caller was interrupted.
//! 2. Long tasks pass their [`Checkpoint`] now and then, so that they stop too. On the calling thread it also checks
//!    whether the caller was interrupted.
//! 3. A panic, in a task or in the question, is caught and becomes an error.

use crate::codec::Worker;
use crate::error::{Error, ErrorKind, Result};
use crate::pool::idle_memory;
use crate::store::call_mark::{CallMark, call_mark};
use crate::store::codec_calls;
use crate::store::codec_calls::Inherited;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zarrow_array::fork::{Forked, Mutex, generation};

/// Interval between two interrupt checks on the calling thread.
pub const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// A task: it gets its number, the thread's worker, and the checkpoint that may stop it.
pub type Task<'a> = dyn Fn(u64, &mut Worker, &Checkpoint<'_>) -> Result<()> + Sync + 'a;

/// The tasks of one call.
pub struct Job {
    tasks: Tasks,
    stop: AtomicBool,
    error: Mutex<Option<Error>>,
    /// The process that began it: see step 4 of [`pool`](crate::pool).
    generation: u64,
    /// The depth of the codec call that made it.
    depth: usize,
    /// The mark of the call that made it.
    mark: Option<usize>,
}

/// The tasks of a job.
enum Tasks {
    /// Tasks numbered below `count`; `next` is the next one.
    Listed { count: u64, next: AtomicU64 },
    /// The number of arrived tasks still to be taken; more may arrive.
    Coming(AtomicU64),
}

/// The point where a task learns that it must stop.
pub struct Checkpoint<'a> {
    job: &'a Job,
    interrupted: Option<&'a dyn Fn() -> bool>,
    /// Time of the last interrupt check, or of the first look at the clock: short work never checks.
    last_check: Cell<Option<Instant>>,
}

impl Checkpoint<'_> {
    /// Continues, or stops the task.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`], also if another task has failed; that task's error takes precedence.
    pub fn pass(&self) -> Result<()> {
        if let Some(interrupted) = self.interrupted {
            match self.last_check.get() {
                None => self.last_check.set(Some(Instant::now())),
                Some(last_check) if last_check.elapsed() >= INTERRUPT_INTERVAL => {
                    self.job.ask(interrupted);
                    self.last_check.set(Some(Instant::now()));
                }
                Some(_) => {}
            }
        }
        if self.job.stop.load(Ordering::Relaxed) { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

impl Job {
    /// Tasks numbered below `count`.
    pub fn new(count: u64) -> Job {
        Job::from_tasks(Tasks::Listed { count, next: AtomicU64::new(0) })
    }

    /// Creates a job with tasks that [arrive](Job::add) later. Their numbers carry no meaning.
    pub fn coming() -> Job {
        Job::from_tasks(Tasks::Coming(AtomicU64::new(0)))
    }

    fn from_tasks(tasks: Tasks) -> Job {
        let (stop, error) = (AtomicBool::new(false), Mutex::new(None));
        Job { tasks, stop, error, generation: generation(), depth: codec_calls::depth(), mark: call_mark() }
    }

    /// Adds `count` tasks to a job with arriving tasks.
    pub fn add(&self, count: u64) {
        if let Tasks::Coming(ready) = &self.tasks {
            ready.fetch_add(count, Ordering::Release);
        }
    }

    /// Whether a thread has something to do: run a task, or notice that the job has stopped.
    pub fn is_ready(&self) -> bool {
        let has_task = match &self.tasks {
            Tasks::Listed { count, next } => next.load(Ordering::Relaxed) < *count,
            Tasks::Coming(ready) => ready.load(Ordering::Acquire) > 0,
        };
        has_task || self.is_stopped()
    }

    /// Returns the depth of the codec call that made it.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Whether a task has failed, or the caller was interrupted.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether this process was forked from the process that began the job: other threads' tasks are then lost.
    pub fn is_of_parent(&self) -> bool {
        self.generation != generation()
    }

    /// Claims the next task and returns its number.
    fn claim(&self) -> Option<u64> {
        if self.is_stopped() {
            return None;
        }
        match &self.tasks {
            // Threads are few, so that the number cannot wrap once it is beyond the last.
            Tasks::Listed { count, next } => {
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| number < count)
            }
            Tasks::Coming(ready) => {
                let take = |ready: u64| ready.checked_sub(1);
                ready.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).ok()
            }
        }
    }

    /// Whether `number` is the last of the tasks.
    fn is_last(&self, number: u64) -> bool {
        matches!(self.tasks, Tasks::Listed { count, .. } if number + 1 >= count)
    }

    /// Stops the job with an error; the first error wins.
    pub fn fail(&self, error: Error) {
        let mut first = self.error.lock();
        let later = if first.is_some() { Some(error) } else { first.replace(error) };
        // Set after the error is stored: another thread that sees the flag may end the job and ask for its result. Set
        // under the lock: a task that stops because of the flag reports its own error later.
        self.stop.store(true, Ordering::Release);
        drop(first);
        // After the lock is released: dropping an error may run arbitrary code.
        drop(later);
    }

    /// Asks the caller whether to go on.
    pub fn ask(&self, interrupted: &dyn Fn() -> bool) {
        let answer = catch_unwind(AssertUnwindSafe(interrupted));
        if self.is_of_parent() {
            // The interrupt check forked, and this is the child, where the other threads' tasks are lost.
            self.stop.store(true, Ordering::Relaxed);
            return;
        }
        match answer {
            Ok(false) => {}
            Ok(true) => self.fail(ErrorKind::Interrupted.into()),
            Err(panic) => self.fail(caught(panic)),
        }
    }

    /// Lets this thread work for the call that made the job, until the guards are dropped.
    pub fn inherit(&self) -> (Inherited, CallMark) {
        (Inherited::take(self.depth), CallMark::set(self.mark))
    }

    /// Runs tasks until none is left. The calling thread passes its interrupt check.
    pub fn work(&self, task: &Task<'_>, interrupted: Option<&dyn Fn() -> bool>) {
        let _inherited = self.inherit();
        let mut worker = idle_memory::take();
        self.work_with(task, interrupted, &mut worker);
        idle_memory::give(worker);
    }

    fn work_with(&self, task: &Task<'_>, interrupted: Option<&dyn Fn() -> bool>, worker: &mut Worker) {
        let checkpoint = Checkpoint { job: self, interrupted, last_check: Cell::new(None) };
        while let Some(number) = self.claim() {
            match catch_unwind(AssertUnwindSafe(|| task(number, worker, &checkpoint))) {
                Ok(Ok(())) => {}
                Ok(Err(_)) if self.is_of_parent() => return,
                Ok(Err(error)) => self.fail(error),
                Err(panic) => {
                    // The worker's state belongs to an unfinished task: start afresh.
                    *worker = Worker::default();
                    self.fail(caught(panic));
                }
            }
            if !self.is_last(number) {
                // The outcome is stored in the job.
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
        // A failed thread has set the flag before it left.
        if !self.stop.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(self.error.lock().take().unwrap_or_else(|| ErrorKind::Interrupted.into()))
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
