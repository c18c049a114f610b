//! The primary context of a device, which all libraries of the process share.

use crate::driver::Driver;
use crate::driver::functions::{Context, Ordinal};
use crate::error::Result;
use crate::stream::Stream;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`: calls of this thread do not end a graph capture in another thread.
const RELAXED: c_int = 2;
/// `CU_STREAM_NON_BLOCKING`: not synchronized with the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// A primary context, retained as long as the process lives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrimaryContext {
    driver: &'static Driver,
    handle: Context,
}

// SAFETY: any thread may use contexts of the driver.
unsafe impl Send for PrimaryContext {}
// SAFETY: as above.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    /// Creates the primary context of a device, or shares the existing one.
    pub(crate) fn retain(driver: &'static Driver, device: Ordinal) -> Result<PrimaryContext> {
        let mut handle = null_mut();
        // SAFETY: the handle is written to a place that lives through the call.
        unsafe { driver.primary_context_retain(&raw mut handle, device)? };
        Ok(PrimaryContext { driver, handle })
    }

    /// Makes the context current in this thread while the guard lives.
    pub(crate) fn enter(self) -> Result<Current> {
        Current::enter(self.driver, self.handle)
    }

    /// Waits for all work of all libraries on the device.
    pub(crate) fn synchronize(self) -> Result<()> {
        let current = self.enter()?;
        // SAFETY: the context belongs to the device.
        unsafe { current.driver.context_synchronize() }
    }
}

/// RAII guard: the device's context is current in this thread. Dropping it restores the thread's previous context.
pub(crate) struct Current {
    pub(crate) driver: &'static Driver,
    /// Previous capture mode of this thread.
    capture_mode: c_int,
    /// The current context is a property of the thread.
    _thread: PhantomData<*mut ()>,
}

impl Current {
    fn enter(driver: &'static Driver, context: Context) -> Result<Current> {
        driver.check()?;
        // SAFETY: the context is a primary one, which its device retains as long as the process lives.
        unsafe { driver.context_push(context)? };
        let mut current = Current { driver, capture_mode: RELAXED, _thread: PhantomData };
        // SAFETY: the mode is exchanged with the thread's, and lives through the call.
        unsafe { driver.exchange_capture_mode(&raw mut current.capture_mode)? };
        Ok(current)
    }

    /// Creates a stream of the device.
    pub(crate) fn make_stream(&self) -> Result<Stream> {
        let mut handle = null_mut();
        // SAFETY: the handle is written to a place that lives through the call.
        unsafe { self.driver.stream_create(&raw mut handle, NON_BLOCKING)? };
        Ok(Stream::from_handle(handle))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: the mode was this thread's, and the context was pushed by it; the guard cannot leave the thread.
        let _ = unsafe {
            let _ = self.driver.exchange_capture_mode(&raw mut self.capture_mode);
            self.driver.context_pop(&raw mut context)
        };
    }
}
