//! Streams, the queues of a device, and events to synchronize them.

use crate::device::Device;
use crate::driver::functions::{EventHandle, StreamHandle};
use crate::driver::status::NOT_READY;
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::ptr::null_mut;

/// A stream: its work is done in order. It may belong to another library.
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
    /// Legacy default stream, synchronized with all blocking streams.
    pub const LEGACY: Stream = Stream { handle: 1, lasts: true };
    /// Default stream of the calling thread.
    pub const PER_THREAD: Stream = Stream { handle: 2, lasts: true };

    /// Returns the stream of a number in DLPack and `__cuda_array_interface__`: 1 and 2 are the default streams,
    /// and any other number except 0 is a `CUstream`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for 0, which is ambiguous between the default streams, and for negative numbers.
    pub fn from_number(number: i64) -> Result<Stream> {
        match usize::try_from(number) {
            Ok(handle) if handle != 0 => Ok(Stream { handle, lasts: handle <= 2 }),
            _ => Err(Error::Unsupported(format!(
                "invalid stream {number}: expected 1 (the legacy default stream), 2 (the per-thread default stream) or \
                 the handle of a stream"
            ))),
        }
    }

    /// Returns its number, the inverse of [`from_number`](Stream::from_number).
    #[must_use]
    pub fn number(self) -> usize {
        self.handle
    }

    /// Marks the stream as permanent: its library never destroys it, so later waits for it are possible. Default
    /// streams are always permanent.
    #[must_use]
    pub fn that_lasts(self) -> Stream {
        Stream { lasts: true, ..self }
    }

    /// Returns whether the stream is permanent.
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

// SAFETY: any thread may use the driver's handles if its context is the event's, which `enter` ensures.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// `CU_EVENT_BLOCKING_SYNC`: waiting threads sleep, since others decode at the same time.
const SLEEPING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIMING: u32 = 2;

impl Event {
    /// Records the point in a `stream` of `device` after all work submitted so far.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn record(device: &'static Device, stream: Stream) -> Result<Event> {
        Event::with_flags(device, stream, SLEEPING | WITHOUT_TIMING)
    }

    /// Like [`record`](Event::record), with a timestamp.
    pub(crate) fn record_time(device: &'static Device, stream: Stream) -> Result<Event> {
        Event::with_flags(device, stream, SLEEPING)
    }

    /// Returns the seconds since `earlier`; both events must have timestamps and be reached.
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
        // SAFETY: the handle is written to a place that lives through the call, and the event is recorded in the
        // caller's stream; if that does not exist, the driver returns an error.
        unsafe {
            current.driver.event_create(&raw mut event.handle, flags)?;
            current.driver.event_record(event.handle, stream.handle())?;
        }
        Ok(event)
    }

    /// Orders later work in `stream` after this point, without waiting.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn hold_back(&self, stream: Stream) -> Result<()> {
        let current = self.device.enter()?;
        // SAFETY: the event is alive.
        unsafe { current.driver.stream_wait_event(stream.handle(), self.handle, 0) }
    }

    /// Returns a pointer to its `CUevent`, valid until the event is moved.
    #[must_use]
    pub fn as_ptr(&self) -> *const c_void {
        (&raw const self.handle).cast()
    }

    /// Waits until the point is reached.
    ///
    /// # Errors
    /// Errors of the driver, including failures of earlier kernels.
    pub fn wait(&self) -> Result<()> {
        let current = self.device.enter()?;
        // SAFETY: the event is alive.
        unsafe { current.driver.event_synchronize(self.handle) }
    }

    /// Returns whether the point is reached.
    ///
    /// # Errors
    /// See [`wait`](Event::wait).
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
        // In a forked child, and when the driver shuts down, the event cannot be destroyed.
        if let Ok(current) = self.device.enter() {
            // SAFETY: only we use the event; the driver keeps it as long as streams wait for it.
            let _ = unsafe { current.driver.event_destroy(self.handle) };
        }
    }
}
