//! Additional streams of a device that work on the parts of a read concurrently.
//!
//! 1. A part is all work on one slot: memory is allocated, the slot is copied to it, kernels place the elements.
//!    All of it goes to one lane, in order; the next part goes to the next lane. So the link copies one part while
//!    the device works on others, and several batches of frames fill a device that one would not.
//! 2. In a read, each lane begins after all earlier work in our stream, where the result's memory was allocated.
//! 3. Our stream continues after the lanes are done. If this order cannot be established, the result's memory is
//!    never freed, since a lane might still write to it.

use crate::device::{Device, MAX_LANES};
use crate::error::Result;
use crate::event::Event;
use crate::stream::Stream;
use crate::tensor::DeviceTensor;
use std::sync::atomic::{AtomicUsize, Ordering};
use zarrow_array::fork::Mutex;

/// The lanes of one read into `result`.
pub(crate) struct Lanes<'a> {
    result: &'a DeviceTensor,
    /// Event of step 2.
    begin: Event,
    begun: Mutex<[bool; MAX_LANES]>,
    next: AtomicUsize,
}

impl<'a> Lanes<'a> {
    /// Creates the lanes on the device of `result`.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(crate) fn new(result: &'a DeviceTensor) -> Result<Lanes<'a>> {
        let (device, begun, next) = (result.device(), Mutex::default(), AtomicUsize::new(0));
        let begin = Event::record(device, device.stream())?;
        let lanes = Lanes { result, begin, begun, next };
        device.read_begins()?;
        Ok(lanes)
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &'static Device {
        self.result.device()
    }

    /// Returns the lane of the next part.
    ///
    /// # Errors
    /// Errors of the driver.
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

    /// Step 3, after all parts were submitted.
    ///
    /// # Errors
    /// Errors of the driver.
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
        // After `finish` all lanes are closed already.
        let _ = self.close();
        self.device().read_ends();
    }
}
