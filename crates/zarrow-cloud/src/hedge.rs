//! Second and third copies of a late request, for servers that stall on some answers.
//!
//! 1. The times of a host's last answers are kept. A request that takes a tenth longer than 95 in 100 of them is sent a
//!    second time, as long as at most one request in twenty is, plus a few at the beginning. If the copy is as late,
//!    there is a third: if one in fifty requests stalls, every tenth read of 256 requests has one with a stalled copy
//!    too.
//! 2. If a request may not be sent again yet, since the host is unknown or all permits are in use, it checks again
//!    later.
//! 3. The first head to arrive wins, and the other requests are dropped. No receiver has seen anything of them: it gets
//!    the winner alone.

use futures_util::StreamExt;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};
use zarrow_array::fork::Mutex;

/// Number of answers to keep.
const KEPT: usize = 128;

/// Number of answers before a host is known.
const ENOUGH: usize = 20;

/// One in this many requests may be sent twice.
const REQUESTS_PER_HEDGE: u64 = 20;

/// Additional hedges, so that early stalls find some.
const HEDGES_TO_BEGIN_WITH: u64 = 5;

/// Shorter waits are no sign of a stall.
const LEAST_DELAY: Duration = Duration::from_millis(5);

/// Interval of checks while the host is unknown.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Maximum number of copies of one request.
const MOST_COPIES: u32 = 3;

/// Answer times of a host.
#[derive(Debug)]
pub struct FirstBytes(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Microseconds; a ring buffer.
    times: Vec<u32>,
    next: usize,
    /// 95th percentile of the answer times, updated now and then.
    late: Option<Duration>,
    requests: u64,
    hedges: u64,
}

impl Default for FirstBytes {
    fn default() -> FirstBytes {
        let state = State { times: Vec::new(), next: 0, late: None, requests: 0, hedges: 0 };
        FirstBytes(Mutex::new(state))
    }
}

impl FirstBytes {
    /// Records an answer after this time.
    pub fn record(&self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let mut state = self.0.lock();
        if state.times.len() < KEPT {
            state.times.push(micros);
        } else {
            let next = state.next;
            state.times[next] = micros;
        }
        state.next = (state.next + 1) % KEPT;
        if state.times.len() >= ENOUGH && state.next.is_multiple_of(8) {
            let mut times = state.times.clone();
            let place = times.len() * 95 / 100;
            let (_, late, _) = times.select_nth_unstable(place);
            let late = Duration::from_micros(u64::from(*late));
            state.late = Some((late + late / 10).max(LEAST_DELAY));
        }
    }

    /// Begins a request; returns the time after which it is late, `None` if too little is known.
    fn begin(&self) -> Option<Duration> {
        let mut state = self.0.lock();
        state.requests += 1;
        state.late
    }

    /// Returns the time after which a request is late, as currently known.
    fn late(&self) -> Option<Duration> {
        self.0.lock().late
    }

    /// Returns whether one more request may be sent twice, and counts it.
    fn may_hedge(&self) -> bool {
        let mut state = self.0.lock();
        let may = state.hedges < state.requests / REQUESTS_PER_HEDGE + HEDGES_TO_BEGIN_WITH;
        state.hedges += u64::from(may);
        may
    }

    /// Number of requests, and number of requests sent twice.
    #[cfg(test)]
    fn counts(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.requests, state.hedges)
    }
}

/// Returns the answer of `first`, or of a copy made by `again` if `first` is late and may be sent again.
pub async fn race<T, E, F: Future<Output = Result<T, E>>>(
    first_bytes: &FirstBytes,
    first: F,
    mut again: impl FnMut() -> Option<F>,
) -> Result<T, E> {
    let begun = Instant::now();
    let late = first_bytes.begin();
    let mut first = pin!(first);
    if let Ok(answer) = tokio::time::timeout(late.unwrap_or(LOOK_AGAIN), &mut first).await {
        return answer;
    }
    let mut copies = FuturesUnordered::from_iter([Either::Left(first)]);
    let mut sent = 1;
    loop {
        let mut pause = LOOK_AGAIN;
        if let Some(late) = first_bytes.late().filter(|_| sent < MOST_COPIES) {
            pause = (late * sent).saturating_sub(begun.elapsed());
            if pause.is_zero() {
                // Step 1.
                if let Some(copy) = again()
                    && first_bytes.may_hedge()
                {
                    copies.push(Either::Right(Box::pin(copy)));
                    sent += 1;
                }
                pause = late;
            }
        }
        match tokio::time::timeout(pause, copies.next()).await {
            Ok(Some(Err(error))) if copies.is_empty() => return Err(error),
            Ok(Some(Ok(answer))) => return Ok(answer),
            // If one copy fails, another may still answer; else it is time to check again.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Pending, pending, ready};

    /// An answer, or a future that never completes.
    type Answer = Either<std::future::Ready<Result<u8, ()>>, Pending<Result<u8, ()>>>;

    fn answer(value: u8) -> Answer {
        Either::Left(ready(Ok(value)))
    }

    #[test]
    fn a_late_request_is_sent_twice_and_one_in_twenty_at_most() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let known = FirstBytes::default();
            for _ in 0..KEPT {
                known.record(Duration::from_micros(10));
            }
            let mut sent_twice = 0;
            for _ in 0..100 {
                assert_eq!(race(&known, answer(1), || None).await, Ok(1));
            }
            for _ in 0..10 {
                let second = || {
                    sent_twice += 1;
                    Some(answer(2))
                };
                assert_eq!(race(&known, Either::Right(pending()), second).await, Ok(2));
            }
            assert_eq!((known.counts(), sent_twice), ((110, 10), 10));
            assert!(!known.may_hedge());
        });
    }

    #[test]
    fn a_copy_that_is_late_too_is_sent_a_third_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let known = FirstBytes::default();
            (0..KEPT).for_each(|_| known.record(Duration::ZERO));
            let mut copies = vec![answer(3), Either::Right(pending())];
            assert_eq!(race(&known, Either::Right(pending()), || copies.pop()).await, Ok(3));
            assert_eq!((known.counts(), copies.len()), ((1, 2), 0));
        });
    }

    #[test]
    fn what_is_not_known_at_first_is_looked_at_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let known = FirstBytes::default();
            let mut asked = 0;
            let mut again = || {
                asked += 1;
                // All permits are in use at its first check.
                (asked > 1).then(|| answer(2))
            };
            let first = async {
                let late = race(&known, Either::Right(pending()), &mut again);
                let answers = async { (0..KEPT).for_each(|_| known.record(Duration::ZERO)) };
                futures_util::future::join(late, answers).await.0
            };
            assert_eq!(first.await, Ok(2));
            assert_eq!((known.counts(), asked), ((1, 1), 2));
        });
    }

    #[test]
    fn the_other_answers_where_one_fails() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let known = FirstBytes::default();
            (0..KEPT).for_each(|_| known.record(Duration::ZERO));
            let slow = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<u8, ()>(1)
            };
            let slow: std::pin::Pin<Box<dyn Future<Output = Result<u8, ()>>>> = Box::pin(slow);
            assert_eq!(race(&known, slow, || Some(Box::pin(ready(Err(()))) as _)).await, Ok(1));
        });
    }
}
