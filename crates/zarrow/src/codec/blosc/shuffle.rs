//! The byte shuffle: the first bytes of all elements, then the second bytes, and so on, each a *plane*.
//!
//! 1. Elements are transposed a tile at a time: as many elements as a vector has bytes, and 2, 4, 8 or 16 bytes of
//!    each. Larger elements take several tiles; the last tile starts earlier and repeats some bytes.
//! 2. If the element size is not a tile width, [`shuffle`] takes wider tiles, which reach into the next element, and
//!    drops the surplus; [`unshuffle`], which must not write there, takes narrower ones.
//! 3. The elements after the last whole tile are transposed byte by byte.
//!
//! Elements to shuffle are read through their address, and the values read affect no decision: they may be [`Borrowed`] and
//! change during the shuffle.

use super::dispatch::run;
use super::vector::{
    Kernel, Vector, elements_to_planes, lanes_to_planes, load_all, planes_to_elements, store_all,
};
use crate::codec::Uninit;
use crate::codec::borrowed::Borrowed;
use std::mem::MaybeUninit;

/// The widest tile.
const WIDEST: usize = 16;
/// Bytes of tiles that are copied together: enough that the first tile has left the processor's store queue when it is
/// loaded, since that load would otherwise wait.
const TILES: usize = 4096;

/// Converts `planes`, which begin `stride` bytes apart, to elements of `size` bytes, filling `destination`.
/// `destination` consists of whole elements, without a remainder.
///
/// # Panics
/// If the planes are too short, a bug of the caller.
pub fn unshuffle(planes: &[u8], stride: usize, destination: &mut Uninit, size: usize) {
    let count = destination.len() / size.max(1);
    if size <= 1 || count == 0 {
        destination.write_copy_of_slice(&planes[..destination.len()]);
        return;
    }
    assert!(
        count <= stride && planes.len() >= (size - 1) * stride + count && destination.len() == count * size
    );
    match size {
        2..4 => run(Unshuffle::<2> { planes, stride, destination, size }),
        4..8 => run(Unshuffle::<4> { planes, stride, destination, size }),
        8..16 => run(Unshuffle::<8> { planes, stride, destination, size }),
        _ => run(Unshuffle::<WIDEST> { planes, stride, destination, size }),
    }
}

/// Writes the elements of `size` bytes of `source` to `planes`, `stride` bytes apart. `source` consists of whole
/// elements, without a remainder.
///
/// # Panics
/// If the planes are too short, a bug of the caller.
pub fn shuffle(source: Borrowed<'_>, planes: &mut Uninit, stride: usize, size: usize) {
    let count = source.nbytes() / size.max(1);
    if size <= 1 || count == 0 {
        source.copy_to(0, &mut planes[..source.nbytes()]);
        return;
    }
    assert!(
        count <= stride && planes.len() >= (size - 1) * stride + count && source.nbytes() == count * size
    );
    match size {
        2 => run(Shuffle::<2> { source, planes, stride, size }),
        3..=4 => run(Shuffle::<4> { source, planes, stride, size }),
        5..=8 => run(Shuffle::<8> { source, planes, stride, size }),
        _ => run(Shuffle::<WIDEST> { source, planes, stride, size }),
    }
}

/// Returns the offsets in an element of tiles that are `width` bytes wide (step 1).
#[inline(always)]
fn tiles(size: usize, width: usize) -> impl Iterator<Item = usize> {
    (0..size.div_ceil(width)).map(move |tile| (tile * width).min(size.saturating_sub(width)))
}

/// [`unshuffle`], with tiles that are `W` bytes wide.
struct Unshuffle<'a, const W: usize> {
    planes: &'a [u8],
    stride: usize,
    destination: &'a mut Uninit,
    size: usize,
}

