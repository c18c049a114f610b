//! Host memory that a device copies from asynchronously: the slots of a read.
//!
//! Pinning pages takes milliseconds, so slots are kept: as many as all threads use at once, freed by
//! [`Device::release_memory`](crate::Device::release_memory). A slot remembers the last copies from it; its next user waits for these first.

use crate::context::{Current, PrimaryContext};
use crate::driver::functions::Address;
use crate::driver::status::OUT_OF_MEMORY;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use zarrow::num_threads;
use zarrow_array::fork::{Mutex, generation};

/// Number of slots in copies at which a reader waits for one; until then it fills further slots.
const MAX_BUSY: usize = 3;

/// Maximum ratio between the size of a slot and the requested size.
const MOST_TIMES: usize = 4;

/// Minimum pinned memory that a device keeps; more if all threads fill larger slots.
const KEPT_NBYTES: usize = 256 << 20;

/// Above this size, a slot counts with this size towards the kept memory: not every thread has such a slot.
const LARGE_NBYTES: usize = 32 << 20;

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for all contexts. It is not write-combined, since decoders read back their
/// output.
const PORTABLE: u32 = 1;

/// Pinned host memory.
struct Pinned {
    context: PrimaryContext,
    pointer: NonNull<u8>,
    nbytes: usize,
    generation: u64,
    /// Last copy from or to the slot in each stream.
    copies: SmallVec<[(Stream, Event); 1]>,
    /// Whether a copy without an event may use it: then it is only reused after waiting for the whole device.
    lost: bool,
}

// SAFETY: the pointer is only handed out raw, and only by the slot that owns the memory.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    fn new(context: PrimaryContext, nbytes: usize) -> Result<Pinned> {
        let current = context.enter()?;
        let mut pointer: *mut c_void = null_mut();
        // SAFETY: the pointer is written to a place that lives through the call.
        let allocated = unsafe { current.driver.host_allocate(&raw mut pointer, nbytes.max(1), PORTABLE) };
        let out_of_memory = || Error::OutOfMemory { nbytes, place: "pinned memory of the host".to_owned() };
        match (allocated, NonNull::new(pointer.cast())) {
            (Ok(()), Some(pointer)) => Ok(Pinned {
                context,
                pointer,
                nbytes,
                generation: generation(),
                copies: SmallVec::new(),
                lost: false,
            }),
            (Ok(()), None) | (Err(Error::Driver { code: OUT_OF_MEMORY, .. }), _) => Err(out_of_memory()),
            (Err(error), _) => Err(error),
        }
    }
}

impl Pinned {
    /// Returns whether a copy may still use it.
    fn is_busy(&self) -> bool {
        self.copies.iter().any(|(_, copy)| !copy.is_reached().unwrap_or(false))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.generation != generation() || self.lost {
            return;
        }
        // Memory that a copy still uses is not freed: a failed device cannot report when it is done.
        if self.copies.drain(..).any(|(_, copy)| copy.wait().is_err()) {
            return;
        }
        if let Ok(current) = self.context.enter() {
            // SAFETY: it was allocated by `host_allocate`, and has no other references.
            let _ = unsafe { current.driver.host_free(self.pointer.as_ptr().cast()) };
        }
    }
}

/// The unused slots of a device.
#[derive(Default)]
pub(crate) struct Idle {
    slots: Mutex<Vec<Pinned>>,
    /// Slots with copies of unknown end.
    lost: Mutex<Vec<Pinned>>,
}

impl Idle {
    /// Returns a slot of at least `nbytes`: the smallest without pending copies, or a new one. If [`MAX_BUSY`]
    /// slots have pending copies, it is the one with the earliest end.
    pub(crate) fn take(&'static self, context: PrimaryContext, nbytes: usize) -> Result<Slot> {
        self.recover(context);
        let found = {
            let mut idle = self.slots.lock();
            // Large slots are reserved for large requests.
            let fits = |pinned: &Pinned| pinned.nbytes >= nbytes && pinned.nbytes / MOST_TIMES <= nbytes;
            let fitting = idle.iter().enumerate().filter(|(_, pinned)| fits(pinned));
            let (free, busy): (Vec<_>, Vec<_>) = fitting.partition(|(_, pinned)| !pinned.is_busy());
            let smallest = free.into_iter().min_by_key(|(_, pinned)| pinned.nbytes);
            let first = busy.first().filter(|_| busy.len() >= MAX_BUSY).copied();
            smallest.or(first).map(|(number, _)| number).map(|number| idle.remove(number))
        };
        let pinned = match found {
            Some(pinned) => pinned,
            None => Pinned::new(context, nbytes)?,
        };
        Ok(Slot { idle: self, pinned: Some(pinned) })
    }

