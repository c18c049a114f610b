//! Frees exported device memory after its last use.
//!
//! 1. A [thread](crate::release) makes another stream wait for the consumers' streams and frees the memory there, so that
//!    no thread or stream of a read waits for the work of a consumer.
//! 2. A consumer may destroy its stream, or use the memory in an unknown stream. So only permanent streams are waited
//!    for; for others the thread waits until the device has finished all of its work.

use crate::device::Device;
use crate::memory::free;
use crate::stream::Stream;

impl Device {
    /// Frees exported memory after its last reference was dropped.
    pub(crate) fn free_unused(&'static self) {
        let unused = std::mem::take(&mut *self.unused.lock());
        let (mut ordered, mut others) = (Vec::new(), Vec::new());
        for memory in unused {
            let wait = |stream: &Stream| self.order(*stream, self.freeing()).is_ok();
            let is_ordered = !memory.consumers.has_others
                && wait(&memory.stream)
                && memory.consumers.streams.iter().all(wait);
            if is_ordered { ordered.push(memory) } else { others.push(memory) }
        }
        // Memory that may still be in use is never freed.
        if !others.is_empty() && self.synchronize_all().is_ok() {
            ordered.append(&mut others);
        }
        let Ok(current) = self.enter() else { return };
        for memory in ordered {
            // SAFETY: `DeviceMemory` allocated each, and it is freed once; its uses are ordered before, in this stream
            // or by the wait.
            let _ = unsafe { free(&current, self, memory.address, self.freeing()) };
        }
    }
}
