//! The thread pool: one flat list of tasks at a time and caller, worked on by the caller too.
//!
//! 1. No thread is started before a read has more than one task.
//! 2. [`run`] puts a job into the queue, wakes as many threads as can help, and works on it itself. Each takes
//!    the next task number until there is none, a task has failed, or the caller was interrupted.
//! 3. The caller then takes the job out of the queue, so that nobody else joins, and waits for those who did.
//!    Only then does `run` return: the tasks may therefore borrow from the caller.
//! 4. A forked child has none of the parent's threads, and the parent's locks as they happened to be. A handler
//!    that runs in the child forgets the parent's pool, unfreed; the child makes its own at need.
//! 5. A panic in a task is caught and becomes an error.

use crate::error::{Error, ErrorKind, Result};
use crate::exec::scratch::Worker;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// How often a caller that waits asks whether it was interrupted.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// A task: its number, and what the thread works with.
pub type Task<'a> = dyn Fn(u64, &mut Worker) -> Result<()> + Sync + 'a;

/// The pool of this process, null until it is needed and in a fresh child.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

/// What the user asked for; 0 for as many threads as the process may use.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static WORKER: RefCell<Worker> = RefCell::new(Worker::default());
}

/// A lock whose holder panicked holds what it held: every critical section here leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
/// first error.
///
/// `interrupted` is asked on the calling thread alone.
///
/// # Errors
/// What a task returned; [`ErrorKind::Interrupted`].
pub fn run(count: u64, threads: usize, interrupted: &dyn Fn() -> bool, task: &Task<'_>) -> Result<()> {
    let helpers = (threads as u64).min(count).saturating_sub(1) as usize;
    let job = Job::new(count);
    if helpers == 0 {
        job.work(task, Some(interrupted));
        return job.into_result();
    }
    let pool = Pool::get();
    let shared = Arc::new(job);
    // SAFETY: step 3: `leave` returns only when no other thread has the task or can get it, and it is called
    // before `task` goes out of the caller's hands.
    let entry = Entry { job: Arc::clone(&shared), task: unsafe { erase(task) } };
    pool.enter(entry, helpers);
    shared.work(task, Some(interrupted));
    pool.leave(&shared, interrupted);
    shared.take_result()
}

/// The task without its lifetime.
///
/// # Safety
/// The result is not called after `'a`.
unsafe fn erase<'a>(task: &'a Task<'a>) -> &'static Task<'static> {
    // SAFETY: only the lifetime changes, and the caller answers for it.
    unsafe { std::mem::transmute::<&'a Task<'a>, &'static Task<'static>>(task) }
}

/// One call of [`run`].
struct Job {
    count: u64,
    next: Mutex<u64>,
    stop: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Job {
    fn new(count: u64) -> Job {
        Job { count, next: Mutex::new(0), stop: AtomicBool::new(false), error: Mutex::new(None) }
    }

    /// The next task's number.
    fn claim(&self) -> Option<u64> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let mut next = lock(&self.next);
        let number = *next;
        (number < self.count).then(|| {
            *next += 1;
            number
        })
    }

    fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Relaxed);
        lock(&self.error).get_or_insert(error);
    }

    /// Works until there is no more task; the caller's thread passes how it asks for interruption.
    fn work(&self, task: &Task<'_>, interrupted: Option<&dyn Fn() -> bool>) {
        WORKER.with(|worker| {
            // A task that reads another array on this thread would find the worker in use: it gets a new one.
            let mut fresh = Worker::default();
            let mut held = worker.try_borrow_mut();
            let worker = held.as_deref_mut().unwrap_or(&mut fresh);
            let mut asked = std::time::Instant::now();
            while let Some(number) = self.claim() {
                match catch_unwind(AssertUnwindSafe(|| task(number, worker))) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => self.fail(error),
                    Err(panic) => {
                        // The worker's state is that of a task cut short: start afresh.
                        *worker = Worker::default();
                        self.fail(ErrorKind::Internal(panic_text(panic.as_ref())).into());
                    }
                }
                if let Some(interrupted) = interrupted
                    && asked.elapsed() >= INTERRUPT_INTERVAL
                {
                    if interrupted() {
                        self.fail(ErrorKind::Interrupted.into());
                    }
                    asked = std::time::Instant::now();
                }
            }
            worker.trim();
        });
    }

    fn take_result(&self) -> Result<()> {
        lock(&self.error).take().map_or(Ok(()), Err)
    }

    fn into_result(self) -> Result<()> {
        self.take_result()
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a task panicked".into())
}

