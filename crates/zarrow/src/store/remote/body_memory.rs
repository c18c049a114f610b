//! The memory of received bodies: our own, or that of an allocator, such as pinned memory for a device.
//!
//! 1. When the head of an answer gives the number of bytes, the allocator is asked for memory. It never waits.
//! 2. Frames are copied there, each byte once. If the allocator has no memory, or if more bytes arrive than announced,
//!    the body is in our own memory.
//! 3. The memory belongs to the body, and is returned when the last reference to the body is dropped. That may be after
//!    the read, if the store has not yet dropped an abandoned request.

use crate::error::Result;
use crate::store::remote::Frames;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use zarrow_array::allocation::Grow;

/// An allocator of memory for bodies. It is called on a store's threads, and must not wait.
pub trait BodyAlloc: Send + Sync {
    /// Returns memory for `nbytes` bytes; `None` if the memory is used up.
    fn body(&self, nbytes: usize) -> Option<BodyMemory>;
}

/// Memory for a body, and its owner.
pub struct BodyMemory {
    pointer: NonNull<u8>,
    nbytes: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: `new` requires that no other code writes to the memory while this lives, and shared references only read it.
unsafe impl Send for BodyMemory {}
// SAFETY: as above.
unsafe impl Sync for BodyMemory {}

impl BodyMemory {
    /// Wraps the `nbytes` bytes at `pointer`, which `owner` keeps alive. [`owner`](Self::owner) returns it.
    ///
    /// # Safety
    /// While this lives, the memory must be valid, and no other code may write to it. Other code may read it once the
    /// body is complete.
    #[must_use]
    pub unsafe fn new(pointer: NonNull<u8>, nbytes: usize, owner: Arc<dyn Any + Send + Sync>) -> BodyMemory {
        BodyMemory { pointer, nbytes, owner }
    }

    /// Returns the owner given to [`new`](Self::new).
    #[must_use]
    pub fn owner(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.owner
    }

    /// Returns the offset of `bytes` in this memory; `None` if they are elsewhere.
    pub(crate) fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let offset = bytes.as_ptr().addr().checked_sub(self.pointer.addr().get())?;
        (offset.checked_add(bytes.len())? <= self.nbytes).then_some(offset)
    }
}

impl fmt::Debug for BodyMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BodyMemory").field("nbytes", &self.nbytes).finish_non_exhaustive()
    }
}

/// The bytes of a body.
#[derive(Debug)]
pub enum BodyBytes {
    /// In ordinary memory.
    Heap(Vec<u8>),
    /// The first bytes, of this number, of an allocator's memory.
    Borrowed(BodyMemory, usize),
}

impl BodyBytes {
    /// Returns the allocator's memory, if the bytes are there.
    pub fn borrowed(&self) -> Option<&BodyMemory> {
        match self {
            BodyBytes::Heap(_) => None,
            BodyBytes::Borrowed(memory, _) => Some(memory),
        }
    }
}

impl Deref for BodyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            BodyBytes::Heap(bytes) => bytes,
            // SAFETY: `filled` bytes have been copied there, and only this body writes to the memory.
            BodyBytes::Borrowed(memory, filled) => unsafe {
                std::slice::from_raw_parts(memory.pointer.as_ptr().cast_const(), *filled)
            },
        }
    }
}

/// Gathers the frames of an answer in a body.
pub struct BodyFrames {
    alloc: Option<Arc<dyn BodyAlloc>>,
    bytes: BodyBytes,
}

impl BodyFrames {
    /// Creates an empty body, in memory of the allocator if one is given.
    pub fn new(alloc: Option<Arc<dyn BodyAlloc>>) -> BodyFrames {
        BodyFrames { alloc, bytes: BodyBytes::Heap(Vec::new()) }
    }
}

impl Frames for BodyFrames {
    type Bytes = BodyBytes;

