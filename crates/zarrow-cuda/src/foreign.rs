//! Memory of a device that another library lent us.
//!
//! Its owner may use it again as soon as it is given back, in a stream that we do not know. So it is given back when our
//! stream has done everything that was given to it before, for which a [thread](crate::release) waits.

use crate::device::Device;
use crate::release;
use crate::stream::Event;
use std::fmt;
use zarrow_array::fork::generation;

/// The owner of lent memory, which is dropped when our stream no longer uses it.
pub struct ForeignMemory {
    device: &'static Device,
    owner: Option<Box<dyn Send + Sync>>,
    generation: u64,
}

impl ForeignMemory {
    /// Memory of `device` that stays as long as `owner`.
    #[must_use]
    pub fn new(device: &'static Device, owner: Box<dyn Send + Sync>) -> ForeignMemory {
        ForeignMemory { device, owner: Some(owner), generation: generation() }
    }

    /// Where it is.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }
}

impl Drop for ForeignMemory {
    fn drop(&mut self) {
        let owner = self.owner.take();
        if self.generation != generation() {
            // The parent gives it back; a child has no device to free it on.
            std::mem::forget(owner);
            return;
        }
        let device = self.device;
        release::later(move || {
            let waited = Event::record(device, device.stream()).and_then(|event| event.wait());
            match waited.or_else(|_| device.synchronize_all()) {
                Ok(()) => drop(owner),
                // Nobody can say that the memory is no longer used.
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
