//! Filling a slot: steps 1 and 2 of [`batch`](super).

use super::Batches;
use super::planned::Room;
use super::slot::{Batch, FillingBatch};
use crate::error::{Error, Result};
use crate::memory::ALIGNMENT;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use zarrow_array::allocation::Grow;
use zarrow_array::fork::Mutex;

/// Range of a batch's slot that one thread fills.
pub(super) struct Filling<'a> {
    shared: &'a Mutex<FillingBatch>,
    start: usize,
    memory: &'a mut [MaybeUninit<u8>],
}

impl Filling<'_> {
    /// Returns the start of the range in the slot.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Returns the bytes of the range.
    pub(super) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        self.memory
    }

    /// Marks the bytes as unused.
    pub(super) fn leave(&self) -> Result<()> {
        let range = self.start..self.start + self.memory.len();
        self.add(|batch| Ok(batch.unused.try_push(range)?))
    }

    /// Adds to the lists of the batch.
    pub(super) fn add(&self, add: impl FnOnce(&mut Batch) -> Result<()>) -> Result<()> {
        let mut shared = self.shared.lock();
        let given = || Err(Error::Unsupported("a batch was submitted while it was filled".to_owned()));
        shared.batch.as_mut().map_or_else(given, add)
    }
}

impl Batches<'_> {
    /// Runs `work` on a range of an open batch, concurrently with other threads. The last thread submits a full batch
    /// to the device.
    pub(super) fn fill_batch<T>(
        &self,
        room: Room,
        work: impl FnOnce(&mut Filling<'_>) -> zarrow::Result<T>,
    ) -> zarrow::Result<T> {
        let (shared, start, pointer) = self.reserve(room).map_err(|error| self.stop(error))?;
        // SAFETY: `set_aside` gives each range of the slot to one caller. The slot is copied from only when
        // `fillers` is 0, and this caller counts until its work is done.
        let memory = unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr().cast(), room.nbytes) };
        let done = work(&mut Filling { shared: &shared, start, memory });
        let full = {
            let mut shared = shared.lock();
            shared.fillers -= 1;
            if let Some(batch) = &mut shared.batch {
                batch.promised -= room.decompressed;
            }
            shared.take()
        };
        // A failed read submits nothing more to the device.
        let done = done?;
        full.map_or(Ok(()), |batch| self.submit(batch)).map_err(|error| self.stop(error))?;
        Ok(done)
    }

    /// Reserves bytes of the open batch, or of the next one.
    fn reserve(&self, room: Room) -> Result<(Arc<Mutex<FillingBatch>>, usize, NonNull<u8>)> {
        let mut open = self.open.lock();
        if let Some(shared) = &*open
            && let Some(place) = shared.lock().reserve(room)?
        {
            return Ok((Arc::clone(shared), place.0, place.1));
        }
        // The next slot is taken before the copy of this one begins, so that they differ. Other threads that arrive
        // in the meantime need it too.
        let nbytes = room.nbytes.saturating_add(room.lists_nbytes()).saturating_add(2 * ALIGNMENT);
        let mut next = Batch::new(self.result.device(), nbytes)?;
        let (start, pointer) = next.set_aside(room)?;
        let next = Arc::new(Mutex::new(FillingBatch { batch: Some(next), fillers: 1, is_full: false }));
        let before = open.replace(Arc::clone(&next));
        drop(open);
        if let Some(full) = before.and_then(|shared| shared.lock().close()) {
            self.submit(full)?;
        }
        Ok((next, start, pointer))
    }

    /// Submits the remaining batch, after all threads have ended.
    pub(super) fn submit_last(&self) -> Result<()> {
        let last = self.open.lock().take();
        let full = last.and_then(|shared| shared.lock().close());
        full.map_or(Ok(()), |batch| self.submit(batch))
    }
}
