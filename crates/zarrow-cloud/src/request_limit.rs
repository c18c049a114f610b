//! Limits the concurrent requests to a host, from all stores of a process.
//!
//! 1. The limit starts at 64. While all permits are in use, each answer adds one, so that the limit doubles in each
//!    round trip, up to 256. A fast answer adds none: for a near host, more connections only cost time.
//! 2. A request for a pause halves the limit, at most once a second: a burst of such answers counts once. A connection
//!    that fails leaves the limit unchanged. After either, the limit grows by one in each round trip.
//! 3. Requests that are in flight when the limit falls continue: their permits are discarded when they end.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zarrow_array::fork::Mutex;

const START: usize = 64;
const LEAST: usize = 2;
const MOST: usize = 256;

/// An answer within this time adds no permit.
const SOON: Duration = Duration::from_millis(8);

/// Minimum time between two reductions of the limit.
const CUT_PAUSE: Duration = Duration::from_secs(1);

/// Permits for requests to one host.
#[derive(Debug, Clone)]
pub struct RequestLimit(Arc<Limit>);

#[derive(Debug)]
struct Limit {
    permits: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: usize,
    /// Permits in use that will be discarded at their end.
    debt: usize,
    /// Answers since the limit last changed.
    answered: usize,
    /// Whether no pause and no failure has occurred yet (step 1).
    doubles: bool,
    last_cut: Option<Instant>,
}

/// The right to have one request in flight, held until drop.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Limit>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Default for RequestLimit {
    fn default() -> RequestLimit {
        let state = State { limit: START, debt: 0, answered: 0, doubles: true, last_cut: None };
        RequestLimit(Arc::new(Limit { permits: Arc::new(Semaphore::new(START)), state: Mutex::new(state) }))
    }
}

impl RequestLimit {
    /// Waits for a permit. Callers get permits in the order of their calls.
    pub async fn acquire(&self) -> Permit {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.ok();
        Permit { shared: Arc::clone(&self.0), permit }
    }

    /// Returns a permit if one is free.
    pub fn try_acquire(&self) -> Option<Permit> {
        let permit = Arc::clone(&self.0.permits).try_acquire_owned().ok()?;
        Some(Permit { shared: Arc::clone(&self.0), permit: Some(permit) })
    }

    /// Records a failed connection to the host (step 2).
    pub fn failed(&self) {
        self.0.state.lock().doubles = false;
    }

    /// Records the host's request for a pause (step 2).
    pub fn throttled(&self, now: Instant) {
        let mut state = self.0.state.lock();
        state.doubles = false;
        if state.last_cut.is_some_and(|last| now.saturating_duration_since(last) < CUT_PAUSE) {
            return;
        }
        let limit = (state.limit / 2).max(LEAST);
        let gone = state.limit - limit;
        let free = self.0.permits.forget_permits(gone);
        state.debt += gone - free;
        (state.limit, state.answered, state.last_cut) = (limit, 0, Some(now));
    }

    /// Records an answer of the host that took `time` (steps 1 and 2).
    pub fn answered(&self, after: Duration) {
        if after < SOON || self.0.permits.available_permits() > 0 {
            return;
        }
        let mut state = self.0.state.lock();
        state.answered += 1;
        if !state.doubles && state.answered < state.limit || state.limit >= MOST {
            return;
        }
        (state.limit, state.answered) = (state.limit + 1, 0);
        if state.debt > 0 {
            state.debt -= 1;
        } else {
            self.0.permits.add_permits(1);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        // Step 3.
        if state.debt > 0
            && let Some(permit) = self.permit.take()
        {
            state.debt -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(limit: &RequestLimit) -> Vec<Permit> {
        std::iter::from_fn(|| limit.try_acquire()).collect()
    }

    #[test]
    fn it_doubles_until_a_connection_fails() {
        let limit = RequestLimit::default();
        let mut held = take_all(&limit);
        for _ in 0..START {
            limit.answered(SOON / 2);
            limit.answered(SOON);
            held.extend(take_all(&limit));
        }
        assert_eq!(held.len(), 2 * START);
        limit.failed();
        for _ in 0..2 * START {
            limit.answered(SOON);
            held.extend(take_all(&limit));
        }
        assert_eq!(held.len(), 2 * START + 1);
    }

    #[test]
    fn a_pause_halves_it_and_answers_grow_it() {
        let (limit, now) = (RequestLimit::default(), Instant::now());
        let mut held = take_all(&limit);
        assert_eq!(held.len(), START);
        limit.throttled(now);
        // A burst counts once.
        limit.throttled(now);
        held.truncate(START / 2);
        assert!(limit.try_acquire().is_none(), "permits in use were taken out of it");
        held.truncate(10);
        held.extend(take_all(&limit));
        assert_eq!(held.len(), START / 2);
        for _ in 0..START / 2 {
            limit.answered(SOON);
        }
        held.extend(take_all(&limit));
        assert_eq!(held.len(), START / 2 + 1);
        // The limit does not grow while permits are free.
        held.pop();
        for _ in 0..10 * START {
            limit.answered(SOON);
        }
        assert_eq!(take_all(&limit).len(), 1);
        for step in 1..20 {
            limit.throttled(now + CUT_PAUSE * step);
        }
        drop(held);
        assert_eq!(take_all(&limit).len(), LEAST);
    }

    #[test]
    fn it_ends_at_its_most() {
        let limit = RequestLimit::default();
        let mut held = Vec::new();
        for _ in 0..MOST {
            held.extend(take_all(&limit));
            limit.answered(SOON);
        }
        held.extend(take_all(&limit));
        assert_eq!(held.len(), MOST);
    }
}
