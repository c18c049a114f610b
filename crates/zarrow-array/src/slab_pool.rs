//! Memory for buffers of one size that are smaller than a huge page, cut from slabs.
//!
//! The kernel provides fresh memory in pages of 4 KiB, and 64 MiB of these take seven times as long as huge pages. The
//! chunks that a cache keeps are often smaller than a huge page, and stay: their memory is always fresh.
//!
//! 1. A slab has as many bytes as all slabs before it, but at least four buffers, and at most 16 MiB unless four
//!    buffers have more. All slabs together hold at most `most` buffers.
//! 2. Buffers are cut from a slab in order. A thread that cuts one has the kernel provide its pages while it holds the
//!    lock: two threads that touch a huge page at the same time would each zero one.
//! 3. A freed buffer is handed out before a new one is cut, the newest first.
//! 4. A slab is freed after its last buffer and the pool.

use crate::alignment::HOST_ALIGNMENT;
use crate::block::Block;
use crate::fork::Mutex;
use crate::fresh_pages::FreshPages;
use crate::huge_pages::HUGE_PAGE;
use crate::recycle::Recycled;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Smaller buffers come from the allocator, which shares pages between them.
const LEAST_NBYTES: usize = 16 << 10;
const MOST_SLAB_NBYTES: usize = 16 << 20;
const FEWEST_BUFFERS: usize = 4;

/// A pool of memory for buffers of one size: see [`UninitBuffer::from_pool`](crate::UninitBuffer::from_pool).
#[derive(Debug)]
pub struct SlabPool {
    buffer_nbytes: usize,
    is_served: bool,
    slabs: Arc<Mutex<Slabs>>,
}

#[derive(Debug)]
struct Slabs {
    /// Bytes that further slabs may have.
    left: usize,
    nbytes: usize,
    newest: Option<Newest>,
    /// Freed buffers. It has room for every buffer of every slab.
    free: Vec<Cut>,
    buffers: usize,
}

/// The newest slab. New buffers are cut from it.
#[derive(Debug)]
struct Newest {
    slab: Arc<Recycled>,
    pages: Option<FreshPages>,
    /// Bytes that are cut.
    cut: usize,
}

/// The memory of one buffer, and the slab that owns it.
#[derive(Debug, Clone)]
struct Cut {
    pointer: NonNull<u8>,
    _slab: Arc<Recycled>,
}

// SAFETY: a `Cut` gives no access to its memory, and the slab may move to another thread. Its buffer has the only access:
// the copy in the list of freed buffers is made when the buffer is dropped.
unsafe impl Send for Cut {}

/// The memory of a buffer in use. Dropping it returns the memory to the pool (step 3).
#[derive(Debug)]
pub(crate) struct SlabMemory {
    cut: Cut,
    nbytes: usize,
    pool: Weak<Mutex<Slabs>>,
}

impl SlabPool {
    /// Creates a pool for at most `most` buffers of `buffer_nbytes` bytes. Memory is allocated when buffers need it.
    #[must_use]
    pub fn new(buffer_nbytes: usize, most: usize) -> SlabPool {
        let is_served = (LEAST_NBYTES..HUGE_PAGE).contains(&buffer_nbytes) && most > 0;
        let left =
            if is_served { buffer_nbytes.next_multiple_of(HOST_ALIGNMENT).saturating_mul(most) } else { 0 };
        let slabs = Slabs { left, nbytes: 0, newest: None, free: Vec::new(), buffers: 0 };
        SlabPool { buffer_nbytes, is_served, slabs: Arc::new(Mutex::new(slabs)) }
    }

    /// Whether slabs have buffers of `nbytes` bytes.
    #[must_use]
    pub fn serves(&self, nbytes: usize) -> bool {
        self.is_served && nbytes == self.buffer_nbytes
    }

    /// Returns memory for a buffer, if `nbytes` is the size of the pool's buffers, and a slab has room for another one.
    pub(crate) fn memory(&self, nbytes: usize) -> Option<SlabMemory> {
        if !self.serves(nbytes) {
            return None;
        }
        let nbytes = nbytes.checked_next_multiple_of(HOST_ALIGNMENT)?;
        let mut slabs = self.slabs.lock();
        let freed = slabs.free.pop();
        let cut = freed.or_else(|| slabs.cut(nbytes))?;
        Some(SlabMemory { cut, nbytes, pool: Arc::downgrade(&self.slabs) })
    }
}

impl Slabs {
    /// Cuts `nbytes` bytes from the newest slab, or from another one (step 2).
    fn cut(&mut self, nbytes: usize) -> Option<Cut> {
        if self.newest.as_ref().is_none_or(|newest| newest.slab.capacity() - newest.cut < nbytes) {
            self.newest = Some(self.slab(nbytes)?);
        }
        let newest = self.newest.as_mut()?;
        let start = newest.slab.pointer();
        // SAFETY: `nbytes` more bytes of the slab follow the ones already cut.
        let (pointer, end) = unsafe { (start.add(newest.cut), start.add(newest.cut + nbytes)) };
        if let Some(pages) = &newest.pages {
            while pages.provide_next(end.as_ptr()) {}
        }
        newest.cut += nbytes;
        Some(Cut { pointer, _slab: Arc::clone(&newest.slab) })
    }

