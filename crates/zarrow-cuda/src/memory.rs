//! Memory of a device that is ours: taken and freed in the order of a stream.
//!
//! 1. Memory is taken from the device's pool in a stream, `Device::stream` for what is handed out. What uses it there comes
//!    afterwards by itself; other streams wait for an event.
//! 2. Whoever lends it to another library names the stream in which that library uses it.
//! 3. When nobody has it any more, its stream waits for those streams, and the memory is freed there: what was given to
//!    them before is done by then, and no thread waits.

use crate::device::{Current, Device};
use crate::driver::functions::Address;
use crate::driver::status::OUT_OF_MEMORY;
use crate::error::{Error, Result};
use crate::stream::Stream;
use smallvec::SmallVec;
use std::fmt;
use zarrow_array::fork::{Mutex, OnceCell, generation};

/// Frees memory that other libraries of the process keep for later.
type Reclaim = Box<dyn Fn() + Send + Sync>;

static RECLAIM: OnceCell<Reclaim> = OnceCell::new();

/// Sets what is called, once for each allocation, where a device has no memory left, before it is tried again: other
/// libraries keep memory for later (PyTorch, CuPy), which the driver counts as used. The first call decides.
pub fn set_reclaim(reclaim: impl Fn() + Send + Sync + 'static) {
    RECLAIM.set(Box::new(reclaim));
}

/// Bytes of a device, freed when dropped.
pub struct DeviceMemory {
    device: &'static Device,
    address: Address,
    nbytes: usize,
    stream: Stream,
    generation: u64,
    consumers: Mutex<SmallVec<[Stream; 2]>>,
}

impl DeviceMemory {
    /// Step 1, in the device's stream. Its bytes have no values yet. Nothing is taken for 0 bytes.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], after what is kept for later was given back and it was tried again.
    pub fn new(device: &'static Device, nbytes: usize) -> Result<DeviceMemory> {
        DeviceMemory::new_in(device, nbytes, device.stream())
    }

    /// Step 1, in `stream`, which is one of the device's own.
    ///
    /// # Errors
    /// As [`new`](DeviceMemory::new).
    pub(crate) fn new_in(device: &'static Device, nbytes: usize, stream: Stream) -> Result<DeviceMemory> {
        let current = device.enter()?;
        let address = match take(&current, device, nbytes, stream) {
            Err(Error::Driver { code: OUT_OF_MEMORY, .. }) => {
                device.release_memory()?;
                if let Some(reclaim) = RECLAIM.get() {
                    reclaim();
                }
                take(&current, device, nbytes, stream)
            }
            taken => taken,
        };
        let address = address.map_err(|error| match error {
            Error::Driver { code: OUT_OF_MEMORY, .. } => {
                let place = match device.memory() {
                    Ok((free, total)) => format!("{device} ({free} of {total} are free)"),
                    Err(_) => device.to_string(),
                };
                Error::OutOfMemory { nbytes, place }
            }
            other => other,
        })?;
        let consumers = Mutex::default();
        Ok(DeviceMemory { device, address, nbytes, stream, generation: generation(), consumers })
    }

    /// Where it is.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// The address of the first byte, on the device; 0 where there are none.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Bytes there are.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Step 2.
    pub fn is_used_in(&self, stream: Stream) {
        // Which stream that is depends on the thread, and the one that frees the memory may be another. The legacy default
        // stream waits for the default streams of all threads.
        let stream = if stream == Stream::PER_THREAD { Stream::LEGACY } else { stream };
        let mut consumers = self.consumers.lock();
        if !consumers.contains(&stream) {
            consumers.push(stream);
        }
    }
}

fn take(current: &Current, device: &Device, nbytes: usize, stream: Stream) -> Result<Address> {
    let mut address = 0;
    if nbytes > 0 {
        // SAFETY: the address is written to a place that lives through the call.
        unsafe {
            match device.pool() {
                Some(pool) => {
                    current.driver.allocate_from_pool(&raw mut address, nbytes, pool, stream.handle())?;
                }
                None => current.driver.allocate(&raw mut address, nbytes)?,
            }
        }
    }
    Ok(address)
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // A forked child has no device; and when the driver shuts down it frees all memory itself.
        if self.address == 0 || self.generation != generation() {
            return;
        }
        // Step 3. A stream that its library has destroyed cannot be waited for, but the device can.
        let consumers = std::mem::take(&mut *self.consumers.lock());
        let wait = |consumer: &Stream| self.device.order(*consumer, self.stream).is_ok();
        if !consumers.iter().all(wait) && self.device.synchronize_all().is_err() {
            return;
        }
        let Ok(current) = self.device.enter() else { return };
        // SAFETY: the memory was taken by `take`, nobody has it any more, and it is freed once.
        let _ = unsafe {
            match self.device.pool() {
                Some(_) => current.driver.free_async(self.address, self.stream.handle()),
                None => current
                    .driver
                    .stream_synchronize(self.stream.handle())
                    .and_then(|()| current.driver.free(self.address)),
            }
        };
    }
}

impl fmt::Debug for DeviceMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeviceMemory")
            .field("device", &self.device)
            .field("address", &self.address)
            .field("nbytes", &self.nbytes)
            .finish_non_exhaustive()
    }
}
