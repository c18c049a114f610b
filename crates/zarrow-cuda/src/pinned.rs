//! Memory of the host that a device copies from by itself: the slots that a read goes through.
//!
//! Pinning pages takes milliseconds, so that slots are kept for later: as many as all threads use at once, given back by
//! [`Device::release_memory`]. A slot remembers the last copies from it; whoever takes it waits for these first.

use crate::device::{Current, Device};
use crate::driver::functions::Address;
use crate::driver::status::OUT_OF_MEMORY;
use crate::error::{Error, Result};
use crate::stream::{Event, Stream};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use zarrow::num_threads;
use zarrow_array::fork::{Mutex, generation};

/// How many slots copies use before a reader waits for one of them: it fills the next slots meanwhile.
const MAX_BUSY: usize = 3;

/// How many times larger a slot may be than it has to.
const MOST_TIMES: usize = 4;

/// The least pinned memory that a device keeps for later; more where all threads fill slots that are larger.
const KEPT_NBYTES: usize = 256 << 20;

/// Bytes of a slot of which not every thread has one.
const LARGE_NBYTES: usize = 32 << 20;

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for all contexts. It is not write-combined, since decoders read what they wrote.
const PORTABLE: u32 = 1;

/// Pinned memory of the host.
struct Pinned {
    device: &'static Device,
    pointer: NonNull<u8>,
    nbytes: usize,
    generation: u64,
    /// The last copy from or to it in each stream that has copied.
    copies: SmallVec<[(Stream, Event); 1]>,
    /// Whether a copy may use it of which no event tells: it is used again when the whole device was waited for.
    lost: bool,
}

// SAFETY: the pointer is given out raw, by the slot that has the memory alone.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    fn new(device: &'static Device, nbytes: usize) -> Result<Pinned> {
        let current = device.enter()?;
        let mut pointer: *mut c_void = null_mut();
        // SAFETY: the pointer is written to a place that lives through the call.
        let allocated = unsafe { current.driver.host_allocate(&raw mut pointer, nbytes.max(1), PORTABLE) };
        let out_of_memory = || Error::OutOfMemory { nbytes, place: "pinned memory of the host".to_owned() };
        match (allocated, NonNull::new(pointer.cast())) {
            (Ok(()), Some(pointer)) => Ok(Pinned {
                device,
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
    /// Whether a copy still uses it, or nobody can say.
    fn is_busy(&self) -> bool {
        self.copies.iter().any(|(_, copy)| !copy.is_reached().unwrap_or(false))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.generation != generation() || self.lost {
            return;
        }
        // Memory that a copy still uses is not freed: a device that fails cannot say when it is done.
        if self.copies.drain(..).any(|(_, copy)| copy.wait().is_err()) {
            return;
        }
        if let Ok(current) = self.device.enter() {
            // SAFETY: it was allocated by `host_allocate`, and nobody has it any more.
            let _ = unsafe { current.driver.host_free(self.pointer.as_ptr().cast()) };
        }
    }
}

/// The slots of a device that nobody has.
#[derive(Default)]
pub(crate) struct Idle {
    slots: Mutex<Vec<Pinned>>,
    /// Those of which nobody can say when their copies end.
    lost: Mutex<Vec<Pinned>>,
}

impl Idle {
    /// A slot of at least `nbytes`: the smallest that no copy uses, or a new one. Where copies use [`MAX_BUSY`] already, it is
    /// the first of these, whose copy ends first.
    pub(crate) fn take(&self, device: &'static Device, nbytes: usize) -> Result<Slot> {
        self.recover(device);
        let found = {
            let mut idle = self.slots.lock();
            // Large slots are left to those who need them.
            let fits = |pinned: &Pinned| pinned.nbytes >= nbytes && pinned.nbytes / MOST_TIMES <= nbytes;
            let fitting = idle.iter().enumerate().filter(|(_, pinned)| fits(pinned));
            let (free, busy): (Vec<_>, Vec<_>) = fitting.partition(|(_, pinned)| !pinned.is_busy());
            let smallest = free.into_iter().min_by_key(|(_, pinned)| pinned.nbytes);
            let first = busy.first().filter(|_| busy.len() >= MAX_BUSY).copied();
            smallest.or(first).map(|(number, _)| number).map(|number| idle.remove(number))
        };
        let pinned = match found {
            Some(pinned) => pinned,
            None => Pinned::new(device, nbytes)?,
        };
        Ok(Slot { pinned: Some(pinned) })
    }

    /// As [`take`](Idle::take), for those who cannot wait: a slot that no copy uses any more.
    pub(crate) fn take_ready(&self, device: &'static Device, nbytes: usize) -> Result<Slot> {
        let slot = self.take(device, nbytes)?;
        let is_busy = slot.pinned.as_ref().is_some_and(Pinned::is_busy);
        if is_busy { Ok(Slot { pinned: Some(Pinned::new(device, nbytes)?) }) } else { Ok(slot) }
    }

    /// Frees all of them.
    pub(crate) fn release(&self, device: &'static Device) {
        self.recover(device);
        let idle = std::mem::take(&mut *self.slots.lock());
        drop(idle);
    }

    /// Frees the slots of which nobody can say when their copies end, once the device is done with everything.
    fn recover(&self, device: &'static Device) {
        let mut lost = std::mem::take(&mut *self.lost.lock());
        if lost.is_empty() {
            return;
        }
        if device.synchronize_all().is_ok() {
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

/// Pinned memory that one read has, and gives back when dropped.
pub(crate) struct Slot {
    pinned: Option<Pinned>,
}

impl Slot {
    /// The memory, when no copy uses it any more.
    pub(crate) fn ready(&mut self) -> Result<(NonNull<u8>, usize)> {
        let Some(pinned) = &mut self.pinned else { return Ok((NonNull::dangling(), 0)) };
        if !pinned.copies.is_empty() {
            // Where nobody can say when a copy ends, the memory is not used before the whole device is done.
            pinned.lost = true;
            pinned.copies.drain(..).try_for_each(|(_, copy)| copy.wait())?;
            pinned.lost = false;
        }
        Ok((pinned.pointer, pinned.nbytes))
    }

    /// Copies these of its bytes to the device, in `stream`. The caller does not wait.
    pub(crate) fn send(&mut self, bytes: Range<usize>, to: Address, stream: Stream) -> Result<()> {
        self.copy(&bytes, stream, |current, pointer| {
            // SAFETY: the slot has these bytes, and keeps them until the event of this copy.
            unsafe { current.driver.copy_to_device(to, pointer.cast_const(), bytes.len(), stream.handle()) }
        })
    }

    /// Copies `nbytes` bytes from the device, in `stream`. The caller does not wait: [`ready`](Slot::ready) does.
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
            return Err(Error::Unsupported(format!("a slot has no {} bytes", bytes.end)));
        };
        if bytes.is_empty() {
            return Ok(());
        }
        let current = pinned.device.enter()?;
        pinned.lost = true;
        // SAFETY: the range lies in the memory.
        let start = unsafe { pinned.pointer.add(bytes.start) };
        submit(&current, start.as_ptr().cast())?;
        let copy = Event::record(pinned.device, stream)?;
        // It comes after the copies before in the same stream.
        pinned.copies.retain(|(other, _)| *other != stream);
        pinned.copies.push((stream, copy));
        pinned.lost = false;
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            pinned.device.idle.put(pinned);
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
