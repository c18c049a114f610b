//! A bounded cache of freed memory, for the next result of similar size.
//!
//! The first touch of fresh pages is half of the cost of an uncompressed read, and ten times that if a virtual
//! machine returns free pages to its host. With this cache, a loop that reads, uses and drops arrays of one size
//! reuses the memory of the previous array.
//!
//! 1. Blocks of [`HUGE_PAGE`] or more are kept, newest last, up to the limit in bytes. Of smaller blocks only the
//!    last few are kept: the allocator caches these itself, but is slow for aligned ones.
//! 2. A block serves a request that fills at least half of it.
//! 3. If no block fits a request, and the request plus the kept blocks would exceed the limit, the oldest blocks
//!    are freed first.
//! 4. A thread never waits for the lock: if it is taken, the thread works without the cache.

use crate::block::Block;
use crate::error::Result;
use crate::fork::CacheMutex;
use crate::huge_pages::HUGE_PAGE;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Default limit in bytes, see [`set_recycled_limit`].
const DEFAULT_LIMIT_NBYTES: usize = 512 << 20;

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT_NBYTES);
static BLOCKS: CacheMutex<Vec<Block>> = CacheMutex::new(Vec::new());

/// Blocks smaller than [`HUGE_PAGE`].
static SMALL: CacheMutex<Vec<Block>> = CacheMutex::new(Vec::new());

/// Blocks below this size are not worth the lock.
const LEAST_NBYTES: usize = 4 << 10;

/// Maximum number of small blocks.
const MOST_SMALL: usize = 8;

/// A block in use. Dropping it offers the memory for reuse.
#[derive(Debug)]
pub(crate) struct Recycled(Option<Block>);

impl Recycled {
    /// Takes a kept block, or allocates one with `spare` bytes more; returns whether its memory is fresh.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the allocation fails.
    pub(crate) fn new(nbytes: usize, spare: usize) -> Result<(Recycled, bool)> {
        match take(nbytes) {
            Some(block) => Ok((block.into(), false)),
            None => Ok((Block::new(nbytes + spare, false)?.into(), true)),
        }
    }

    /// Returns the start of the memory.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.0.as_ref().map_or(NonNull::dangling(), Block::pointer)
    }

    /// Returns the size in bytes, which may exceed the request.
    pub(crate) fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, Block::capacity)
    }
}

impl From<Block> for Recycled {
    fn from(block: Block) -> Recycled {
        Recycled(Some(block))
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        drop(self.0.take().and_then(give));
    }
}

/// Sets the limit of freed memory kept for later results, excluding a few small blocks; 0 disables the cache.
///
/// ```
/// zarrow_array::set_recycled_limit(64 << 20);
/// assert_eq!(zarrow_array::recycled_limit(), 64 << 20);
/// ```
pub fn set_recycled_limit(nbytes: usize) {
    LIMIT.store(nbytes, Ordering::Relaxed);
    with(&SMALL, |small| small.retain(|block| block.capacity() <= nbytes));
    trim(nbytes);
}

/// Returns the limit of freed memory to keep, in bytes.
#[must_use]
pub fn recycled_limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Frees all kept memory; returns its size in bytes.
pub fn release_recycled() -> usize {
    let small = with(&SMALL, std::mem::take).map_or(0, |small| kept(&small));
    small + trim(0)
}

/// Runs `act` on the blocks, unless another thread holds the lock (step 4).
fn with<T>(blocks: &CacheMutex<Vec<Block>>, act: impl FnOnce(&mut Vec<Block>) -> T) -> Option<T> {
    blocks.try_lock().map(|mut blocks| act(&mut blocks))
}

fn kept(blocks: &[Block]) -> usize {
    blocks.iter().map(Block::capacity).sum()
}

/// Frees the oldest blocks until at most `limit` bytes are kept; returns the bytes freed.
fn trim(limit: usize) -> usize {
    let freed = with(&BLOCKS, |blocks| {
        let mut keep = blocks.len();
        let mut sum = 0usize;
        while keep > 0 && sum.saturating_add(blocks[keep - 1].capacity()) <= limit {
            sum += blocks[keep - 1].capacity();
            keep -= 1;
        }
        blocks.drain(..keep).collect::<Vec<_>>()
    });
    // The blocks are freed here, outside the lock.
    freed.map_or(0, |freed| kept(&freed))
}

