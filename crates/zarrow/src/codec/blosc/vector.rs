//! Vectors of bytes, as wide as the processor's, and the two transpositions that make up all shuffles.
//!
//! 1. A table of `W` planes by as many elements as a vector has bytes is transposed by *zips*: the bytes of the first
//!    half of all vectors are interleaved with the bytes of the second half. With all bytes numbered in order, a zip
//!    rotates the bits of each byte's number by one. So log2(`W`) zips turn planes into elements
//!    ([`planes_to_elements`]), and four zips, the number of bits in a byte's number within a lane, turn elements into
//!    planes ([`elements_to_planes`]).
//! 2. Eight bytes are a table of eight by eight bits. It is transposed by exchanging single bits, then squares of two
//!    by two, then squares of four by four ([`turn_bits`]).
//! 3. A kernel is written once, for any [`Vector`]. [`run`](super::dispatch::run) compiles it for each vector and calls the widest that the
//!    processor supports.

use crate::codec::Uninit;

/// Bytes of a lane: vectors are zipped lane by lane.
pub const LANE: usize = 16;

/// A vector of one or two lanes.
///
/// # Safety
/// Every function needs a processor with the vector's instructions.
pub unsafe trait Vector: Copy {
    /// Bytes of a vector.
    const NBYTES: usize;

    /// Loads the bytes from `source` on.
    ///
    /// # Safety
    /// A whole vector is readable from `source` on.
    unsafe fn load(source: *const u8) -> Self;

    /// Loads a lane from `source` on and, for two lanes, another from `second` bytes after it.
    ///
    /// # Safety
    /// All bytes of each lane are readable.
    unsafe fn load_lanes(source: *const u8, second: usize) -> Self;

    /// Writes the bytes to `destination`.
    ///
    /// # Safety
    /// There is space for them.
    unsafe fn store(self, destination: *mut u8);

    /// Interleaves the bytes of both vectors in each lane: returns the result of the first halves, then of the second
    /// halves.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn zip(self, other: Self) -> (Self, Self);

    /// Returns the first lanes of both vectors, then the second lanes; vectors of one lane are returned unchanged.
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn exchange_lanes(self, other: Self) -> (Self, Self);

    /// Transposes the bits of each eight bytes (step 2).
    ///
    /// # Safety
    /// As for the trait.
    unsafe fn turn_bits(self) -> Self;
}

/// Work done one vector at a time.
pub trait Kernel {
    /// Runs the kernel.
    ///
    /// # Safety
    /// The processor has the vector's instructions.
    unsafe fn run<V: Vector>(self);
}

/// Zips `W` vectors once (step 1).
#[inline(always)]
unsafe fn zipped<V: Vector, const W: usize>(vectors: [V; W]) -> [V; W] {
    let mut next = vectors;
    for at in 0..W / 2 {
        // SAFETY: the caller's contract.
        (next[2 * at], next[2 * at + 1]) = unsafe { vectors[at].zip(vectors[at + W / 2]) };
    }
    next
}

/// Transposes the bytes from `planes` on, each plane `stride` bytes after the previous one, to as many elements of `W`
/// bytes as a vector has bytes. The elements are consecutive in the vectors.
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

/// Loads consecutive vectors from `source` on.
///
/// # Safety
/// All vectors are readable from `source` on, and the processor has their instructions.
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

/// Transposes elements of `W` bytes, consecutive in the vectors, to planes: one vector per plane.
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

/// As [`elements_to_planes`], with the first half of the elements in all first lanes and the second half in all second
/// lanes.
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

/// Transposes the bits of eight bytes: bit `k` of byte `i` becomes bit `i` of byte `k` (step 2).
#[inline(always)]
pub fn turn_bits(bytes: u64) -> u64 {
    TURNS.iter().fold(bytes, |bytes, (distance, mask)| {
        let changed = (bytes ^ (bytes >> distance)) & mask;
        bytes ^ changed ^ (changed << distance)
    })
}

/// Distance of the bits that a step exchanges, and a mask of the lower ones.
pub const TURNS: [(u32, u64); 3] =
    [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)];

/// Writes consecutive vectors to the start of `destination`.
///
/// # Safety
/// The processor has the vector's instructions.
#[inline(always)]
pub unsafe fn store_all<V: Vector, const W: usize>(vectors: [V; W], destination: &mut Uninit) {
    let destination = &mut destination[..W * V::NBYTES];
    for (vector, place) in vectors.into_iter().zip(destination.chunks_exact_mut(V::NBYTES)) {
        // SAFETY: the destination is as long as a vector.
        unsafe { vector.store(place.as_mut_ptr().cast()) };
    }
}
