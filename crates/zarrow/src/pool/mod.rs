//! The thread pool: one flat list of tasks at a time per caller; the caller works on it too.
//!
//! 1. No thread is started before a read has more than one task.
//! 2. [`run`] puts a [`Job`] into the queue, wakes as many threads as can help, and works on it itself.
//! 3. The caller then takes the job out of the queue, so that no other thread joins, and waits for the threads that did
//!    join, even when it unwinds. Only then does `run` return: the tasks may therefore borrow from the caller.
//! 4. A forked child has none of the parent's threads. A pool therefore belongs to one process: the child creates its
//!    own pool when needed, and leaks the parent's. If the fork happened inside a read, the child's copy of that read
//!    fails.
//! 5. A thread without work ends after `PATIENCE`, if there are more threads than `num_threads` allows.
//! 6. The tasks of an [`OpenJob`] arrive while it runs. A thread joins when one arrives, and leaves when they run out.
//! 7. The system may refuse to start a thread. A waiting caller then does the work itself. A job without a waiting
//!    caller (an asynchronous read) begins only if the pool has a thread. The last thread stays until that job has
//!    ended.
//! 8. A user's codec may wait for such a job on a thread of the pool, and other threads for the task that called the
//!    codec: for a lock of its chunk, or for their turn. If all threads are occupied in this way, the pool starts another
//!    one. Jobs begun by codecs go first, the most deeply nested before all others, so that few threads are enough.

pub(crate) mod idle_memory;
pub(crate) mod job;
#[cfg(test)]
mod tests;

use crate::codec::Worker;
use crate::error::{ErrorKind, Result};
use crate::pool::job::{Checkpoint, INTERRUPT_INTERVAL, Job, Task};
use crate::store::codec_calls;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;
use zarrow_array::fork::{Condvar, Mutex, generation};
use zarrow_array::thread::{self, OccupiedThread, ThreadPool, work_for};

/// The pool of this process, null until first needed; in a fresh child, the parent's pool.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

/// The number of threads set by the user; 0 for as many as the process may use.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Threads that reads may use together, the caller's included.
///
/// The number set by [`set_num_threads`], else the environment's `ZARROW_NUM_THREADS`, else as many threads as the
/// process's affinity and its control group allow.
#[must_use]
pub fn num_threads() -> usize {
    let chosen = THREADS.load(Ordering::Relaxed);
    if chosen > 0 {
        return chosen;
    }
    let of_environment = std::env::var("ZARROW_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok());
    let threads = match of_environment {
        Some(threads) if threads > 0 => threads,
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    };
    // Looked up once: both are system calls, which take about as long as a small read.
    let _ = THREADS.compare_exchange(0, threads.min(MAX_THREADS), Ordering::Relaxed, Ordering::Relaxed);
    threads.min(MAX_THREADS)
}

/// How long an idle thread waits for work before it exits, if there are more threads than [`num_threads`] now allows.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether to stop: called from time to time, on the calling thread.
pub(crate) type Cancel<'a> = &'a dyn Fn() -> bool;

/// Never stops.
pub(crate) const NEVER: Cancel<'static> = &|| false;

/// More threads than any machine has; protects against a mistyped number.
const MAX_THREADS: usize = 1024;

/// Sets how many threads reads may use together, the caller's included; 0 uses the environment and the machine's
/// default again. Running reads keep their number.
///
/// ```
/// zarrow::set_num_threads(2);
/// assert_eq!(zarrow::num_threads(), 2);
/// ```
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.min(MAX_THREADS), Ordering::Relaxed);
}

