//! Stores in the cloud, on a test server on the loopback interface with programmed faults.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests fail like tests"
)]
#![allow(
    clippy::disallowed_types,
    reason = "the test server has its own threads, and no test forks while they run"
)]

mod arrays;
mod campaign;
mod causes;
mod failed_changes;
mod faults;
mod fork;
mod listing;
mod message;
mod node_batches;
mod nodes;
mod objects;
mod opening;
mod policy;
mod reading;
mod round_trips;
mod rounds;
mod secrets;
mod server;
mod staged_writing;
mod writing;
