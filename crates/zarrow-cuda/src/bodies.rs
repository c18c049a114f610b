//! Pinned memory for the bodies of a remote store, and their copies to the device.
//!
//! 1. A body is a range of a *page*, a slot of pinned memory. Many bodies share a page, since pinning for each
//!    request would be too slow. A body larger than a page has a separate one. A store's threads do not wait for a
//!    page: if none is free, bodies go to ordinary memory.
//! 2. The first batch that needs a body copies all of it to the device, once; other batches share the copy. A body is
//!    not copied if the host decodes all of its chunks.
//! 3. A page returns to the ring after its last body is dropped. Its slot waits for the copies from it, in every
//!    stream.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::memory::{ALIGNMENT, DeviceMemory};
use crate::pinned::Slot;
use crate::stream::Stream;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zarrow::{BodyAlloc, BodyMemory};
use zarrow_array::fork::{Mutex, ProcessMutex};

/// Bytes of a page, unless a body is larger.
const PAGE_NBYTES: usize = 16 << 20;

/// Maximum bytes of pages per read: twice the bytes in flight, since a late body keeps its page.
const MOST_NBYTES: usize = 384 << 20;

/// Pages of a read.
pub(crate) struct PinnedBodies {
    device: &'static Device,
    /// The page being filled, and the offset of the next body.
    current: Mutex<Option<(Arc<Page>, usize)>>,
    /// Bytes of all pages.
    nbytes: Arc<AtomicUsize>,
}

struct Page {
    slot: ProcessMutex<Slot>,
    pointer: NonNull<u8>,
    room: usize,
    nbytes: Arc<AtomicUsize>,
}

// SAFETY: the memory is given out by ranges, each to one body.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Drop for Page {
    fn drop(&mut self) {
        self.nbytes.fetch_sub(self.room, Ordering::Relaxed);
    }
}

impl PinnedBodies {
    /// Creates an empty set of pages.
    pub(crate) fn new(device: &'static Device) -> PinnedBodies {
        PinnedBodies { device, current: Mutex::default(), nbytes: Arc::default() }
    }

    /// Returns a page with room for `nbytes` bytes, if one is available without waiting.
    fn page(&self, nbytes: usize) -> Option<Arc<Page>> {
        let nbytes = nbytes.checked_next_multiple_of(PAGE_NBYTES)?;
        if self.nbytes.load(Ordering::Relaxed).checked_add(nbytes)? > MOST_NBYTES {
            return None;
        }
        let mut slot = self.device.idle.take_ready(self.device.context(), nbytes).ok()?;
        let (pointer, room) = slot.ready().ok()?;
        self.nbytes.fetch_add(room, Ordering::Relaxed);
        let nbytes = Arc::clone(&self.nbytes);
        Some(Arc::new(Page { slot: ProcessMutex::new(slot), pointer, room, nbytes }))
    }

    /// Returns a page, and the offset of the next `nbytes` free bytes on it (step 1).
    fn place(&self, nbytes: usize) -> Option<(Arc<Page>, usize)> {
        let nbytes = nbytes.checked_next_multiple_of(ALIGNMENT)?;
        if let Some((page, next)) = &mut *self.current.lock()
            && nbytes <= page.room - *next
        {
            let start = *next;
            *next += nbytes;
            return Some((Arc::clone(page), start));
        }
        // Without the lock, since pinning takes milliseconds.
        let page = self.page(nbytes)?;
        let full = if nbytes < PAGE_NBYTES {
            self.current.lock().replace((Arc::clone(&page), nbytes))
        } else {
            None
        };
        drop(full);
        Some((page, 0))
    }
}

impl BodyAlloc for PinnedBodies {
    fn body(&self, nbytes: usize) -> Option<BodyMemory> {
        let (page, start) = self.place(nbytes)?;
        // SAFETY: `place` found room for the body from `start` on, within the page.
        let pointer = unsafe { page.pointer.add(start) };
        let bytes = start..start + nbytes;
        let body = Arc::new(PinnedBody { device: self.device, page, bytes, sent: ProcessMutex::default() });
        // SAFETY: the range is given out once, the body keeps the page, and the device only reads from it, after
        // the body has arrived.
        Some(unsafe { BodyMemory::new(pointer, nbytes, body) })
    }
}

/// A body in pinned memory.
pub(crate) struct PinnedBody {
    device: &'static Device,
    page: Arc<Page>,
    bytes: Range<usize>,
    sent: ProcessMutex<Option<Sent>>,
}

/// A body on the device, from the time of its copy.
struct Sent {
    memory: Arc<DeviceMemory>,
    copied: Event,
}

impl PinnedBody {
    /// Returns the device memory with the body; later work in `stream` sees it there. The first stream copies it (step
    /// 2).
    pub(crate) fn on_device(&self, stream: Stream) -> Result<Arc<DeviceMemory>> {
        let mut sent = self.sent.lock().map_err(|_| Error::Forked)?;
        if let Some(Sent { memory, copied }) = &*sent {
            copied.hold_back(stream)?;
            memory.is_used_in(stream);
            return Ok(Arc::clone(memory));
        }
        let memory = Arc::new(DeviceMemory::new_in(self.device, self.bytes.len(), stream)?);
        let mut slot = self.page.slot.lock().map_err(|_| Error::Forked)?;
        slot.send(self.bytes.clone(), memory.address(), stream)?;
        let copied = Event::record(self.device, stream)?;
        *sent = Some(Sent { memory: Arc::clone(&memory), copied });
        Ok(memory)
    }
}

impl fmt::Debug for PinnedBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PinnedBody").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