/// Runs `task` for every number below `count` on at most `threads` threads, the caller's included, and returns the
/// first error.
///
/// `interrupted` is asked on the calling thread alone.
pub fn run(count: u64, threads: usize, interrupted: &dyn Fn() -> bool, task: &Task<'_>) -> Result<()> {
    let helpers = (threads as u64).min(count).saturating_sub(1) as usize;
    let job = Job::new(count);
    if helpers == 0 {
        job.work(task, Some(interrupted));
        return job.result();
    }
    let job = Arc::new(job);
    // SAFETY: step 3: the guard below leaves only when no other thread has the task or can get it, and it is
    // dropped before `task` goes out of the caller's hands, also where a panic unwinds.
    let task_of_threads = unsafe { erase(task) };
    let pool = Pool::get();
    pool.enter(Entry { job: Arc::clone(&job), task: TaskOfJob::Borrowed(task_of_threads) }, helpers);
    let guard = Leave { pool, job: &job, interrupted };
    job.work(task, Some(interrupted));
    drop(guard);
    job.result()
}

/// A job with tasks that arrive while it runs, from any thread: for example the answers of a store.
///
/// A thread of the pool joins when a task arrives, and leaves when the tasks run out, so that it can work for other
/// callers. The caller blocks until the job ends.
#[derive(Clone)]
pub struct OpenJob(Arc<OpenState>);

struct OpenState {
    job: Arc<Job>,
    /// Whether no more tasks will arrive.
    is_finished: Mutex<bool>,
    /// Signals that a task has arrived, or the last one has ended.
    news: Condvar,
}

impl OpenJob {
    /// A job without tasks.
    pub fn new() -> OpenJob {
        let (is_finished, news) = (Mutex::new(false), Condvar::default());
        OpenJob(Arc::new(OpenState { job: Arc::new(Job::coming()), is_finished, news }))
    }

    /// Adds `count` tasks, and wakes threads for them: the caller first, if it waits.
    pub fn add(&self, count: u64) {
        if self.0.job.is_of_parent() {
            return;
        }
        self.0.job.add(count);
        // The lock ensures that the caller has either seen the tasks or is waiting.
        drop(self.0.is_finished.lock());
        let others = count.saturating_sub(u64::from(self.0.news.notify_one()));
        if others > 0 {
            Pool::get().summon(&self.0.job, usize::try_from(others).unwrap_or(usize::MAX));
        }
    }

    /// Ends the arrival of tasks.
    pub fn finish(&self) {
        *self.0.is_finished.lock() = true;
        self.0.news.notify_all();
    }

    /// Stops the job, like an interruption.
    pub fn cancel(&self) {
        if !self.0.job.is_of_parent() {
            self.0.job.fail(ErrorKind::Interrupted.into());
            // Wakes a thread that notices it.
            self.add(1);
        }
    }

    /// Whether the job is over: all tasks have ended, or one has failed.
    pub fn is_over(&self) -> bool {
        *self.0.is_finished.lock() || self.0.job.is_stopped()
    }

    /// Runs `task` for each arriving task, on the threads of the pool, until the job is finished or has failed, then
    /// calls `on_end` on one thread. The caller does not wait.
    ///
    /// # Errors
    /// The pool has no thread and cannot start one; then `on_end` is not called.
    pub fn spawn(&self, task: OwnedTask, on_end: OnEnd) -> Result<()> {
        let entry = Entry { job: Arc::clone(&self.0.job), task: TaskOfJob::Owned(task) };
        let ending = Ending { open: self.clone(), on_end };
        Ok(Pool::get().enter_detached(entry, num_threads().max(1), ending)?)
    }

    /// Runs `task` for each arriving task, on at most `threads` threads, the caller's included, until the job is
    /// finished; returns the first error, after which no task begins.
    pub fn run(&self, threads: usize, interrupted: &dyn Fn() -> bool, task: &Task<'_>) -> Result<()> {
        let OpenState { job, is_finished, news } = &*self.0;
        let helpers = threads.saturating_sub(1);
        // SAFETY: as in `run`.
        let task_of_threads = unsafe { erase(task) };
        let pool = Pool::get();
        pool.enter_open(Entry { job: Arc::clone(job), task: TaskOfJob::Borrowed(task_of_threads) }, helpers);
        let guard = Leave { pool, job, interrupted };
        loop {
            job.work(task, Some(interrupted));
            let finished = is_finished.lock();
            if *finished || job.is_stopped() || job.is_of_parent() {
                break;
            }
            if !job.is_ready() {
                let (finished, woken) = news.wait(finished, Some(INTERRUPT_INTERVAL));
                drop(finished);
                if !woken {
                    job.ask(interrupted);
                }
            }
        }
        drop(guard);
        job.result()
    }
}