impl<const W: usize> Kernel for Unshuffle<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Unshuffle { planes, stride, destination, size } = self;
        let count = destination.len() / size;
        let whole = count - count % V::NBYTES;
        let mut tile = [MaybeUninit::uninit(); TILES];
        for (number, elements) in destination[..whole * size].chunks_exact_mut(size * V::NBYTES).enumerate() {
            let first = number * V::NBYTES;
            if size == W {
                // SAFETY: `unshuffle` has seen that each plane has `count` bytes.
                unsafe {
                    store_all(planes_to_elements::<V, W>(planes.as_ptr().add(first), stride), elements)
                };
                continue;
            }
            for begin in tiles(size, W) {
                // SAFETY: as above, and `begin` and the `W - 1` planes behind it are planes.
                let turned = unsafe {
                    planes_to_elements::<V, W>(planes.as_ptr().add(begin * stride + first), stride)
                };
                // SAFETY: the caller's contract.
                unsafe { store_all(turned, &mut tile) };
                for (element, bytes) in elements.chunks_exact_mut(size).zip(tile.as_chunks::<W>().0) {
                    element[begin..begin + W].copy_from_slice(bytes);
                }
            }
        }
        for (number, element) in destination.chunks_exact_mut(size).enumerate().skip(whole) {
            for (at, byte) in element.iter_mut().enumerate() {
                byte.write(planes[at * stride + number]);
            }
        }
    }
}

/// Writes the first `count` vectors, `stride` bytes apart from the start of `planes` on.
///
/// A function and not a closure: a closure is not always inlined, and then it is compiled without the vector
/// instructions.
///
/// # Safety
/// The planes have room for them, and the processor the vectors' instructions.
#[inline(always)]
unsafe fn store_planes<V: Vector, const W: usize>(
    vectors: [V; W],
    planes: &mut Uninit,
    stride: usize,
    count: usize,
) {
    for (at, vector) in vectors.into_iter().enumerate() {
        if at < count {
            // SAFETY: the caller's contract.
            unsafe { vector.store(planes.as_mut_ptr().add(at * stride).cast()) };
        }
    }
}

/// [`shuffle`], with tiles that are `W` bytes wide.
struct Shuffle<'a, const W: usize> {
    source: Borrowed<'a>,
    planes: &'a mut Uninit,
    stride: usize,
    size: usize,
}

impl<const W: usize> Kernel for Shuffle<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Shuffle { source, planes, stride, size } = self;
        let count = source.nbytes() / size;
        // A tile wider than its element reaches into the next element, which must also be in the source.
        let inside = count - (W.saturating_sub(size)).div_ceil(size).min(count);
        let whole = inside - inside % V::NBYTES;
        let element = |number: usize, begin: usize| source.pointer().wrapping_add(number * size + begin);
        if size == W {
            for first in (0..whole).step_by(V::NBYTES) {
                // SAFETY: a vector of elements begins at `first`, and `shuffle` checked that each plane has `count`
                // bytes.
                unsafe {
                    let turned = elements_to_planes::<V, W>(load_all(element(first, 0)));
                    store_planes(turned, &mut planes[first..], stride, size);
                }
            }
        } else if W == WIDEST {
            for first in (0..whole).step_by(V::NBYTES) {
                for begin in tiles(size, W) {
                    // SAFETY: as above; each tile, a separate lane, is inside the source.
                    unsafe {
                        let mut lanes = [V::load_lanes(element(first, begin), W * size); W];
                        for (at, vector) in lanes.iter_mut().enumerate().skip(1) {
                            *vector = V::load_lanes(element(first + at, begin), W * size);
                        }
                        let planes = &mut planes[begin * stride + first..];
                        store_planes(lanes_to_planes(lanes), planes, stride, size);
                    }
                }
            }
        } else {
            let mut tile = [MaybeUninit::<u8>::uninit(); TILES];
            for start in (0..whole).step_by(TILES / W) {
                let some = (TILES / W).min(whole - start);
                for (at, bytes) in tile[..some * W].as_chunks_mut::<W>().0.iter_mut().enumerate() {
                    // SAFETY: the tile is inside the source.
                    unsafe { element(start + at, 0).copy_to_nonoverlapping(bytes.as_mut_ptr().cast(), W) };
                }
                for first in (0..some).step_by(V::NBYTES) {
                    // SAFETY: the bytes were copied above; each plane has `count` bytes.
                    unsafe {
                        let turned =
                            elements_to_planes::<V, W>(load_all(tile.as_ptr().add(first * W).cast()));
                        store_planes(turned, &mut planes[start + first..], stride, size);
                    }
                }
            }
        }
        for number in whole..count {
            for at in 0..size {
                // SAFETY: the byte is inside the source.
                planes[at * stride + number].write(unsafe { element(number, at).read() });
            }
        }
    }
}
