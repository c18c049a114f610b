//! How long to wait, and how often to try again.

use std::time::Duration;

/// Time-outs and retries of a store's requests.
///
/// No request has a total time-out: what counts is silence, and fewer bytes than `low_speed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TransportPolicy {
    /// How long a connection may take to be made, its TLS handshake included.
    pub connect: Duration,
    /// How long a server may be silent: before the head of an answer to a read, and between two frames of a body.
    pub silence: Duration,
    /// How often a request is tried again after a fault, over all of its parts.
    pub retries: u32,
    /// How often a request is tried again because its server asked for a pause, besides.
    pub throttled_retries: u32,
    /// The pause before a retry; each further one is twice as long, and up to a half of each is chance.
    pub first_pause: Duration,
    /// The longest pause before a retry. Pauses on a server's request have `longest_asked` instead.
    pub longest_pause: Duration,
    /// The longest sum of the pauses that a server asks for in one request (`Retry-After`); a longer one is an error at once.
    pub longest_asked: Duration,
    /// The fewest bytes a second that a body has to bring, over `low_speed_time`; 0 for no such limit.
    pub low_speed: u64,
    /// How long a body may stay below `low_speed`.
    pub low_speed_time: Duration,
    /// The most names in one list.
    pub listed_names: u64,
    /// Whether a read that is late is sent again, twice at most.
    pub hedging: bool,
}

impl Default for TransportPolicy {
    /// What suits an object store anywhere in the world.
    fn default() -> TransportPolicy {
        TransportPolicy {
            connect: Duration::from_secs(5),
            silence: Duration::from_secs(5),
            retries: 5,
            throttled_retries: 10,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            longest_asked: Duration::from_secs(60),
            low_speed: 1 << 10,
            low_speed_time: Duration::from_secs(30),
            listed_names: 10_000_000,
            hedging: true,
        }
    }
}

impl TransportPolicy {
    /// The time in which a server has to begin its answer to a request that sends so many bytes.
    pub(crate) fn patience(&self, is_read: bool, sent_nbytes: u64) -> Duration {
        /// A server may think longer about a change than about a read.
        const CHANGE_FACTOR: u32 = 12;
        /// The slowest upload that is waited for.
        const SLOWEST_NBYTES_PER_SECOND: u64 = 64 << 10;
        let own = if is_read { self.silence } else { self.silence.saturating_mul(CHANGE_FACTOR) };
        own.saturating_add(Duration::from_secs(sent_nbytes / SLOWEST_NBYTES_PER_SECOND))
    }
}
