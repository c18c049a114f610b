//! A second copy of a request that is late, for servers of which a few answers stall.
//!
//! 1. How long the last answers of a host took is kept. A request that waits a tenth longer than 95 in 100 of them did is sent a
//!    second time, where that makes no more than one in twenty, and a few to begin with.
//! 2. The first head that comes wins, and the other request is dropped. Nobody has seen anything of it yet: a receiver is told of
//!    the winner alone.

use futures_util::future::{Either, select};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
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

    /// After how long a request that begins now is late; `None` where too little is known.
    fn begin(&self) -> Option<Duration> {
        let mut state = self.0.lock();
        state.requests += 1;
        state.late
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

/// The answer of `first`, or of what `second` gives where that is late and there may be a second one.
pub async fn race<T, E, F: Future<Output = Result<T, E>>>(
    first_bytes: &FirstBytes,
    first: F,
    second: impl FnOnce() -> Option<F>,
) -> Result<T, E> {
    let mut first = pin!(first);
    let Some(late) = first_bytes.begin() else { return first.await };
    if let Ok(answer) = tokio::time::timeout(late, &mut first).await {
        return answer;
    }
    if !first_bytes.may_hedge() {
        return first.await;
    }
    let Some(second) = second() else { return first.await };
    match select(first, pin!(second)).await {
        // Where one fails, the other may still answer.
        Either::Left((Err(_), other)) => other.await,
        Either::Right((Err(_), other)) => other.await,
        Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
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
