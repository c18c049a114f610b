//! The limit of bytes in flight for one read or one write of a remote store.
//!
//! It is constant. The number of requests to a host adapts: `zarrow_cloud`'s `request_limit`.

/// Maximum size of the values in flight for one call, unless a single value is larger.
pub(crate) const IN_FLIGHT_NBYTES: u64 = 192 << 20;
