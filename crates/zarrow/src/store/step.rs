//! Interleaving points of two writers, in any processes: each is before a system call that affects other writers or
//! observes their effects. The tests run writers in every order of these points.

#[cfg(test)]
pub use super::interleaving::{pause, step};

/// Another writer may run here, before the system call `_call`.
#[cfg(not(test))]
#[inline(always)]
pub fn step(_call: &'static str) {}

/// Waits for another writer to make progress.
#[cfg(not(test))]
pub fn pause(time: std::time::Duration) {
    std::thread::sleep(time);
}
