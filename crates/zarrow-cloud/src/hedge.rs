//! Hedged requests: copies of a late request, for servers that stall on some answers.
//!
//! 1. A request is late if it takes 10 % longer than the 95th percentile of the host's recent answers. Then a second copy
//!    is sent, for at most one request in twenty, plus a few at the beginning. If the copy is late too, a third is sent:
//!    if 2 % of the requests stall, the copy stalls as well in one of ten reads of 256 requests.
//! 2. A late request that cannot be copied yet, because the host has too few answers or no free permit, checks again
//!    later.
//! 3. The first head to arrive wins, and the other copies are dropped. The receiver sees only the winner.

use futures_util::StreamExt;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};
use zarrow_array::fork::Mutex;

/// Number of answers to keep.
const KEPT: usize = 128;

/// Number of answers before the percentile is computed.
const ENOUGH: usize = 20;

/// One in this many requests may be hedged.
const REQUESTS_PER_HEDGE: u64 = 20;

/// Additional hedges, available from the start.
const HEDGES_TO_BEGIN_WITH: u64 = 5;

/// Minimum delay of a hedge: shorter waits are no sign of a stall.
const LEAST_DELAY: Duration = Duration::from_millis(5);

/// Interval of checks while a late request cannot be copied.
const CHECK_AGAIN: Duration = Duration::from_millis(50);

/// Maximum number of copies of one request, including the first.
const MOST_COPIES: u32 = 3;

/// Answer times of a host.
#[derive(Debug)]
pub struct FirstBytes(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Microseconds; a ring buffer.
    times: Vec<u32>,
    next: usize,
    /// Time after which a request is late, updated every few answers.
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
    /// Records the time of an answer.
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

    /// Counts a request; returns the time after which it is late, `None` with too few answers.
    fn begin(&self) -> Option<Duration> {
        let mut state = self.0.lock();
        state.requests += 1;
        state.late
    }

    /// Returns the current time after which a request is late.
    fn late(&self) -> Option<Duration> {
        self.0.lock().late
    }

    /// Returns whether one more request may be hedged, and counts it.
    fn may_hedge(&self) -> bool {
        let mut state = self.0.lock();
        let may = state.hedges < state.requests / REQUESTS_PER_HEDGE + HEDGES_TO_BEGIN_WITH;
        state.hedges += u64::from(may);
        may
    }

    /// Number of requests, and number of hedges.
    #[cfg(test)]
    fn counts(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.requests, state.hedges)
    }
}

/// Returns the first answer, from `first` or from a copy that `again` makes once `first` is late.
pub async fn race<T, E, F: Future<Output = Result<T, E>>>(
    first_bytes: &FirstBytes,
    first: F,
    mut again: impl FnMut() -> Option<F>,
) -> Result<T, E> {
    let begun = Instant::now();
    let late = first_bytes.begin();
    let mut first = pin!(first);
    if let Ok(answer) = tokio::time::timeout(late.unwrap_or(CHECK_AGAIN), &mut first).await {
        return answer;
    }
    let mut copies = FuturesUnordered::from_iter([Either::Left(first)]);
    let mut sent = 1;
    loop {
        let mut pause = CHECK_AGAIN;
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
            // A copy failed while another may still answer, or it is time to check again.
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
    fn at_most_one_request_in_twenty_is_hedged() {
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
    fn a_late_copy_is_sent_a_third_time() {
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
    fn a_late_request_waits_for_answers_and_for_a_permit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let known = FirstBytes::default();
            let mut requests = 0;
            let mut again = || {
                requests += 1;
                // All permits are in use at its first check.
                (requests > 1).then(|| answer(2))
            };
            let first = async {
                let late = race(&known, Either::Right(pending()), &mut again);
                let answers = async { (0..KEPT).for_each(|_| known.record(Duration::ZERO)) };
                futures_util::future::join(late, answers).await.0
            };
            assert_eq!(first.await, Ok(2));
            assert_eq!((known.counts(), requests), ((1, 1), 2));
        });
    }

    #[test]
    fn a_failed_copy_leaves_the_answer_to_the_other() {
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
