//! The bit shuffle: the first bits of all elements, then the second bits, and so on, packed into a byte per eight
//! elements.
//!
//! 1. It is a byte shuffle; each plane of bytes is then transposed to eight planes of bits. It works on a *slab* at a
//!    time: elements that fit the first-level cache. The caller provides the slab's memory.
//! 2. Groups of eight elements are transposed to eight planes of bits, one group per byte of a vector at a time. The
//!    remaining groups are transposed one by one.
//!
//! The number of elements is a multiple of eight. As with the byte shuffle, elements may be [`Borrowed`].

use super::dispatch::run;
use super::shuffle::{shuffle, unshuffle};
use super::vector::{Kernel, Vector, elements_to_planes, load_all, planes_to_elements, store_all, turn_bits};
use crate::codec::Uninit;
use crate::codec::borrowed::Borrowed;

/// Elements per slab for large elements.
const FEWEST: usize = 256;
/// Bytes per slab for small elements.
const NEAR: usize = 16 << 10;

/// Returns the number of elements of `size` bytes in a slab.
fn slab(size: usize) -> usize {
    (NEAR / size.max(1)).max(FEWEST) / FEWEST * FEWEST
}

/// Returns the bytes of memory that a slab needs.
pub fn slab_nbytes(size: usize) -> usize {
    slab(size) * size
}

/// Converts planes of bits to elements of `size` bytes, filling `destination`. `memory` has [`slab_nbytes`].
///
/// # Panics
/// If the sizes differ, or the number of elements is not a multiple of eight: bugs of the caller.
pub fn bitunshuffle(planes: &[u8], destination: &mut Uninit, size: usize, memory: &mut Uninit) {
    let (count, step) = (destination.len() / size, slab(size));
    assert!(
        planes.len() == destination.len() && destination.len() == count * size && count.is_multiple_of(8)
    );
    for (number, elements) in destination.chunks_mut(step * size).enumerate() {
        let (first, here) = (number * step / 8, elements.len() / size);
        // One-byte elements form a single plane, and transposing it gives the elements.
        let target = if size == 1 { &mut *elements } else { &mut memory[..elements.len()] };
        for (plane, bytes) in target.chunks_exact_mut(here).enumerate() {
            let bits = &planes[plane * count + first..(plane + 1) * count];
            run(FromBits { bits, stride: count / 8, bytes });
        }
        if size > 1 {
            // SAFETY: all planes were written above.
            unshuffle(unsafe { memory[..elements.len()].assume_init_ref() }, here, elements, size);
        }
    }
}

/// Converts elements of `size` bytes to planes of bits, filling `planes`. `memory` has [`slab_nbytes`].
///
/// # Panics
/// As [`bitunshuffle`].
pub fn bitshuffle(source: Borrowed<'_>, planes: &mut Uninit, size: usize, memory: &mut Uninit) {
    let (count, step) = (planes.len() / size, slab(size));
    assert!(source.nbytes() == planes.len() && planes.len() == count * size && count.is_multiple_of(8));
    for first in (0..count).step_by(step) {
        let here = step.min(count - first);
        let slab = &mut memory[..here * size];
        shuffle(source.part(first * size, here * size), slab, here, size);
        // SAFETY: the shuffle has written all planes.
        for (plane, bytes) in unsafe { slab.assume_init_ref() }.chunks_exact(here).enumerate() {
            let bits = &mut planes[plane * count + first / 8..(plane + 1) * count];
            run(ToBits { bytes, bits, stride: count / 8 });
        }
    }
}

/// Transposes eight planes of bits to bytes (step 2).
struct FromBits<'a> {
    bits: &'a [u8],
    stride: usize,
    bytes: &'a mut Uninit,
}

impl Kernel for FromBits<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let FromBits { bits, stride, bytes } = self;
        let groups = bytes.len() / 8;
        assert!(groups <= stride && bits.len() >= 7 * stride + groups);
        let whole = groups - groups % V::NBYTES;
        for (number, bytes) in bytes[..whole * 8].chunks_exact_mut(8 * V::NBYTES).enumerate() {
            // SAFETY: each plane has as many bytes as there are groups.
            let mut turned =
                unsafe { planes_to_elements::<V, 8>(bits.as_ptr().add(number * V::NBYTES), stride) };
            for vector in &mut turned {
                // SAFETY: the caller's contract.
                *vector = unsafe { vector.turn_bits() };
            }
            // SAFETY: as above.
            unsafe { store_all(turned, bytes) };
        }
        for (group, bytes) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate().skip(whole) {
            let mut eight = [0; 8];
            for (plane, byte) in eight.iter_mut().enumerate() {
                *byte = bits[plane * stride + group];
            }
            bytes.write_copy_of_slice(&turn_bits(u64::from_le_bytes(eight)).to_le_bytes());
        }
    }
}

/// Transposes bytes to eight planes of bits (step 2).
struct ToBits<'a> {
    bytes: &'a [u8],
    bits: &'a mut Uninit,
    stride: usize,
}

impl Kernel for ToBits<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let ToBits { bytes, bits, stride } = self;
        let groups = bytes.len() / 8;
        assert!(groups <= stride && bits.len() >= 7 * stride + groups);
        let whole = groups - groups % V::NBYTES;
        for first in (0..whole).step_by(V::NBYTES) {
            // SAFETY: there are eight bytes of each group, and each plane has as many bytes as there are groups.
            unsafe {
                let mut eights: [V; 8] = load_all(bytes.as_ptr().add(first * 8));
                for vector in &mut eights {
                    *vector = vector.turn_bits();
                }
                for (plane, vector) in elements_to_planes(eights).into_iter().enumerate() {
                    vector.store(bits.as_mut_ptr().add(plane * stride + first).cast());
                }
            }
        }
        for (group, eight) in bytes.as_chunks::<8>().0.iter().enumerate().skip(whole) {
            for (plane, byte) in turn_bits(u64::from_le_bytes(*eight)).to_le_bytes().into_iter().enumerate() {
                bits[plane * stride + group].write(byte);
            }
        }
    }
}
