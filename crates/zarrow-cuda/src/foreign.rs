//! Device memory borrowed from another library.
//!
//! Its owner may reuse it immediately after its return, in a stream that we do not know. So it is returned once our
//! stream has done all work submitted before; a [thread](crate::release) waits for that.

use crate::device::Device;
use crate::event::Event;
use crate::release;
use std::fmt;
use zarrow_array::fork::generation;

/// Owner of borrowed memory, dropped when our stream no longer uses it.
pub struct ForeignMemory {
    device: &'static Device,
    owner: Option<Box<dyn Send + Sync>>,
    generation: u64,
}

impl ForeignMemory {
    /// Borrows memory of `device` that lives as long as `owner`.
    #[must_use]
    pub fn new(device: &'static Device, owner: Box<dyn Send + Sync>) -> ForeignMemory {
        ForeignMemory { device, owner: Some(owner), generation: generation() }
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }
}

impl Drop for ForeignMemory {
    fn drop(&mut self) {
        let owner = self.owner.take();
        if self.generation != generation() {
            // The parent returns it; a child has no device to free it on.
            std::mem::forget(owner);
            return;
        }
        let device = self.device;
        release::later(move || {
            let waited = Event::record(device, device.stream()).and_then(|event| event.wait());
            match waited.or_else(|_| device.synchronize_all()) {
                Ok(()) => drop(owner),
                // The memory may still be in use.
                Err(_) => std::mem::forget(owner),
            }
        });
    }
}

impl fmt::Debug for ForeignMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ForeignMemory").field("device", &self.device).finish_non_exhaustive()
    }
}
