//! Streams, the queues of a device, and events, by which one waits for another.

use crate::device::Device;
use crate::driver::functions::{EventHandle, StreamHandle};
use crate::driver::status::NOT_READY;
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::ptr::null_mut;

/// A stream: work in one is done in order. It may belong to another library.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    handle: usize,
    lasts: bool,
}

impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        self.handle == other.handle
    }
}

impl Eq for Stream {}

impl Stream {
    /// The legacy default stream, which waits for all streams that were made to wait for it.
    pub const LEGACY: Stream = Stream { handle: 1, lasts: true };
    /// The default stream of the calling thread.
    pub const PER_THREAD: Stream = Stream { handle: 2, lasts: true };

    /// The stream that a number means in DLPack and in `__cuda_array_interface__`: 1 and 2 are the default streams, and
    /// any other number but 0 is a `CUstream`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for 0, which could mean either default stream, and for negative numbers.
    pub fn from_number(number: i64) -> Result<Stream> {
        match usize::try_from(number) {
            Ok(handle) if handle != 0 => Ok(Stream { handle, lasts: handle <= 2 }),
            _ => Err(Error::Unsupported(format!(
                "invalid stream {number}: expected 1 (the legacy default stream), 2 (the per-thread default stream) or \
                 the handle of a stream"
            ))),
        }
    }

    /// The number for it, as [`from_number`](Stream::from_number) takes it.
    #[must_use]
    pub fn number(self) -> usize {
        self.handle
    }

    /// The same stream, of a library that never destroys it: what waits for it may do so at any time. The default streams
    /// last by themselves.
    #[must_use]
    pub fn that_lasts(self) -> Stream {
        Stream { lasts: true, ..self }
    }

    /// Whether it is there as long as the process.
    #[must_use]
    pub fn lasts(self) -> bool {
        self.lasts
    }

    pub(crate) fn from_handle(handle: StreamHandle) -> Stream {
        Stream { handle: handle.addr(), lasts: true }
    }

    pub(crate) fn handle(self) -> StreamHandle {
        std::ptr::without_provenance_mut(self.handle)
    }
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    handle: EventHandle,
    device: &'static Device,
}

// SAFETY: the driver's handles may be used by any thread whose context is the event's, which `enter` sees to.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// `CU_EVENT_BLOCKING_SYNC`: a thread that waits sleeps, since others decode meanwhile.
const SLEEPING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIMING: u32 = 2;

impl Event {
    /// The point that `stream`, of `device`, has reached when all that was given to it so far is done.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn record(device: &'static Device, stream: Stream) -> Result<Event> {
        Event::with_flags(device, stream, SLEEPING | WITHOUT_TIMING)
    }

    /// As [`record`](Event::record), with the time at which the stream was there.
    pub(crate) fn record_time(device: &'static Device, stream: Stream) -> Result<Event> {
        Event::with_flags(device, stream, SLEEPING)
    }

    /// Seconds from `earlier` to this, both recorded with their time and reached.
    pub(crate) fn seconds_since(&self, earlier: &Event) -> Result<f64> {
        let current = self.device.enter()?;
        let mut milliseconds = 0f32;
        // SAFETY: the events are alive, and the number lives through the call.
        unsafe {
            current.driver.event_elapsed_time(&raw mut milliseconds, earlier.handle, self.handle)?;
        }
        Ok(f64::from(milliseconds) / 1e3)
    }

    fn with_flags(device: &'static Device, stream: Stream, flags: u32) -> Result<Event> {
        let current = device.enter()?;
        let mut event = Event { handle: null_mut(), device };
        // SAFETY: the handle is written to a place that lives through the call, and recorded in a stream that the
        // caller has; a stream that does not exist is an error of the driver's.
        unsafe {
            current.driver.event_create(&raw mut event.handle, flags)?;
            current.driver.event_record(event.handle, stream.handle())?;
        }
        Ok(event)
    }

    /// Has `stream` wait for the point: what is given to it from now on begins afterwards. The caller does not wait.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn hold_back(&self, stream: Stream) -> Result<()> {
        let current = self.device.enter()?;
        // SAFETY: the event is alive.
        unsafe { current.driver.stream_wait_event(stream.handle(), self.handle, 0) }
    }

    /// Where its `CUevent` is, as long as the event is not moved.
    #[must_use]
    pub fn as_ptr(&self) -> *const c_void {
        (&raw const self.handle).cast()
    }

    /// Waits until the point is reached.
    ///
    /// # Errors
    /// What the driver answers: a kernel that failed is told here.
    pub fn wait(&self) -> Result<()> {
        let current = self.device.enter()?;
        // SAFETY: the event is alive.
        unsafe { current.driver.event_synchronize(self.handle) }
    }

    /// Whether the point is reached.
    ///
    /// # Errors
    /// As [`wait`](Event::wait).
    pub fn is_reached(&self) -> Result<bool> {
        let current = self.device.enter()?;
        // SAFETY: the event is alive.
        match unsafe { current.driver.event_query(self.handle) } {
            Ok(()) => Ok(true),
            Err(Error::Driver { code: NOT_READY, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.handle.is_null() {
            return;
        }
        // In a forked child, and when the driver shuts down, there is nothing to destroy it with.
        if let Ok(current) = self.device.enter() {
            // SAFETY: the event is ours alone; the driver keeps what streams still wait for.
            let _ = unsafe { current.driver.event_destroy(self.handle) };
        }
    }
}
