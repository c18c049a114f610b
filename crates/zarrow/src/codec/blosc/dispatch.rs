//! The choice of vectors: the widest that this processor supports.

use super::vector::Kernel;
#[cfg(any(test, not(target_arch = "x86_64")))]
use super::vector::LANE;
#[cfg(target_arch = "x86_64")]
use super::x86;

/// Runs a kernel with this processor's widest vectors.
#[cfg(target_arch = "x86_64")]
pub fn run(kernel: impl Kernel) {
    #[target_feature(enable = "avx2")]
    fn by_avx2(kernel: impl Kernel) {
        // SAFETY: the caller has seen that the processor has AVX2.
        unsafe { kernel.run::<x86::Avx2>() }
    }
    #[cfg(test)]
    match tests::NARROWER.get() {
        // SAFETY: every processor of this architecture has SSE2, and arrays need nothing.
        1 => return unsafe { kernel.run::<x86::Sse2>() },
        // SAFETY: as above.
        2 => return unsafe { kernel.run::<[u8; LANE]>() },
        _ => {}
    }
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: it has.
        unsafe { by_avx2(kernel) }
    } else {
        // SAFETY: every processor of this architecture has SSE2.
        unsafe { kernel.run::<x86::Sse2>() }
    }
}

/// Runs a kernel with vectors that the compiler builds from arrays.
#[cfg(not(target_arch = "x86_64"))]
pub fn run(kernel: impl Kernel) {
    // SAFETY: arrays need no special instructions.
    unsafe { kernel.run::<[u8; LANE]>() }
}

#[cfg(test)]
pub mod tests {
    thread_local! {
        /// 1 for SSE2, 2 for arrays: set if tests on this thread want vectors other than the widest.
        pub static NARROWER: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
    }
}
