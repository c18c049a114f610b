//! Events, points in streams that other streams and threads wait for.

use crate::context::PrimaryContext;
use crate::driver::functions::EventHandle;
use crate::driver::status::NOT_READY;
use crate::error::{Error, Result};
use crate::stream::Stream;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    handle: EventHandle,
    context: PrimaryContext,
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
    /// Records the point in a `stream` of the context's device after all work submitted so far.
    pub(crate) fn record_in(context: PrimaryContext, stream: Stream) -> Result<Event> {
        Event::with_flags(context, stream, SLEEPING | WITHOUT_TIMING)
    }

    /// Like [`record_in`](Event::record_in), with a timestamp.
    pub(crate) fn record_time(context: PrimaryContext, stream: Stream) -> Result<Event> {
        Event::with_flags(context, stream, SLEEPING)
    }

    /// Returns the seconds since `earlier`; both events must have timestamps and be reached.
    pub(crate) fn seconds_since(&self, earlier: &Event) -> Result<f64> {
        let current = self.context.enter()?;
        let mut milliseconds = 0f32;
        // SAFETY: the events are alive, and the number lives through the call.
        unsafe {
            current.driver.event_elapsed_time(&raw mut milliseconds, earlier.handle, self.handle)?;
        }
        Ok(f64::from(milliseconds) / 1e3)
    }

    fn with_flags(context: PrimaryContext, stream: Stream, flags: u32) -> Result<Event> {
        let current = context.enter()?;
        let mut event = Event { handle: null_mut(), context };
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
        let current = self.context.enter()?;
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
        let current = self.context.enter()?;
        // SAFETY: the event is alive.
        unsafe { current.driver.event_synchronize(self.handle) }
    }

    /// Returns whether the point is reached.
    ///
    /// # Errors
    /// See [`wait`](Event::wait).
    pub fn is_reached(&self) -> Result<bool> {
        let current = self.context.enter()?;
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
        if let Ok(current) = self.context.enter() {
            // SAFETY: only we use the event; the driver keeps it as long as streams wait for it.
            let _ = unsafe { current.driver.event_destroy(self.handle) };
        }
    }
}
