//! Which failed requests are tried again, how often and when.
//!
//! 1. One count covers all work for one request of the engine: failed connections, answers that ask to come again,
//!    interrupted bodies. So retries of one kind never multiply with retries of another.
//! 2. After the first fault of a connection the next try is immediate, since a new connection may work; then each pause
//!    is twice the previous one, up to half at random, so that many readers do not come back together.
//! 3. Requests for a pause are counted apart from faults. Each pause is as long as the server asks, up to a bound for
//!    their sum.
//! 4. A body that was too slow is requested once more: another connection may be faster.

use crate::failure::Failure;
use crate::http_date::seconds_of_date;
use crate::time_outs_and_retries::TransportPolicy;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use zarrow_array::fork::Mutex;

/// The count of one request.
#[derive(Debug)]
pub struct Attempts {
    policy: TransportPolicy,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: u32,
    throttles: u32,
    slow: u32,
    /// Sum of the pauses requested by the server.
    requested_pauses: Duration,
    /// Whether a request was sent and its outcome is unknown.
    uncertain: bool,
    /// Whether the client has sent a request.
    sent: bool,
    /// Sent changes that the server may have received, without an answer so far.
    unanswered: usize,
    /// Whether the caller stopped waiting.
    abandoned: bool,
    failure: Option<Failure>,
}

/// A fault after which a request may be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection failed, or was silent.
    Connection,
    /// The body of an answer was too slow.
    Slow,
    /// The server failed, or its answer is invalid.
    Server,
    /// The server requests a pause, of this length if given.
    Throttled(Option<Duration>),
}

impl Attempts {
    pub fn new(policy: TransportPolicy) -> Attempts {
        Attempts { policy, state: Mutex::new(State::default()) }
    }

    /// Records a fault; returns the pause before the next try, `None` after the last one.
    pub fn again(&self, fault: Fault, failure: Failure) -> Option<Duration> {
        let TransportPolicy {
            retries, throttled_retries, first_pause, longest_pause, max_retry_after, ..
        } = self.policy;
        let mut state = self.state.lock();
        state.uncertain |= !failure.is_refusal();
        state.failure = Some(failure);
        if state.abandoned {
            return None;
        }
        let pause = |doublings: u32| {
            let pause = first_pause.saturating_mul(1 << doublings.min(16)).min(longest_pause);
            pause.mul_f64(1.0 - chance() / 2.0)
        };
        match fault {
            Fault::Throttled(requested) => {
                state.throttles += 1;
                let pause = pause(state.throttles - 1).max(requested.unwrap_or_default());
                state.requested_pauses = state.requested_pauses.saturating_add(requested.unwrap_or_default());
                let is_too_long = state.requested_pauses > max_retry_after;
                if let (true, Some(requested), Some(failure)) = (is_too_long, requested, &mut state.failure) {
                    failure.pause_too_long(requested, max_retry_after);
                }
                (state.throttles <= throttled_retries && !is_too_long).then_some(pause)
            }
            Fault::Slow => {
                state.slow += 1;
                (state.slow <= retries.min(1)).then_some(Duration::ZERO)
            }
            Fault::Connection | Fault::Server => {
                state.faults += 1;
                let at_once = fault == Fault::Connection && state.faults == 1;
                let pause = if at_once { Duration::ZERO } else { pause(state.faults - 1) };
                (state.faults <= retries).then_some(pause)
            }
        }
    }

    /// Records a failure that is not retried.
    pub fn fail(&self, failure: Failure) {
        self.state.lock().failure = Some(failure);
    }

    /// Takes the last failure.
    pub fn take_failure(&self) -> Option<Failure> {
        self.state.lock().failure.take()
    }

    /// Records that a request was sent.
    pub fn send(&self) {
        self.state.lock().sent = true;
    }

    /// Returns whether a request was sent since the last call. If not, the client found no credentials to sign it with.
    pub fn take_sent(&self) -> bool {
        std::mem::take(&mut self.state.lock().sent)
    }