/// Runs `work` on a thread of the pool, and calls `done` there; `work` gets a closure that says whether to stop.
///
/// # Errors
/// As [`OpenJob::spawn`]; then `done` is not called.
pub fn spawn<T: Send + 'static>(
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T> + Send + 'static,
    done: impl FnOnce(Result<T>) + Send + 'static,
) -> Result<OpenJob> {
    let open = OpenJob::new();
    let (work, result) = (Mutex::new(Some(work)), Arc::new(Mutex::new(None)));
    let (own, kept) = (open.clone(), Arc::clone(&result));
    let task: OwnedTask = Arc::new(move |_, _, _| {
        let Some(work) = work.lock().take() else { return Ok(()) };
        let result = work(&|| own.0.job.is_stopped())?;
        *kept.lock() = Some(result);
        own.finish();
        Ok(())
    });
    let on_end = move |ended: Result<()>| {
        let result = result.lock().take();
        let lost = || ErrorKind::Internal("the work ended without a result".into()).into();
        done(ended.and_then(|()| result.ok_or_else(lost)));
    };
    open.spawn(task, Box::new(on_end))?;
    open.add(1);
    Ok(open)
}

/// Takes a job out of the queue when it is dropped, and waits until no other thread works on it (step 3).
struct Leave<'a> {
    pool: &'static Pool,
    job: &'a Arc<Job>,
    interrupted: &'a dyn Fn() -> bool,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if !self.job.is_of_parent() {
            self.pool.leave(self.job, self.interrupted);
        }
    }
}

/// The task without its lifetime.
///
/// # Safety
/// The result is not called after `'a`.
unsafe fn erase<'a>(task: &'a Task<'a>) -> &'static Task<'static> {
    // SAFETY: only the lifetime changes, and the caller answers for it.
    unsafe { std::mem::transmute::<&'a Task<'a>, &'static Task<'static>>(task) }
}

/// A job in the queue.
#[derive(Clone)]
struct Entry {
    job: Arc<Job>,
    task: TaskOfJob,
}

/// A task borrowed from a waiting caller, or owned by a job without one.
#[derive(Clone)]
enum TaskOfJob {
    Borrowed(&'static Task<'static>),
    Owned(OwnedTask),
}

