//! Vectors of bytes, as wide as the processor has them, and the two turns that all shuffles are made of.
//!
//! 1. A table of `W` planes by as many elements as a vector has bytes is turned by *zips*: the bytes of the first half of
//!    all vectors between those of the second half. Numbered through, byte by byte, a zip rotates the bits of each byte's
//!    number by one. So log2(`W`) zips make elements of planes ([`planes_to_elements`]), and four zips, as many as number
//!    the bytes of a lane, make planes of elements ([`elements_to_planes`]).
//! 2. Eight bytes are a table of eight by eight bits. It is turned by exchanging single bits, then squares of two by two,
//!    then squares of four by four ([`turn_bits`]).
//! 3. A kernel is written once, for any [`Vector`]. [`run`] compiles it for each and calls the widest that the processor
//!    has.

#[cfg(target_arch = "x86_64")]
use super::x86;
use std::mem::MaybeUninit;

/// The bytes of a lane: vectors are zipped lane by lane.
pub const LANE: usize = 16;

/// A vector of one or two lanes.
///
/// # Safety
/// Every function needs a processor with the vector's instructions.
pub unsafe trait Vector: Copy {
    /// Bytes of it.
    const NBYTES: usize;

    /// The bytes from `source` on.
    ///
    /// # Safety
    /// There are so many.
    unsafe fn load(source: *const u8) -> Self;

    /// A lane from `source` on, and where there are two, another from `second` bytes behind it.
    ///
    /// # Safety
    /// There are so many bytes.
    unsafe fn load_lanes(source: *const u8, second: usize) -> Self;

    /// Writes the bytes to `destination`.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn store(self, destination: *mut u8);

    /// The bytes of both by turns, in each lane: those of the first halves, and those of the second ones.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn zip(self, other: Self) -> (Self, Self);

    /// The first lanes of both, and the second ones; of vectors of one lane, both as they are.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn exchange_lanes(self, other: Self) -> (Self, Self);

    /// Turns the bits of each eight bytes (step 2).
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn turn_bits(self) -> Self;
}

/// Work that is done a vector at a time.
pub trait Kernel {
    /// Does it.
    ///
    /// # Safety
    /// The processor has the vector's instructions.
    unsafe fn run<V: Vector>(self);
}

/// Runs a kernel by the widest vectors of this processor (step 3).
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

/// Runs a kernel by vectors that the compiler makes of arrays (step 3).
#[cfg(not(target_arch = "x86_64"))]
pub fn run(kernel: impl Kernel) {
    // SAFETY: arrays need no instructions of their own.
    unsafe { kernel.run::<[u8; LANE]>() }
}

/// One zip of `W` vectors (step 1).
#[inline(always)]
unsafe fn zipped<V: Vector, const W: usize>(vectors: [V; W]) -> [V; W] {
    let mut next = vectors;
    for at in 0..W / 2 {
        // SAFETY: the caller's contract.
        (next[2 * at], next[2 * at + 1]) = unsafe { vectors[at].zip(vectors[at + W / 2]) };
    }
    next
}

/// Elements of `W` bytes, as many as a vector has bytes, of the bytes from `planes` on, each plane `stride` bytes behind
/// the one before: in vectors that lie one behind the other.
///
/// # Safety
/// Each plane has as many bytes as a vector, and the processor its instructions.
#[inline(always)]
pub unsafe fn planes_to_elements<V: Vector, const W: usize>(planes: *const u8, stride: usize) -> [V; W] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut vectors = [V::load(planes); W];
        for (plane, vector) in vectors.iter_mut().enumerate().skip(1) {
            *vector = V::load(planes.add(plane * stride));
        }
        for _ in 0..W.ilog2() {
            vectors = zipped(vectors);
        }
        if V::NBYTES == LANE {
            return vectors;
        }
        let mut elements = vectors;
        for at in 0..W / 2 {
            (elements[at], elements[at + W / 2]) = vectors[2 * at].exchange_lanes(vectors[2 * at + 1]);
        }
        elements
    }
}

/// The vectors that lie one behind the other from `source` on.
///
/// # Safety
/// They do, and the processor has their instructions.
#[inline(always)]
pub unsafe fn load_all<V: Vector, const W: usize>(source: *const u8) -> [V; W] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut vectors = [V::load(source); W];
        for (at, vector) in vectors.iter_mut().enumerate().skip(1) {
            *vector = V::load(source.add(at * V::NBYTES));
        }
        vectors
    }
}

/// The planes of elements of `W` bytes, which lie one behind the other in the vectors: a vector for each plane.
///
/// # Safety
/// The processor has the vectors' instructions.
#[inline(always)]
pub unsafe fn elements_to_planes<V: Vector, const W: usize>(elements: [V; W]) -> [V; W] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut vectors = elements;
        if V::NBYTES != LANE {
            for at in 0..W / 2 {
                (vectors[2 * at], vectors[2 * at + 1]) = elements[at].exchange_lanes(elements[at + W / 2]);
            }
        }
        lanes_to_planes(vectors)
    }
}

/// As [`elements_to_planes`], of elements whose first halves lie in all first lanes, and the others in the second ones.
///
/// # Safety
/// As there.
#[inline(always)]
pub unsafe fn lanes_to_planes<V: Vector, const W: usize>(elements: [V; W]) -> [V; W] {
    let mut vectors = elements;
    for _ in 0..LANE.ilog2() {
        // SAFETY: the caller's contract.
        vectors = unsafe { zipped(vectors) };
    }
    vectors
}

/// The bits of eight bytes, bit `k` of byte `i` as bit `i` of byte `k` (step 2).
#[inline(always)]
pub fn turn_bits(bytes: u64) -> u64 {
    TURNS.iter().fold(bytes, |bytes, (distance, mask)| {
        let changed = (bytes ^ (bytes >> distance)) & mask;
        bytes ^ changed ^ (changed << distance)
    })
}

/// How far apart the bits are that a turn exchanges, and the lower ones of them.
pub const TURNS: [(u32, u64); 3] =
    [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)];

/// Writes vectors one behind the other to the start of `destination`.
///
/// # Safety
/// The processor has the vector's instructions.
#[inline(always)]
pub unsafe fn store_all<V: Vector, const W: usize>(vectors: [V; W], destination: &mut [MaybeUninit<u8>]) {
    let destination = &mut destination[..W * V::NBYTES];
    for (vector, place) in vectors.into_iter().zip(destination.chunks_exact_mut(V::NBYTES)) {
        // SAFETY: the place is as long as a vector.
        unsafe { vector.store(place.as_mut_ptr().cast()) };
    }
}

#[cfg(test)]
pub mod tests {
    thread_local! {
        /// 1 for SSE2, 2 for arrays, where the tests of this thread want other vectors than the widest.
        pub static NARROWER: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
    }
}
