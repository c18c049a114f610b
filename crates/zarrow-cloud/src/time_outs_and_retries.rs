//! Time-outs, and numbers of retries. `transport` applies the time-outs; `retry` decides which requests are tried
//! again.

use std::time::Duration;

/// Time-outs and retries of a store's requests.
///
/// A request has no total time-out: it fails only if the server is silent, or slower than `low_speed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TransportPolicy {
    /// Time limit for making a connection, including its TLS handshake.
    pub connect: Duration,
    /// Maximum silence of a server: before the head of an answer to a read, and between two frames of a body.
    pub silence: Duration,
    /// Maximum number of retries of a request after faults, over all of its parts.
    pub retries: u32,
    /// Maximum number of further retries after requests of the server for a pause.
    pub throttled_retries: u32,
    /// The pause before a retry; each further one is twice as long, and up to half of each is random.
    pub first_pause: Duration,
    /// Maximum pause before a retry. Pauses requested by a server are limited by `max_retry_after` instead.
    pub longest_pause: Duration,
    /// Maximum sum of the pauses that a server may request for one request (`Retry-After`); more is an error at once.
    pub max_retry_after: Duration,
    /// Minimum bytes per second of a body, over `low_speed_time`; 0 for no limit.
    pub low_speed: u64,
    /// Maximum time for which a body may be slower than `low_speed`.
    pub low_speed_time: Duration,
    /// Maximum number of names in one list.
    pub listed_names: u64,
    /// Whether a late read is sent again, at most twice.
    pub hedging: bool,
}

impl Default for TransportPolicy {
    /// Suitable for an object store anywhere in the world.
    fn default() -> TransportPolicy {
        TransportPolicy {
            connect: Duration::from_secs(5),
            silence: Duration::from_secs(5),
            retries: 5,
            throttled_retries: 10,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            max_retry_after: Duration::from_secs(60),
            low_speed: 1 << 10,
            low_speed_time: Duration::from_secs(30),
            listed_names: 10_000_000,
            hedging: true,
        }
    }
}

impl TransportPolicy {
    /// Returns the time limit for the start of the answer to a request that sends `sent_nbytes` bytes.
    pub(crate) fn patience(&self, is_read: bool, sent_nbytes: u64) -> Duration {
        /// A server may think longer about a change than about a read.
        const CHANGE_FACTOR: u32 = 12;
        /// The slowest upload to wait for.
        const SLOWEST_NBYTES_PER_SECOND: u64 = 64 << 10;
        let own = if is_read { self.silence } else { self.silence.saturating_mul(CHANGE_FACTOR) };
        own.saturating_add(Duration::from_secs(sent_nbytes / SLOWEST_NBYTES_PER_SECOND))
    }
}