/// A task that borrows nothing.
pub type OwnedTask = Arc<dyn Fn(u64, &mut Worker, &Checkpoint<'_>) -> Result<()> + Send + Sync>;

/// Called once, after every thread has left a job, with the job's first error, if any.
pub type OnEnd = Box<dyn FnOnce(Result<()>) + Send>;

/// The end of a job without a waiting caller.
struct Ending {
    open: OpenJob,
    on_end: OnEnd,
}

/// The queue and the threads that look at it.
struct Pool {
    /// The process that owns the threads.
    generation: u64,
    state: Mutex<State>,
    /// Signals that a job was queued.
    work: Condvar,
    /// Signals that a thread has left a job.
    left: Condvar,
    /// The number of threads that wait for a task of another thread.
    occupied: AtomicUsize,
}

#[derive(Default)]
struct State {
    threads: usize,
    jobs: Vec<QueuedJob>,
}

struct QueuedJob {
    entry: Entry,
    /// The number of additional threads that may join.
    wanted: usize,
    /// The maximum number of threads at once.
    most: usize,
    /// The number of threads working on it.
    active: usize,
    /// Called at the job's end, if no caller waits for it.
    ending: Option<Ending>,
}

impl State {
    /// Returns the job that a thread joins next: the deepest one, and of several the first (step 7).
    fn next_job(&mut self) -> Option<&mut QueuedJob> {
        let waiting = self.jobs.iter_mut().rev().filter(|queued| queued.wanted > 0);
        waiting.max_by_key(|queued| queued.entry.job.depth())
    }

    /// Whether only one thread is left, and a job needs it (step 7).
    fn needs_its_last_thread(&self) -> bool {
        self.threads == 1 && self.jobs.iter().any(|queued| queued.ending.is_some())
    }
}

impl Pool {
    /// The pool of this process, made at the first call.
    fn get() -> &'static Pool {
        let stored = POOL.load(Ordering::Acquire);
        // SAFETY: a pool that was stored is never freed.
        if let Some(pool) = unsafe { stored.as_ref() }
            && pool.generation == generation()
        {
            return pool;
        }
        let (state, work, left) = (Mutex::default(), Condvar::default(), Condvar::default());
        let new = Box::into_raw(Box::new(Pool {
            generation: generation(),
            state,
            work,
            left,
            occupied: AtomicUsize::new(0),
        }));
        let pool = match POOL.compare_exchange(stored, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` was made above and no other code has it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: as above: another thread of this process was first, and its pool is of this process.
        unsafe { &*pool }
    }

    /// Queues a job for `helpers` threads.
    fn enter(&'static self, entry: Entry, helpers: usize) {
        let mut state = self.state.lock();
        state.jobs.push(QueuedJob { entry, wanted: helpers, most: helpers, active: 0, ending: None });
        self.start_threads(&mut state, helpers);
        drop(state);
        for _ in 0..helpers {
            self.work.notify_one();
        }
    }

    /// Queues a job with tasks still to arrive; at most `helpers` threads are [summoned](Pool::summon) for it.
    fn enter_open(&'static self, entry: Entry, helpers: usize) {
        self.state.lock().jobs.push(QueuedJob { entry, wanted: 0, most: helpers, active: 0, ending: None });
    }

    /// Same as [`enter_open`](Pool::enter_open), for a job without a waiting caller (step 7).
    ///
    /// # Errors
    /// There is no thread that would work on it.
    fn enter_detached(&'static self, entry: Entry, most: usize, ending: Ending) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.threads == 0
            && let Err(error) = self.start_thread(&mut state)
        {
            // The task's owned data are dropped without the lock.
            drop(state);
            return Err(error);
        }
        state.jobs.push(QueuedJob { entry, wanted: 0, most, active: 0, ending: Some(ending) });
        Ok(())
    }

    /// Lets `count` more threads join a job, if it is in the queue. A thread that finds no task leaves at once.
    fn summon(&'static self, job: &Arc<Job>, count: usize) {
        let mut state = self.state.lock();
        let Some(queued) = state.jobs.iter_mut().find(|queued| Arc::ptr_eq(&queued.entry.job, job)) else {
            return;
        };
        // Leaving threads still count as active, and may have missed the task.
        let before = queued.wanted;
        queued.wanted = queued.wanted.saturating_add(count).min(queued.most);
        let least = if queued.ending.is_some() { self.one_more_than_occupied() } else { 0 };
        let (more, most) = (queued.wanted - before, queued.most);
        if more > 0 {
            self.start_threads(&mut state, most.max(least));
        }
        drop(state);
        for _ in 0..more {
            self.work.notify_one();
        }
    }

    /// Returns how many threads the pool needs for a detached job (step 8).
    fn one_more_than_occupied(&self) -> usize {
        codec_calls::count() + self.occupied.load(Ordering::Relaxed) + 1
    }

    /// Starts threads until there are `count`.
    fn start_threads(&'static self, state: &mut State, count: usize) {
        // If the system refuses one, the running threads do the work.
        while state.threads < count && self.start_thread(state).is_ok() {}
    }

    fn start_thread(&'static self, state: &mut State) -> io::Result<()> {
        thread::start("zarrow", move || self.serve())?;
        state.threads += 1;
        Ok(())
    }

    /// Takes a job out of the queue and waits until no other thread works on it (step 3).
    fn leave(&self, job: &Arc<Job>, interrupted: &dyn Fn() -> bool) {
        let mut state = self.state.lock();
        let mut occupied = None;
        // Looked up each time, since other jobs come and go.
        while let Some(at) = state.jobs.iter().position(|queued| Arc::ptr_eq(&queued.entry.job, job)) {
            state.jobs[at].wanted = 0;
            if state.jobs[at].active == 0 {
                state.jobs.swap_remove(at);
                return;
            }
            if occupied.is_none() {
                drop(state);
                occupied = Some(OccupiedThread::enter());
                state = self.state.lock();
                continue;
            }
            let (guard, woken) = self.left.wait(state, Some(INTERRUPT_INTERVAL));
            state = guard;
            if !woken {
                drop(state);
                job.ask(interrupted);
                if job.is_of_parent() {
                    return;
                }
                state = self.state.lock();
            }
        }
    }

    /// Main loop of a pool thread.
    fn serve(&'static self) {
        work_for(self);
        let mut state = self.state.lock();
        let mut waited = false;
        loop {
            let Some(queued) = state.next_job() else {
                if state.threads < num_threads() {
                    (state, _) = self.work.wait(state, None);
                } else if waited && !state.needs_its_last_thread() {
                    state.threads -= 1;
                    return;
                } else {
                    let (guard, woken) = self.work.wait(state, Some(PATIENCE));
                    (state, waited) = (guard, !woken);
                }
                continue;
            };
            waited = false;
            queued.wanted -= 1;
            queued.active += 1;
            let entry = queued.entry.clone();
            drop(state);
            let done = Done { pool: self, job: Arc::clone(&entry.job) };
            match &entry.task {
                TaskOfJob::Borrowed(task) => entry.job.work(*task, None),
                TaskOfJob::Owned(task) => entry.job.work(&**task, None),
            }
            drop(entry);
            drop(done);
            state = self.state.lock();
        }
    }
}

impl ThreadPool for Pool {
    /// Step 8.
    fn occupy(&self) {
        self.occupied.fetch_add(1, Ordering::Relaxed);
        if self.generation != generation() {
            return;
        }
        // The same pool, with the lifetime that a new thread needs.
        let pool = Pool::get();
        let mut state = pool.state.lock();
        if state.jobs.iter().any(|queued| queued.ending.is_some() && queued.wanted > 0) {
            pool.start_threads(&mut state, pool.one_more_than_occupied());
        }
    }

    fn free(&self) {
        self.occupied.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Guard that reports on drop that a thread has left a job, so that no caller waits for a thread that unwound.
struct Done<'a> {
    pool: &'a Pool,
    job: Arc<Job>,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        let at = state.jobs.iter().position(|queued| Arc::ptr_eq(&queued.entry.job, &self.job));
        let mut ended = None;
        if let Some(at) = at {
            let queued = &mut state.jobs[at];
            queued.active -= 1;
            if queued.active == 0 && queued.ending.as_ref().is_some_and(|ending| ending.open.is_over()) {
                ended = Some(state.jobs.swap_remove(at));
            }
        }
        drop(state);
        self.pool.left.notify_all();
        if let Some(QueuedJob { entry, ending: Some(Ending { on_end, .. }), .. }) = ended {
            // Everything owned by the task is dropped before `on_end` is called.
            let Entry { job, task } = entry;
            drop(task);
            let result = job.result();
            let _inherited = job.inherit();
            // A payload may panic again when it is dropped.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| on_end(result))) {
                std::mem::forget(panic);
            }
        }
    }
}