    /// Allocates a slab for buffers of `buffer_nbytes` bytes (step 1).
    fn slab(&mut self, buffer_nbytes: usize) -> Option<Newest> {
        if self.left < buffer_nbytes.max(1) {
            return None;
        }
        let fewest = FEWEST_BUFFERS * buffer_nbytes;
        let wanted = self.nbytes.clamp(fewest, MOST_SLAB_NBYTES.max(fewest)).min(self.left);
        let nbytes = wanted - wanted % buffer_nbytes;
        let (mut slab, mut is_fresh) = Recycled::new(nbytes, 0).ok()?;
        if slab.capacity() > self.left {
            (slab, is_fresh) = (Block::new(nbytes, false).ok()?.into(), true);
        }
        let nbytes = slab.capacity();
        let buffers = self.buffers + nbytes / buffer_nbytes;
        self.free.try_reserve(buffers - self.free.len()).ok()?;
        let pages = if is_fresh { FreshPages::new(slab.pointer(), nbytes) } else { None };
        (self.nbytes, self.left, self.buffers) = (self.nbytes + nbytes, self.left - nbytes, buffers);
        Some(Newest { slab: Arc::new(slab), pages, cut: 0 })
    }
}

impl SlabMemory {
    /// Returns the start of the memory.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.cut.pointer
    }

    /// Returns the size in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.nbytes
    }
}

impl Drop for SlabMemory {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.lock().free.push(self.cut.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UninitBuffer;
    use std::mem::MaybeUninit;

    const NBYTES: usize = 100_000;

    /// Fills a buffer with a number.
    fn filled(pool: &SlabPool, nbytes: usize, number: u8) -> crate::Buffer {
        let pooled = UninitBuffer::from_pool(pool, nbytes);
        let mut buffer = pooled.unwrap_or_else(|| UninitBuffer::new(nbytes).unwrap());
        assert!(buffer.as_mut_ptr().addr().is_multiple_of(HOST_ALIGNMENT));
        buffer.as_mut_slice().fill(MaybeUninit::new(number));
        // SAFETY: every byte was just written.
        unsafe { buffer.assume_init() }
    }

    #[test]
    fn buffers_do_not_overlap_and_outlive_the_pool() {
        let pool = SlabPool::new(NBYTES, 1_000_000);
        let mut kept: Vec<_> = (0..200).map(|number| filled(&pool, NBYTES, number)).collect();
        for number in (0..200).step_by(3) {
            kept[usize::from(number)] = filled(&pool, NBYTES, number);
        }
        drop(pool);
        for (buffer, number) in kept.iter().zip(0..) {
            assert!(buffer.len() == NBYTES && buffer.iter().all(|byte| *byte == number));
        }
    }

    /// Returns the bytes of all slabs, and the number of free buffers.
    fn slabs(pool: &SlabPool) -> (usize, usize) {
        let slabs = pool.slabs.lock();
        (slabs.nbytes, slabs.free.len())
    }

    #[test]
    fn freed_memory_comes_first_and_other_sizes_from_the_allocator() {
        let pool = SlabPool::new(NBYTES, 1_000_000);
        let kept: Vec<_> = (0..30).map(|number| filled(&pool, NBYTES, number)).collect();
        let before = slabs(&pool);
        assert_eq!(before.1, 0);
        drop(kept);
        assert_eq!(slabs(&pool), (before.0, 30));
        let again: Vec<_> = (0..30).map(|number| filled(&pool, NBYTES, number)).collect();
        let others = [NBYTES - 10, NBYTES * 2, 10, 0, HUGE_PAGE].map(|nbytes| filled(&pool, nbytes, 7));
        assert_eq!(slabs(&pool), (before.0, 0));
        assert!(others.iter().all(|buffer| buffer.held_nbytes() >= buffer.len()));
        drop(again);
    }

    #[test]
    fn slabs_keep_to_the_limit() {
        // Recycled blocks may be larger than a slab.
        drop([9, 17, 31].map(|pages| UninitBuffer::new(pages * HUGE_PAGE).unwrap()));
        for most in [0, 1, 2, 5, 150, 900] {
            let pool = SlabPool::new(NBYTES, most);
            let kept: Vec<_> = (0..200).map(|number| filled(&pool, NBYTES, number)).collect();
            assert!(slabs(&pool).0 <= most * NBYTES.next_multiple_of(HOST_ALIGNMENT));
            drop(kept);
            let free = slabs(&pool).1;
            assert!(free <= most.min(200) && free + 8 >= most.min(200), "{free} of {most}");
        }
        for nbytes in [0, LEAST_NBYTES - 1, HUGE_PAGE, usize::MAX - 7] {
            let pool = SlabPool::new(nbytes, usize::MAX);
            assert!(pool.memory(nbytes).is_none() && !pool.serves(nbytes));
        }
    }

    #[test]
    fn threads_share_a_pool() {
        let pool = SlabPool::new(NBYTES, 1_000_000);
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..50 {
                        let number = thread * 50 + round;
                        let buffers = [0; 3].map(|_| filled(pool, NBYTES, number));
                        assert!(buffers.iter().all(|buffer| buffer.iter().all(|byte| *byte == number)));
                    }
                });
            }
        });
        let slabs = pool.slabs.lock();
        assert!(slabs.free.len() <= 12 && slabs.free.capacity() >= slabs.buffers);
    }
}
