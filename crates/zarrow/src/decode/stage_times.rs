//! Time that reads spend in their stages: in the store, in decoding and in placement.
//!
//! 1. A task has a [`TaskClock`]. It measures the calls of the store and of placement; the rest of the task is decoding.
//!    A stage's thread time is its sum over all tasks.
//! 2. A read of a slow store waits for answers in no task. It measures how long no task decoded: [`BusyTime`].
//! 3. The time of a read is divided: that wait is the store's, and the rest is shared in proportion to the thread times.

use crate::error::Result;
use crate::store::{FileRange, Value};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zarrow_array::fork::Mutex;

/// The time of reads, by stage; [`Array::with_stage_times`](crate::Array::with_stage_times) fills it.
#[derive(Debug, Default)]
pub struct StageTimes {
    reads: Nanoseconds,
    waits: Nanoseconds,
    store: Nanoseconds,
    decode: Nanoseconds,
    placement: Nanoseconds,
}

/// Seconds of reads, by stage. Together they are the time of all reads; that of reads at the same time counts for each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageSeconds {
    /// Opening chunks, and waiting for their bytes; a cache on disk is a store, too.
    pub store: f64,
    /// Decoding them.
    pub decode: f64,
    /// Moving decoded elements to their places. Elements that a codec decodes in their place take no such time.
    pub placement: f64,
}

#[derive(Debug, Default)]
struct Nanoseconds(AtomicU64);

impl Nanoseconds {
    fn add(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl StageTimes {
    /// Returns the seconds of all reads that have ended.
    #[must_use]
    pub fn seconds(&self) -> StageSeconds {
        let [reads, waits, store, decode, placement] =
            [&self.reads, &self.waits, &self.store, &self.decode, &self.placement]
                .map(|time| time.get().as_secs_f64());
        // Step 3.
        let (rest, threads) = ((reads - waits).max(0.0), store + decode + placement);
        let share = |time: f64| if threads > 0.0 { rest * time / threads } else { 0.0 };
        StageSeconds { store: waits + share(store), decode: share(decode), placement: share(placement) }
    }

    /// Adds the time of a read.
    pub(crate) fn add_read(&self, time: Duration) {
        self.reads.add(time);
    }

    /// Adds the time that a read only waited.
    pub(crate) fn add_wait(&self, time: Duration) {
        self.waits.add(time);
    }

    /// Runs a task with a clock.
    pub(crate) fn task<T>(&self, run: impl FnOnce(&TaskClock) -> T) -> T {
        let clock = TaskClock::default();
        let begun = Instant::now();
        let result = run(&clock);
        let (store, placement) = (clock.store.get(), clock.placement.get());
        self.decode.add(begun.elapsed().saturating_sub(store + placement));
        self.store.add(store);
        self.placement.add(placement);
        result
    }
}

/// Time that a task has spent in the store and in placement (step 1).
#[derive(Debug, Default)]
pub struct TaskClock {
    store: Nanoseconds,
    placement: Nanoseconds,
}

impl TaskClock {
    /// Measures a call of the store.
    pub fn in_store<T>(&self, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = run();
        self.store.add(begun.elapsed());
        result
    }

    /// Measures placement, without the calls of the store in it.
    pub fn in_placement<T>(&self, run: impl FnOnce() -> T) -> T {
        let (begun, store) = (Instant::now(), self.store.get());
        let result = run();
        self.placement.add(begun.elapsed().saturating_sub(self.store.get() - store));
        result
    }
}

/// The time while at least one task of a read works (step 2).
#[derive(Debug, Default)]
pub struct BusyTime(Mutex<Busy>);

#[derive(Debug, Default)]
struct Busy {
    tasks: usize,
    /// When the first of them began.
    since: Option<Instant>,
    total: Duration,
}

impl BusyTime {
    /// Runs a task.
    pub fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        {
            let mut busy = self.0.lock();
            busy.tasks += 1;
            busy.since.get_or_insert_with(Instant::now);
        }
        let result = run();
        let mut busy = self.0.lock();
        busy.tasks -= 1;
        if busy.tasks == 0
            && let Some(since) = busy.since.take()
        {
            busy.total += since.elapsed();
        }
        result
    }

    /// Returns the time, after all tasks.
    pub fn total(&self) -> Duration {
        self.0.lock().total
    }
}

/// A value with a clock for its reads.
pub struct TimedValue<'a> {
    /// The value.
    pub value: &'a dyn Value,
    /// The clock.
    pub clock: &'a TaskClock,
}

impl Value for TimedValue<'_> {
    fn nbytes(&self) -> Result<u64> {
        self.clock.in_store(|| self.value.nbytes())
    }

    fn read_at<'a>(&self, offset: u64, destination: &'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]> {
        self.clock.in_store(|| self.value.read_at(offset, destination))
    }

    fn read_at_once<'a>(
        &self,
        offset: u64,
        destination: &'a mut [MaybeUninit<u8>],
    ) -> Result<Option<&'a mut [u8]>> {
        self.clock.in_store(|| self.value.read_at_once(offset, destination))
    }

    fn read_whole<'a>(
        &self,
        memory: &'a mut [MaybeUninit<u8>],
        length: usize,
    ) -> Result<Option<&'a mut [u8]>> {
        self.clock.in_store(|| self.value.read_whole(memory, length))
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.value.bytes()
    }

    fn version(&self) -> Result<Option<[u64; 4]>> {
        self.value.version()
    }

    fn file(&self) -> Option<FileRange<'_>> {
        self.value.file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn reads_are_divided_in_proportion_to_the_thread_times() {
        let times = StageTimes::default();
        assert_eq!(times.seconds(), StageSeconds::default());
        // Four threads work for two of three seconds.
        times.add_read(SECOND * 3);
        times.add_wait(SECOND);
        times.store.add(SECOND);
        times.decode.add(SECOND * 5);
        times.placement.add(SECOND * 2);
        assert_eq!(times.seconds(), StageSeconds { store: 1.25, decode: 1.25, placement: 0.5 });
    }

    #[test]
    fn calls_of_the_store_are_no_placement() {
        let clock = TaskClock::default();
        let began = Instant::now();
        clock.in_placement(|| clock.in_store(|| std::thread::sleep(SECOND / 50)));
        let (store, placement) = (clock.store.get(), clock.placement.get());
        assert!(store >= SECOND / 50 && store + placement <= began.elapsed());
    }

    #[test]
    fn a_read_is_busy_while_any_task_runs() {
        let (busy, pause) = (BusyTime::default(), SECOND / 50);
        let began = Instant::now();
        busy.during(|| {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| busy.during(|| std::thread::sleep(pause)));
                }
            });
        });
        // Tasks that run together count once.
        assert!(busy.total() >= pause && busy.total() <= began.elapsed());
        assert_eq!(busy.0.lock().tasks, 0);
    }
}