    /// Records that a change is about to be sent. Returns whether it may be sent: not if the caller has stopped
    /// waiting.
    pub fn begin_change(&self) -> bool {
        let mut state = self.state.lock();
        if state.abandoned {
            return false;
        }
        state.unanswered += 1;
        true
    }

    /// Records that a change was answered, or can no longer be answered.
    pub fn end_change(&self) {
        self.state.lock().unanswered -= 1;
    }

    /// Records that the caller stopped waiting. Returns whether a change is unanswered.
    pub fn abandon(&self) -> bool {
        let mut state = self.state.lock();
        state.abandoned = true;
        state.unanswered > 0
    }

    /// Returns the factor for the next try's time limit. The limit grows with each try, so that a slow server answers
    /// one of them.
    pub fn patience(&self) -> u32 {
        1 << self.state.lock().faults.min(2)
    }

    /// Returns whether an earlier try may have made the change that a later try attributes to another writer.
    pub fn is_uncertain(&self) -> bool {
        self.state.lock().uncertain
    }
}

/// Returns a random number from 0 to 1.
fn chance() -> f64 {
    f64::from((RandomState::new().hash_one(0_u8) >> 32) as u32) / f64::from(u32::MAX)
}

/// Returns the pause of a `Retry-After` header: seconds, or a date to compare with the server's `now`.
pub fn retry_after(text: &str, now: u64) -> Option<Duration> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let seconds = if is_number {
        Some(text.parse().unwrap_or(u64::MAX))
    } else {
        Some(seconds_of_date(text)?.saturating_sub(now))
    };
    seconds.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secrets;

    fn failure() -> Failure {
        Failure::new(std::io::ErrorKind::Other, "fault")
    }

    #[test]
    fn retries_end_and_pauses_grow() {
        let policy = TransportPolicy::default();
        let attempts = Attempts::new(policy);
        assert_eq!(attempts.again(Fault::Connection, failure()), Some(Duration::ZERO));
        let pauses: Vec<_> = std::iter::from_fn(|| attempts.again(Fault::Connection, failure())).collect();
        assert_eq!(pauses.len() as u32, policy.retries - 1);
        for (doublings, pause) in (1..).zip(&pauses) {
            let longest = policy.first_pause * (1 << doublings);
            assert!((longest / 2..=longest).contains(pause), "{pauses:?}");
        }
        assert!(attempts.is_uncertain() && attempts.take_failure().is_some());
    }

    #[test]
    fn a_server_gets_the_pause_that_it_asks_for() {
        let attempts = Attempts::new(TransportPolicy::default());
        let requested = Duration::from_secs(3);
        let busy = || Failure::from_status(429, "");
        assert_eq!(attempts.again(Fault::Throttled(Some(requested)), busy()), Some(requested));
        assert!(!attempts.is_uncertain());
        // A proxy may also answer this, although its server may have applied the request.
        attempts.again(Fault::Throttled(None), Failure::from_status(503, ""));
        assert!(attempts.is_uncertain());
        // If the pauses exceed their limit, the request fails, and the error says so.
        let rest = TransportPolicy::default().max_retry_after - requested;
        assert_eq!(attempts.again(Fault::Throttled(Some(rest)), failure()), Some(rest));
        assert_eq!(attempts.again(Fault::Throttled(Some(Duration::from_secs(1))), failure()), None);
        let text = attempts.take_failure().unwrap().shown(&Secrets::default());
        assert_eq!(text, "fault: the requested pause of 1 s exceeds max_retry_after, 60 s in total");
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        let now = seconds_of_date(date).unwrap();
        assert_eq!(retry_after(" 7 ", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(date, now - 9), Some(Duration::from_secs(9)));
        assert_eq!(retry_after(date, now + 9), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
        assert_eq!(retry_after(&"9".repeat(30), now), Some(Duration::from_secs(u64::MAX)));
    }

    #[test]
    fn a_slow_body_is_asked_for_once_more() {
        let attempts = Attempts::new(TransportPolicy::default());
        assert_eq!(attempts.again(Fault::Slow, failure()), Some(Duration::ZERO));
        assert_eq!(attempts.again(Fault::Slow, failure()), None);
    }
}
