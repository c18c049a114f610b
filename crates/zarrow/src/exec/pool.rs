//! The thread pool: one flat list of tasks at a time and caller, worked on by the caller too.
//!
//! 1. No thread is started before a read has more than one task.
//! 2. [`run`] puts a [`Job`] into the queue, wakes as many threads as can help, and works on it itself.
//! 3. The caller then takes the job out of the queue, so that nobody else joins, and waits for those who did, even
//!    where it unwinds. Only then does `run` return: the tasks may therefore borrow from the caller.
//! 4. A forked child has none of the parent's threads. A pool therefore belongs to one process: the child makes one of its
//!    own at need, and forgets the parent's, unfreed. Where the fork happened inside a read, the child's copy of that read
//!    fails.
//! 5. A read from a slow store has more threads than [`num_threads`], which take turns: see
//!    [`turns`](super::turns). Those that are more end when they have had nothing to do for some time.

use crate::error::Result;
use crate::exec::job::{INTERRUPT_INTERVAL, Job, Task};
use crate::exec::turns::Turns;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;
use zarrow_array::fork::{Condvar, Mutex, generation};

/// The pool of this process, null until it is needed; in a fresh child that of its parent.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

/// What the user asked for; 0 for as many threads as the process may use.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Threads that reads may use together, the caller's included.
///
/// What [`set_num_threads`] said, else the environment's `ZARROW_NUM_THREADS`, else what the process's affinity
/// and its control group allow.
#[must_use]
pub fn num_threads() -> usize {
    let asked = THREADS.load(Ordering::Relaxed);
    if asked > 0 {
        return asked;
    }
    let of_environment = std::env::var("ZARROW_NUM_THREADS").ok().and_then(|text| text.trim().parse().ok());
    let threads = match of_environment {
        Some(threads) if threads > 0 => threads,
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    };
    // Looked up once: both are system calls, and a small read is not much longer.
    let _ = THREADS.compare_exchange(0, threads.min(MAX_THREADS), Ordering::Relaxed, Ordering::Relaxed);
    threads.min(MAX_THREADS)
}

/// How long a thread that only slow stores need waits for work before it ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// More threads than any machine has, which a mistyped number shall not start.
const MAX_THREADS: usize = 1024;

/// Sets how many threads reads may use together, the caller's included; 0 asks the environment and the machine
/// again. Reads under way keep their number.
///
/// ```
/// zarrow::set_num_threads(2);
/// assert_eq!(zarrow::num_threads(), 2);
/// ```
pub fn set_num_threads(threads: usize) {
    THREADS.store(threads.min(MAX_THREADS), Ordering::Relaxed);
}

/// Runs `task` for every number below `count` on at most `threads` threads, the caller's included, and returns the
/// first error. Where that is more than [`num_threads`], no more than these decode, and the others wait for the store.
///
/// `interrupted` is asked on the calling thread alone.
///
/// # Errors
/// What a task returned; [`ErrorKind::Interrupted`].
pub fn run(count: u64, threads: usize, interrupted: &dyn Fn() -> bool, task: &Task<'_>) -> Result<()> {
    let helpers = (threads as u64).min(count).saturating_sub(1) as usize;
    let decoding = if threads > 1 { num_threads() } else { 1 };
    let turns = (threads > decoding).then(|| Turns::new(threads - decoding, decoding));
    let job = Job::new(count, turns);
    if helpers == 0 {
        job.work(task, Some(interrupted));
        return job.result();
    }
    let job = Arc::new(job);
    // SAFETY: step 3: the guard below leaves only when no other thread has the task or can get it, and it is
    // dropped before `task` goes out of the caller's hands, also where a panic unwinds.
    let task_of_threads = unsafe { erase(task) };
    let pool = Pool::get();
    pool.enter(Entry { job: Arc::clone(&job), task: task_of_threads }, helpers);
    let guard = Leave { pool, job: &job, interrupted };
    job.work(task, Some(interrupted));
    drop(guard);
    job.result()
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
    task: &'static Task<'static>,
}

/// The queue and the threads that look at it.
struct Pool {
    /// The process whose threads they are.
    generation: u64,
    state: Mutex<State>,
    /// A job has come.
    work: Condvar,
    /// A thread has left a job.
    left: Condvar,
}

#[derive(Default)]
struct State {
    threads: usize,
    jobs: Vec<QueuedJob>,
}

