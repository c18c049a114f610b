//! Counts round trips: each answer waits until the client sends no more requests.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The client is taken to wait for all answers once it has sent nothing for this long.
const QUIET: Duration = Duration::from_millis(400);

#[derive(Debug, Default)]
pub struct Rounds {
    state: Mutex<State>,
    next: Condvar,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    count: usize,
}

impl Rounds {
    /// Waits for the end of the round trip.
    pub fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        let (own, now) = (state.count, Instant::now());
        state.last = Some(now);
        while state.count == own {
            let rest = QUIET.saturating_sub(state.last.map_or(QUIET, |last| last.elapsed()));
            if rest.is_zero() {
                state.count += 1;
                self.next.notify_all();
                return;
            }
            state = self.next.wait_timeout(state, rest).unwrap().0;
        }
    }

    /// Returns the number of round trips.
    pub fn count(&self) -> usize {
        self.state.lock().unwrap().count
    }
}