/// A job in the queue.
#[derive(Clone)]
struct Entry {
    job: Arc<Job>,
    task: &'static Task<'static>,
}

/// The queue and the threads that look at it.
#[derive(Default)]
struct Pool {
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
        static FORK_HANDLER: Once = Once::new();
        let mut pool = POOL.load(Ordering::Acquire);
        if pool.is_null() {
            FORK_HANDLER.call_once(|| {
                // SAFETY: the handler stores to an atomic, which a child may do at any point of its life.
                unsafe { libc::pthread_atfork(None, None, Some(forget_pool)) };
            });
            let new = Box::into_raw(Box::<Pool>::default());
            pool = match POOL.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => new,
                Err(other) => {
                    // SAFETY: `new` was made above and nobody else has it.
                    drop(unsafe { Box::from_raw(new) });
                    other
                }
            };
        }
        // SAFETY: a pool that was stored is never freed.
        unsafe { &*pool }
    }

    /// Queues a job for `helpers` threads.
    fn enter(&'static self, entry: Entry, helpers: usize) {
        let mut state = lock(&self.state);
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
        let at = |state: &State| state.jobs.iter().position(|queued| Arc::ptr_eq(&queued.entry.job, job));
        let mut state = lock(&self.state);
        if let Some(at) = at(&state) {
            state.jobs[at].wanted = 0;
        }
        while let Some(at) = at(&state) {
            if state.jobs[at].active == 0 {
                state.jobs.swap_remove(at);
                break;
            }
            let (guard, timeout) =
                self.left.wait_timeout(state, INTERRUPT_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() {
                drop(state);
                if interrupted() {
                    job.fail(ErrorKind::Interrupted.into());
                }
                state = lock(&self.state);
            }
        }
    }

    /// What a thread of the pool does for ever.
    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            let Some(queued) = state.jobs.iter_mut().find(|queued| queued.wanted > 0) else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queued.wanted -= 1;
            queued.active += 1;
            let entry = queued.entry.clone();
            drop(state);
            entry.job.work(entry.task, None);
            state = lock(&self.state);
            if let Some(queued) =
                state.jobs.iter_mut().find(|queued| Arc::ptr_eq(&queued.entry.job, &entry.job))
            {
                queued.active -= 1;
            }
            self.left.notify_all();
        }
    }
}

/// Runs in a forked child (step 4).
unsafe extern "C" fn forget_pool() {
    POOL.store(std::ptr::null_mut(), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn never() -> bool {
        false
    }

    #[test]
    fn every_task_runs_once_and_may_borrow() {
        let seen: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
        for _ in 0..20 {
            run(1000, 3, &never, &|number, _| {
                seen[number as usize].fetch_add(1, Ordering::SeqCst);
                Ok(())
            })
            .unwrap();
        }
        assert!(seen.iter().all(|count| count.load(Ordering::SeqCst) == 20));
    }

    #[test]
    fn errors_and_panics_come_back() {
        let error = run(100, 3, &never, &|number, _| match number {
            7 => Err(ErrorKind::NotFound.into()),
            _ => Ok(()),
        });
        assert_eq!(error.unwrap_err().kind().code(), "not_found");
        let error = run(100, 3, &never, &|number, _| if number == 7 { panic!("seven") } else { Ok(()) });
        assert!(matches!(error.unwrap_err().kind(), ErrorKind::Internal(text) if text == "seven"));
    }

    #[test]
    fn many_callers_share_the_threads() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let sum = AtomicU64::new(0);
                        run(20, 3, &never, &|number, _| {
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
    fn a_caller_can_stop() {
        let slow = |_, _: &mut Worker| {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        };
        let result = run(100_000, 3, &|| true, &slow);
        assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted));
    }
}