    /// Like [`take`](Idle::take), for callers that cannot wait: returns a slot without pending copies.
    pub(crate) fn take_ready(&'static self, context: PrimaryContext, nbytes: usize) -> Result<Slot> {
        let slot = self.take(context, nbytes)?;
        let is_busy = slot.pinned.as_ref().is_some_and(Pinned::is_busy);
        if is_busy { Ok(Slot { idle: self, pinned: Some(Pinned::new(context, nbytes)?) }) } else { Ok(slot) }
    }

    /// Frees all slots.
    pub(crate) fn release(&self, context: PrimaryContext) {
        self.recover(context);
        let idle = std::mem::take(&mut *self.slots.lock());
        drop(idle);
    }

    /// Frees the slots with copies of unknown end, after waiting for the whole device.
    fn recover(&self, context: PrimaryContext) {
        let mut lost = std::mem::take(&mut *self.lost.lock());
        if lost.is_empty() {
            return;
        }
        if context.synchronize().is_ok() {
            lost.iter_mut().for_each(|pinned| pinned.lost = false);
        } else {
            self.lost.lock().append(&mut lost);
        }
    }

    fn put(&self, pinned: Pinned) {
        if pinned.lost {
            self.lost.lock().push(pinned);
            return;
        }
        let kept = {
            let mut idle = self.slots.lock();
            let held: usize = idle.iter().map(|pinned| pinned.nbytes).sum();
            let used = (num_threads() + MAX_BUSY + 2).saturating_mul(pinned.nbytes.min(LARGE_NBYTES));
            if held.saturating_add(pinned.nbytes) <= KEPT_NBYTES.max(used) {
                idle.push(pinned);
                None
            } else {
                Some(pinned)
            }
        };
        drop(kept);
    }
}

/// A read's pinned memory, returned on drop.
pub(crate) struct Slot {
    idle: &'static Idle,
    pinned: Option<Pinned>,
}

impl Slot {
    /// Returns the memory, after waiting for pending copies.
    pub(crate) fn ready(&mut self) -> Result<(NonNull<u8>, usize)> {
        let Some(pinned) = &mut self.pinned else { return Ok((NonNull::dangling(), 0)) };
        if !pinned.copies.is_empty() {
            // If the end of a copy is unknown, the memory is not used before the whole device is done.
            pinned.lost = true;
            pinned.copies.drain(..).try_for_each(|(_, copy)| copy.wait())?;
            pinned.lost = false;
        }
        Ok((pinned.pointer, pinned.nbytes))
    }

    /// Copies a range of the slot to the device in `stream`, without waiting.
    pub(crate) fn send(&mut self, bytes: Range<usize>, to: Address, stream: Stream) -> Result<()> {
        self.copy(&bytes, stream, |current, pointer| {
            // SAFETY: the slot has these bytes, and keeps them until the event of this copy.
            unsafe { current.driver.copy_to_device(to, pointer.cast_const(), bytes.len(), stream.handle()) }
        })
    }

    /// Copies `nbytes` bytes from the device in `stream`, without waiting: [`ready`](Slot::ready) waits.
    pub(crate) fn receive(&mut self, from: Address, nbytes: usize, stream: Stream) -> Result<()> {
        self.copy(&(0..nbytes), stream, |current, pointer| {
            // SAFETY: as in `send`.
            unsafe { current.driver.copy_to_host(pointer, from, nbytes, stream.handle()) }
        })
    }

    fn copy(
        &mut self,
        bytes: &Range<usize>,
        stream: Stream,
        submit: impl FnOnce(&Current, *mut c_void) -> Result<()>,
    ) -> Result<()> {
        let Some(pinned) = self.pinned.as_mut().filter(|pinned| bytes.end <= pinned.nbytes) else {
            return Err(Error::Unsupported(format!("a slot has less than {} bytes", bytes.end)));
        };
        if bytes.is_empty() {
            return Ok(());
        }
        let current = pinned.context.enter()?;
        pinned.lost = true;
        // SAFETY: the range is inside the memory.
        let start = unsafe { pinned.pointer.add(bytes.start) };
        submit(&current, start.as_ptr().cast())?;
        let copy = Event::record_in(pinned.context, stream)?;
        // It is ordered after the previous copies in the same stream.
        pinned.copies.retain(|(other, _)| *other != stream);
        pinned.copies.push((stream, copy));
        pinned.lost = false;
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.idle.put(pinned);
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Slot")
            .field("nbytes", &self.pinned.as_ref().map(|pinned| pinned.nbytes))
            .finish()
    }
}
