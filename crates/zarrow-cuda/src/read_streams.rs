//! Additional streams of a device that work on the parts of a read concurrently.
//!
//! 1. A part is all work on one slot: memory is allocated, the slot is copied to it, kernels place the elements.
//!    All of it goes to one stream, in order; the next part goes to the next stream. So the link copies one part while
//!    the device works on others, and several batches of frames fill a device that one would not.
//! 2. In a read, each begins after all earlier work in our stream, where the result's memory was allocated.
//! 3. Our stream continues after these streams are done. If this order cannot be established, the result's memory is
//!    never freed, since a stream might still write to it.

use crate::device::{Device, MAX_READ_STREAMS};
use crate::error::Result;
use crate::event::Event;
use crate::stream::Stream;
use crate::tensor::DeviceTensor;
use std::sync::atomic::{AtomicUsize, Ordering};
use zarrow_array::fork::Mutex;

/// The streams of one read into `result`.
pub(crate) struct ReadStreams<'a> {
    result: &'a DeviceTensor,
    /// Event of step 2.
    begin: Event,
    begun: Mutex<[bool; MAX_READ_STREAMS]>,
    next: AtomicUsize,
}

impl<'a> ReadStreams<'a> {
    /// Creates the streams on the device of `result`.
    pub(crate) fn new(result: &'a DeviceTensor) -> Result<ReadStreams<'a>> {
        let (device, begun, next) = (result.device(), Mutex::default(), AtomicUsize::new(0));
        let begin = Event::record(device, device.stream())?;
        let streams = ReadStreams { result, begin, begun, next };
        device.read_begins()?;
        Ok(streams)
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &'static Device {
        self.result.device()
    }

    /// Returns the stream of the next part.
    pub(crate) fn next(&self) -> Result<Stream> {
        let streams = self.device().streams();
        let number = self.next.fetch_add(1, Ordering::Relaxed) % streams.len();
        let stream = streams[number];
        let mut begun = self.begun.lock();
        if !begun[number] {
            self.begin.hold_back(stream)?;
            begun[number] = true;
        }
        Ok(stream)
    }

    /// Step 3, after all parts were submitted.
    pub(crate) fn finish(self) -> Result<()> {
        self.close()
    }

    fn close(&self) -> Result<()> {
        let device = self.device();
        let begun = std::mem::take(&mut *self.begun.lock());
        let used = device.streams().iter().zip(begun).filter_map(|(stream, begun)| begun.then_some(*stream));
        let mut outcome = Ok(());
        for stream in used {
            outcome = outcome.and(device.order(stream, device.stream()));
        }
        if outcome.is_err() && device.synchronize_all().is_err() {
            std::mem::forget(self.result.clone());
        }
        outcome
    }
}

impl Drop for ReadStreams<'_> {
    fn drop(&mut self) {
        // After `finish` all streams are closed already.
        let _ = self.close();
        self.device().read_ends();
    }
}
