//! Streams beside a device's own, in which the parts of a read go on at once.
//!
//! 1. A part is all that is done with one slot: memory is taken, the slot is copied there, kernels bring it to its place. All
//!    of that goes to one lane, in order; the next part goes to the next lane. So the link copies one part while the device
//!    works on others, and several batches of frames keep a device busy that one would not.
//! 2. A lane begins with a read when our stream has done what was given to it before: the result's memory was taken there.
//! 3. Our stream goes on when the lanes have done their parts. Where it cannot be made to wait, the result's memory is
//!    never freed, since a lane might still write to it.

use crate::device::{Device, MAX_LANES};
use crate::error::Result;
use crate::stream::{Event, Stream};
use crate::tensor::DeviceTensor;
use std::sync::atomic::{AtomicUsize, Ordering};
use zarrow_array::fork::Mutex;

/// The lanes of one read, which writes to `result`.
pub(crate) struct Lanes<'a> {
    result: &'a DeviceTensor,
    /// Step 2.
    begin: Event,
    begun: Mutex<[bool; MAX_LANES]>,
    next: AtomicUsize,
}

impl<'a> Lanes<'a> {
    /// Those of the device of `result`.
    ///
    /// # Errors
    /// What the driver answers.
    pub(crate) fn new(result: &'a DeviceTensor) -> Result<Lanes<'a>> {
        let (device, begun, next) = (result.device(), Mutex::default(), AtomicUsize::new(0));
        let begin = Event::record(device, device.stream())?;
        let lanes = Lanes { result, begin, begun, next };
        device.read_begins()?;
        Ok(lanes)
    }

    /// The device.
    pub(crate) fn device(&self) -> &'static Device {
        self.result.device()
    }

    /// The lane of the next part.
    ///
    /// # Errors
    /// What the driver answers.
    pub(crate) fn next(&self) -> Result<Stream> {
        let lanes = self.device().lanes();
        let number = self.next.fetch_add(1, Ordering::Relaxed) % lanes.len();
        let stream = lanes[number];
        let mut begun = self.begun.lock();
        if !begun[number] {
            self.begin.hold_back(stream)?;
            begun[number] = true;
        }
        Ok(stream)
    }

    /// Step 3, when all parts were given to their lanes.
    ///
    /// # Errors
    /// What the driver answers.
    pub(crate) fn finish(self) -> Result<()> {
        self.close()
    }

    fn close(&self) -> Result<()> {
        let device = self.device();
        let begun = std::mem::take(&mut *self.begun.lock());
        let used = device.lanes().iter().zip(begun).filter_map(|(lane, begun)| begun.then_some(*lane));
        let mut outcome = Ok(());
        for lane in used {
            outcome = outcome.and(device.order(lane, device.stream()));
        }
        if outcome.is_err() && device.synchronize_all().is_err() {
            std::mem::forget(self.result.clone());
        }
        outcome
    }
}

impl Drop for Lanes<'_> {
    fn drop(&mut self) {
        // After `finish` no lane is left.
        let _ = self.close();
        self.device().read_ends();
    }
}
