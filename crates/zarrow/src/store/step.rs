//! The points of a writer's work between which another writer, in any process, may come: each is before a system call that
//! others see the effect of, or that sees the effect of others'. The tests put writers in every order there is of these.

#[cfg(test)]
pub use super::interleaving::{pause, step};

/// Another may come here; `_call` says before which call.
#[cfg(not(test))]
#[inline(always)]
pub fn step(_call: &'static str) {}

/// Waits for another to get on.
#[cfg(not(test))]
pub fn pause(time: std::time::Duration) {
    std::thread::sleep(time);
}