/// Returns a kept block for `nbytes` bytes (steps 2 and 3).
fn take(nbytes: usize) -> Option<Block> {
    let fits = |block: &Block| block.capacity() >= nbytes && block.capacity() / 2 <= nbytes;
    if nbytes < HUGE_PAGE {
        let newest = |small: &mut Vec<Block>| small.iter().rposition(fits).map(|at| small.remove(at));
        return if nbytes < LEAST_NBYTES { None } else { with(&SMALL, newest).flatten() };
    }
    let found = with(&BLOCKS, |blocks| {
        let smallest = blocks.iter().enumerate().filter(|(_, block)| fits(block));
        let at = smallest.min_by_key(|(_, block)| block.capacity()).map(|(at, _)| at)?;
        Some(blocks.remove(at))
    })
    .flatten();
    if found.is_none() {
        trim(recycled_limit().saturating_sub(nbytes));
    }
    found
}

/// Keeps a freed block (step 1), or returns it to be freed.
fn give(block: Block) -> Option<Block> {
    let limit = recycled_limit();
    if block.capacity() < LEAST_NBYTES || block.capacity() > limit {
        return Some(block);
    }
    if block.capacity() < HUGE_PAGE {
        let replace = |small: &mut Vec<Block>| {
            let oldest = (small.len() >= MOST_SMALL).then(|| small.remove(0));
            small.push(block);
            oldest
        };
        // If another thread holds the lock, the block was dropped with the closure.
        return with(&SMALL, replace).flatten();
    }
    trim(limit - block.capacity());
    let mut block = Some(block);
    with(&BLOCKS, |blocks| {
        // If the list cannot grow, the block is freed.
        if blocks.try_reserve(1).is_ok() {
            blocks.extend(block.take());
        }
    });
    block
}

#[cfg(test)]
mod tests {
    use crate::{HUGE_PAGE, UninitBuffer};

    /// Retries until no other test holds the lock.
    fn now<T>(blocks: &super::CacheMutex<Vec<super::Block>>, ask: impl Fn(&[super::Block]) -> T) -> T {
        loop {
            if let Some(blocks) = blocks.try_lock() {
                return ask(&blocks);
            }
            std::thread::yield_now();
        }
    }

    /// A single test, since the cache is global to the process.
    #[test]
    fn memory_is_reused_up_to_the_limit() {
        super::set_recycled_limit(8 * HUGE_PAGE);
        let mut first = UninitBuffer::new(3 * HUGE_PAGE).unwrap();
        let address = first.as_mut_ptr();
        drop(first);
        let mut second = UninitBuffer::new(3 * HUGE_PAGE - 5).unwrap();
        assert_eq!(second.as_mut_ptr(), address);
        assert_eq!(second.len(), 3 * HUGE_PAGE - 5);
        let small = UninitBuffer::new(HUGE_PAGE).unwrap();
        drop(second);
        let third = UninitBuffer::new(HUGE_PAGE).unwrap();
        assert!(now(&super::BLOCKS, super::kept) >= 3 * HUGE_PAGE, "a small request takes no large block");
        drop((small, third));
        drop(UninitBuffer::new(7 * HUGE_PAGE).unwrap());
        // Other tests allocate concurrently, and the lock is only tried.
        let comes_back = |_| {
            let mut small = UninitBuffer::new(20_000).unwrap();
            let address = small.as_mut_ptr();
            drop(small);
            UninitBuffer::new(19_000).unwrap().as_mut_ptr() == address
        };
        assert!((0..100).any(comes_back));
        drop((0..20).map(|_| UninitBuffer::new(16_384).unwrap()).collect::<Vec<_>>());
        assert!(now(&super::SMALL, |small| small.len()) <= super::MOST_SMALL);
        assert!(now(&super::BLOCKS, super::kept) <= 8 * HUGE_PAGE);
        drop(UninitBuffer::new(9 * HUGE_PAGE).unwrap());
        assert!(now(&super::BLOCKS, super::kept) <= 8 * HUGE_PAGE);
        super::release_recycled();
        assert_eq!(now(&super::BLOCKS, super::kept), 0);
        super::set_recycled_limit(super::DEFAULT_LIMIT_NBYTES);
    }
}
