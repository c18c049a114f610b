//! The server's behaviour (its latency, its faults), and its counts of requests.
//!
//! The seed and the number of earlier requests determine which request stalls, so that each reader meets the same number.
//! Metadata never stall, because the benchmarks measure the read.
#![allow(clippy::disallowed_types, reason = "a program that does not fork")]

use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Duration of a dead connection's silence: longer than any reader waits.
const DEAD: Duration = Duration::from_secs(120);

#[derive(Debug, Default, Clone)]
struct Settings {
    delay: Duration,
    stalls: f64,
    stall: Duration,
    seed: u64,
    /// Number of the request that is never answered.
    dead: Option<u64>,
    /// Requests for elements since the last configuration.
    count: u64,
}

/// The server's behaviour.
#[derive(Debug, Default)]
pub struct Manner(Mutex<Settings>);

impl Manner {
    /// Applies a new configuration.
    pub fn set(&self, order: &Value) {
        let number = |name: &str| order[name].as_u64().unwrap_or(0);
        let milliseconds = |name: &str| Duration::from_millis(number(name));
        let (delay, stall) = (milliseconds("delay_ms"), milliseconds("stall_ms"));
        let (stalls, seed) = (order["stalls"].as_f64().unwrap_or(0.0), number("seed"));
        let settings = Settings { delay, stalls, stall, seed, dead: order["dead"].as_u64(), count: 0 };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Waits for the delay of an answer.
    pub fn wait(&self, is_metadata: bool) {
        let mut time = {
            let mut settings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let mut time = settings.delay;
            if !is_metadata {
                let count = settings.count;
                settings.count += 1;
                if settings.dead == Some(count) {
                    time += DEAD;
                }
                let mut hasher = DefaultHasher::new();
                (settings.seed, count).hash(&mut hasher);
                if (hasher.finish() >> 11) as f64 / ((1_u64 << 53) as f64) < settings.stalls {
                    time += settings.stall;
                }
            }
            time
        };
        if !time.is_zero() {
            std::thread::sleep(std::mem::take(&mut time));
        }
    }
}

/// Counts of the server.
#[derive(Debug, Default)]
pub struct Seen {
    requests: AtomicU64,
    connections: AtomicU64,
    sent: AtomicU64,
    in_flight: AtomicU64,
    most: AtomicU64,
}

impl Seen {
    /// Counts a connection.
    pub fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request.
    pub fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(in_flight, Ordering::Relaxed);
    }

    /// Counts an answer with this many bytes.
    pub fn end(&self, sent: u64) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.sent.fetch_add(sent, Ordering::Relaxed);
    }

    /// Returns the counts since the last call.
    pub fn take(&self) -> Value {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        json!({
            "requests": take(&self.requests),
            "connections": take(&self.connections),
            "sent": take(&self.sent),
            "most": take(&self.most),
        })
    }
}
