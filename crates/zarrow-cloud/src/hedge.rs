//! Further copies of a request that is late, for servers of which a few answers stall.
//!
//! 1. How long the last answers of a host took is kept. A request that waits a tenth longer than 95 in 100 of them did is sent a
//!    second time, where that makes no more than one in twenty, and a few to begin with. If the copy is as late, there is a third:
//!    of 256 requests, one in fifty of which stalls, every tenth read has one whose copy stalls too.
//! 2. A request that may not be sent again yet, since nothing is known of the host or all permits are in use, looks again later.
//! 3. The first head that comes wins, and the other requests are dropped. Nobody has seen anything of them yet: a receiver is told
//!    of the winner alone.

use futures_util::StreamExt;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};
use zarrow_array::fork::Mutex;

/// Answers that are kept.
const KEPT: usize = 128;

/// Answers before which nothing is known.
const ENOUGH: usize = 20;

/// One request in so many may be sent twice.
const REQUESTS_PER_HEDGE: u64 = 20;

/// So many may be besides, so that early stalls find some.
const HEDGES_TO_BEGIN_WITH: u64 = 5;

/// Waiting less than this is no sign of anything.
const LEAST_DELAY: Duration = Duration::from_millis(5);

/// After how long a request looks again, while nothing is known of its host.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How often one request is sent at most.
const MOST_COPIES: u32 = 3;

/// How long the answers of a host take.
#[derive(Debug)]
pub struct FirstBytes(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Microseconds, the oldest of which is replaced next.
    times: Vec<u32>,
    next: usize,
    /// What 95 in 100 of them do not exceed, found now and then.
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
    /// An answer came after this time.
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

    /// A request begins: after how long it is late; `None` where too little is known.
    fn begin(&self) -> Option<Duration> {
        let mut state = self.0.lock();
        state.requests += 1;
        state.late
    }

    /// After how long a request is late, by what is known now.
    fn late(&self) -> Option<Duration> {
        self.0.lock().late
    }

    /// Whether one more may be sent twice, which is counted.
    fn may_hedge(&self) -> bool {
        let mut state = self.0.lock();
        let may = state.hedges < state.requests / REQUESTS_PER_HEDGE + HEDGES_TO_BEGIN_WITH;
        state.hedges += u64::from(may);
        may
    }

    /// How many requests began, and how many were sent twice.
    #[cfg(test)]
    fn counts(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.requests, state.hedges)
    }
}

/// The answer of `first`, or of what `again` gives where that is late and may be sent again.
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
            // Where one fails, another may still answer; else it is time to look again.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Pending, pending, ready};

    /// An answer, or none ever.
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
                // All permits are in use when it asks first.
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
