//! The points of a writer's work between which another writer, in any process, may run: each is before a system call
//! whose effect others see, or that sees the effect of others. The tests run writers in every order of these.

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
