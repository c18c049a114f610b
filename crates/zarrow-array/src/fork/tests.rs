//! Tests every lock while threads use it and the process forks. A hanging child is killed by its pid, and
//! counted.

use super::*;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

/// Runs `child` in a forked process and returns its result; a child that hangs is killed.
fn forked(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `child` and exits without returning to the test harness.
    match unsafe { libc::fork() } {
        0 => {
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!matches!(status, Ok(true)))) }
        }
        pid => {
            assert!(pid > 0);
            let (mut status, start) = (0, Instant::now());
            // SAFETY: `pid` is a child of this process, and `status` a place for its exit status.
            while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
                if start.elapsed() > Duration::from_secs(60) {
                    // SAFETY: the child was not waited for yet, so the pid is still its own.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            status == 0
        }
    }
}

/// A pair that is equal unless a change is in progress.
#[derive(Default)]
struct Pair(u64, u64);

impl Pair {
    fn step(&mut self) {
        self.0 += 1;
        // Time for a fork in between.
        (0..200).for_each(|_| std::hint::spin_loop());
        self.1 += 1;
    }
}

#[test]
fn every_lock_is_free_and_its_value_consistent_in_a_child() {
    static MUTEX: Mutex<Pair> = Mutex::new(Pair(0, 0));
    static INNER: Mutex<Pair> = Mutex::new(Pair(0, 0));
    static CACHE: CacheMutex<Pair> = CacheMutex::new(Pair(0, 0));
    static CELLS: [OnceCell<u64>; 8] = [const { OnceCell::new() }; 8];
    let shared = ProcessMutex::new(Pair::default());
    let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let use_all = |number: usize| {
        MUTEX.lock().step();
        {
            let mut outer = MUTEX.lock();
            INNER.lock().step();
            outer.step();
        }
        if let Some(mut pair) = CACHE.try_lock() {
            pair.step();
        }
        CELLS[number % CELLS.len()].get_or_make(|| 7);
    };
    let children: Vec<bool> = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    use_all(rounds.fetch_add(1, Ordering::Relaxed));
                    shared.lock().unwrap().step();
                }
            });
        }
        let fork = |number: usize| {
            let is_right = || {
                let is_whole = |pair: &Pair| pair.0 == pair.1;
                let whole = is_whole(&MUTEX.lock()) && is_whole(&INNER.lock());
                // No thread of this process holds it, so a failure means that the cache stays locked forever.
                let cached = CACHE.try_lock().is_some_and(|pair| is_whole(&pair));
                use_all(number);
                // The same holds in a child of the child.
                let below = forked(|| is_whole(&MUTEX.lock()) && CACHE.try_lock().is_some());
                whole && cached && below && shared.lock().is_err()
            };
            forked(is_right)
        };
        let children = (0..200).map(fork).collect();
        stop.store(true, Ordering::Relaxed);
        children
    });
    assert_eq!(children.iter().filter(|right| **right).count(), 200);
    assert!(rounds.load(Ordering::Relaxed) > 0);
}

#[test]
fn threads_wait_for_each_other_while_forks_happen() {
    struct Turns {
        next: Mutex<usize>,
        changed: Condvar,
    }
    let turns = Arc::new(Turns { next: Mutex::new(0), changed: Condvar::default() });
    let take_turns = |turns: &Turns, own: usize, count: usize, rounds: usize| {
        for _ in 0..rounds {
            let mut next = turns.next.lock();
            while *next % count != own {
                (next, _) = turns.changed.wait(next, Some(Duration::from_secs(1)));
            }
            *next += 1;
            drop(next);
            turns.changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for own in 0..3 {
            let turns = &*turns;
            scope.spawn(move || take_turns(turns, own, 3, 300));
        }
        for _ in 0..50 {
            let child = || {
                // Threads that were waiting here are not in the child, and waking them has no effect.
                turns.changed.notify_all();
                let own = Turns { next: Mutex::new(0), changed: Condvar::default() };
                std::thread::scope(|scope| {
                    (0..2).for_each(|number| {
                        drop(scope.spawn({
                            let own = &own;
                            move || take_turns(own, number, 2, 20)
                        }))
                    });
                });
                *own.next.lock() == 40 && *turns.next.lock() <= 900
            };
            assert!(forked(child));
        }
    });
    assert_eq!(*turns.next.lock(), 900);
}

#[test]
fn a_wait_ends_in_time_and_leaves_foreign_wakes() {
    let (mutex, condvar) = (Mutex::new(()), Condvar::default());
    let (guard, woken) = condvar.wait(mutex.lock(), Some(Duration::from_millis(1)));
    assert!(!woken);
    drop(guard);
    std::thread::current().unpark();
    assert!(!condvar.wait(mutex.lock(), Some(Duration::from_millis(1))).1);
    // Returns at once, because the wake-up above was given back; otherwise it would wait forever.
    std::thread::park();
}

/// A child of a fork between the opening of a file and its entry keeps the file open: the parent locks another one.
#[test]
fn a_child_forked_while_a_file_is_opened_does_not_keep_its_lock() {
    let path = std::env::temp_dir().join(format!("zarrow-fork-{}", std::process::id()));
    let open = || std::fs::File::create(&path).map(OwnedFd::from);
    let lock = |file: &OwnedFd| {
        // SAFETY: locks an open file.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
    };
    let mut children = Vec::new();
    let file = File::open(|| {
        let file = open()?;
        if children.is_empty() {
            // SAFETY: the child only waits until it is killed.
            match unsafe { libc::fork() } {
                0 => loop {
                    // SAFETY: waits for a signal.
                    unsafe { libc::pause() };
                },
                child => children.push(child),
            }
        }
        Ok::<_, std::io::Error>(file)
    });
    let file = file.unwrap();
    assert!(lock(file.get().unwrap()));
    drop(file);
    let is_free = lock(&open().unwrap());
    for child in children {
        // SAFETY: the child was not waited for yet, so the pid is its own.
        unsafe { libc::kill(child, libc::SIGKILL) };
        let mut status = 0;
        // SAFETY: as above, and `status` is a place for its exit status.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
    }
    std::fs::remove_file(&path).unwrap();
    assert!(is_free);
}