    fn begin(&mut self, _start: u64, expected: u64) -> Result<()> {
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        match &mut self.bytes {
            // The answer is restarted, and fits.
            BodyBytes::Borrowed(memory, filled) if expected <= memory.nbytes => {
                *filled = 0;
                return Ok(());
            }
            BodyBytes::Heap(bytes) => bytes.clear(),
            BodyBytes::Borrowed(..) => self.bytes = BodyBytes::Heap(Vec::new()),
        }
        // Step 1.
        let borrowed = self.alloc.as_ref().filter(|_| expected > 0).and_then(|alloc| alloc.body(expected));
        if let Some(memory) = borrowed.filter(|memory| expected <= memory.nbytes) {
            self.bytes = BodyBytes::Borrowed(memory, 0);
            return Ok(());
        }
        match &mut self.bytes {
            // Allocate all at once, so that later frames move nothing.
            BodyBytes::Heap(bytes) => Ok(bytes.make_room(expected)?),
            BodyBytes::Borrowed(..) => Ok(()),
        }
    }

    fn add(&mut self, frame: &[u8]) -> Result<()> {
        match &mut self.bytes {
            BodyBytes::Borrowed(memory, filled) if frame.len() <= memory.nbytes - *filled => {
                // SAFETY: at least this many bytes are free behind the filled ones, and no other code uses the memory.
                unsafe {
                    memory
                        .pointer
                        .add(*filled)
                        .copy_from_nonoverlapping(NonNull::from(frame).cast::<u8>(), frame.len());
                }
                *filled += frame.len();
                return Ok(());
            }
            BodyBytes::Borrowed(_, filled) => {
                // Step 2.
                let mut bytes: Vec<u8> = Vec::new();
                bytes.make_room(filled.saturating_add(frame.len()))?;
                bytes.extend_from_slice(&self.bytes);
                self.bytes = BodyBytes::Heap(bytes);
            }
            BodyBytes::Heap(_) => {}
        }
        if let BodyBytes::Heap(bytes) = &mut self.bytes {
            bytes.make_room(frame.len())?;
            bytes.extend_from_slice(frame);
        }
        Ok(())
    }

    fn into_bytes(self) -> BodyBytes {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The test's memory, which has each piece once.
    struct Lender(usize, AtomicUsize);

    impl BodyAlloc for Lender {
        fn body(&self, nbytes: usize) -> Option<BodyMemory> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let mut memory = vec![0u8; nbytes];
            let pointer = NonNull::new(memory.as_mut_ptr())?;
            let owner = Arc::new(memory);
            // SAFETY: the owner keeps the memory, and touches it no more.
            (nbytes <= self.0).then(|| unsafe { BodyMemory::new(pointer, nbytes, owner) })
        }
    }

    #[test]
    fn bodies_use_the_allocators_memory_if_they_fit() {
        let lender = Arc::new(Lender(8, AtomicUsize::new(0)));
        let gather = |expected: u64, frames: &[&[u8]]| {
            let mut body = BodyFrames::new(Some(Arc::clone(&lender) as _));
            body.begin(3, expected).unwrap();
            frames.iter().for_each(|frame| body.add(frame).unwrap());
            // Once more, as far as it fits.
            body.begin(3, expected.min(6)).unwrap();
            frames.iter().for_each(|frame| body.add(frame).unwrap());
            body.into_bytes()
        };
        let body = gather(6, &[b"abc", b"", b"def"]);
        assert_eq!((&*body, body.borrowed().unwrap().offset_of(&body[2..])), (&b"abcdef"[..], Some(2)));
        assert_eq!(body.borrowed().unwrap().offset_of(b"abc"), None);
        assert_eq!(lender.1.load(Ordering::Relaxed), 1, "an answer that begins anew has its memory");
        let body = gather(2, &[b"abc", b"def"]);
        assert_eq!((&*body, body.borrowed().is_none()), (&b"abcdef"[..], true), "more than was told");
        let body = gather(100, &[b"abc"]);
        assert_eq!(&*body, b"abc", "no memory at first");
        let body = gather(0, &[b"abc"]);
        assert_eq!((&*body, body.borrowed().is_none()), (&b"abc"[..], true), "no caller said how many");
    }
}