struct QueuedJob {
    entry: Entry,
    /// How many more threads may join.
    wanted: usize,
    /// How many threads are at work on it.
    active: usize,
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
        let new = Box::into_raw(Box::new(Pool { generation: generation(), state, work, left }));
        let pool = match POOL.compare_exchange(stored, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` was made above and nobody else has it.
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
        state.jobs.push(QueuedJob { entry, wanted: helpers, active: 0 });
        while state.threads < helpers {
            let thread = std::thread::Builder::new().name("zarrow".into()).spawn(move || self.serve());
            match thread {
                Ok(_) => state.threads += 1,
                // The machine has no more threads: those that there are do the work.
                Err(_) => break,
            }
        }
        drop(state);
        for _ in 0..helpers {
            self.work.notify_one();
        }
    }

    /// Takes a job out of the queue and waits until no other thread works on it (step 3).
    fn leave(&self, job: &Arc<Job>, interrupted: &dyn Fn() -> bool) {
        let mut state = self.state.lock();
        // Looked up each time, since other jobs come and go.
        while let Some(at) = state.jobs.iter().position(|queued| Arc::ptr_eq(&queued.entry.job, job)) {
            state.jobs[at].wanted = 0;
            if state.jobs[at].active == 0 {
                state.jobs.swap_remove(at);
                return;
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

    /// What a thread of the pool does for ever.
    fn serve(&self) {
        let mut state = self.state.lock();
        let mut waited = false;
        loop {
            let Some(queued) = state.jobs.iter_mut().find(|queued| queued.wanted > 0) else {
                if state.threads < num_threads() {
                    (state, _) = self.work.wait(state, None);
                } else if waited {
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
            entry.job.work(entry.task, None);
            drop(done);
            state = self.state.lock();
        }
    }
}

/// Says when it is dropped that a thread has left a job, so that nobody waits for one that unwound.
struct Done<'a> {
    pool: &'a Pool,
    job: Arc<Job>,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        if let Some(queued) = state.jobs.iter_mut().find(|queued| Arc::ptr_eq(&queued.entry.job, &self.job)) {
            queued.active -= 1;
        }
        drop(state);
        self.pool.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::exec::job::Checkpoint;
    use crate::exec::scratch::Worker;
    use crate::exec::turns::Turn;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    fn never() -> bool {
        false
    }

    #[test]
    fn every_task_runs_once_and_may_borrow() {
        let seen: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
        for _ in 0..20 {
            run(1000, 3, &never, &|number, _, _| {
                seen[number as usize].fetch_add(1, Ordering::SeqCst);
                Ok(())
            })
            .unwrap();
        }
        assert!(seen.iter().all(|count| count.load(Ordering::SeqCst) == 20));
    }

    #[test]
    fn errors_and_panics_come_back() {
        let error = run(100, 3, &never, &|number, _, _| match number {
            7 => Err(ErrorKind::NotFound.into()),
            _ => Ok(()),
        });
        assert_eq!(error.unwrap_err().kind().code(), "not_found");
        let error = run(100, 3, &never, &|number, _, _| if number == 7 { panic!("seven") } else { Ok(()) });
        assert!(matches!(error.unwrap_err().kind(), ErrorKind::Internal(text) if text == "seven"));
    }

    #[test]
    fn many_callers_share_the_threads() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let sum = AtomicU64::new(0);
                        run(20, 3, &never, &|number, _, _| {
                            sum.fetch_add(number, Ordering::SeqCst);
                            Ok(())
                        })
                        .unwrap();
                        assert_eq!(sum.load(Ordering::SeqCst), 190);
                    }
                });
            }
        });
    }

    #[test]
    fn a_question_that_panics_is_an_error() {
        let busy = |_, _: &mut Worker, _: &Checkpoint<'_>| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        };
        let result = run(1000, 3, &|| panic!("question"), &busy);
        assert!(matches!(result.unwrap_err().kind(), ErrorKind::Internal(text) if text == "question"));
    }

    #[test]
    fn a_long_task_stops_at_a_checkpoint() {
        let endless = |_, _: &mut Worker, checkpoint: &Checkpoint<'_>| loop {
            checkpoint.pass()?;
        };
        for threads in [1, 3] {
            let result = run(3, threads, &|| true, &endless);
            assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted));
        }
    }

    #[test]
    fn no_more_decode_than_there_are_processors() {
        let decoding = num_threads();
        let (now, most) =
            ([AtomicUsize::new(0), AtomicUsize::new(0)], [AtomicUsize::new(0), AtomicUsize::new(0)]);
        run(200, decoding + 7, &never, &|_, _, checkpoint| {
            for (turn, kind) in [(Turn::Fetch, 0), (Turn::Decode, 1), (Turn::Fetch, 0)] {
                checkpoint.take(turn)?;
                most[kind].fetch_max(now[kind].fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now[kind].fetch_sub(1, Ordering::SeqCst);
            }
            Ok(())
        })
        .unwrap();
        assert!(most[0].load(Ordering::SeqCst) <= 7);
        assert!(most[1].load(Ordering::SeqCst) <= decoding);
    }

    #[test]
    fn a_caller_can_stop() {
        let slow = |_, _: &mut Worker, _: &Checkpoint<'_>| {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        };
        let result = run(100_000, 3, &|| true, &slow);
        assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted));
    }
}
