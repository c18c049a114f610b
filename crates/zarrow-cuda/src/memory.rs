//! Our device memory, allocated and freed in the order of a stream.
//!
//! 1. Memory is allocated from the device's pool in a stream: `Device::stream` for memory that is handed out. Uses
//!    in the same stream are ordered after that; other streams wait for an event.
//! 2. Code that exports it to another library records the stream that library uses it in.
//! 3. After its last use it is freed: in its own stream if there are no other users, else as [`free_exported`] says.
//!
//! [`free_exported`]: crate::free_exported

use crate::context::Current;
use crate::device::Device;
use crate::driver::functions::Address;
use crate::driver::status::OUT_OF_MEMORY;
use crate::error::{Error, Result};
use crate::release;
use crate::stream::Stream;
use crate::unused::{Consumers, Unused};
use smallvec::SmallVec;
use std::fmt;
use zarrow_array::fork::{Mutex, OnceCell, generation};

/// Alignment of the driver's device memory, also used within one allocation.
pub(crate) const ALIGNMENT: usize = 256;

/// Frees memory cached by other libraries of the process.
type Reclaim = Box<dyn Fn() + Send + Sync>;

static RECLAIM: OnceCell<Reclaim> = OnceCell::new();

/// Sets a function to call, once per allocation, when a device is out of memory, before a retry: other libraries
/// cache memory (PyTorch, CuPy), which the driver counts as used. Only the first call has an effect.
pub fn set_reclaim(reclaim: impl Fn() + Send + Sync + 'static) {
    RECLAIM.set(Box::new(reclaim));
}

/// Bytes on a device, freed on drop.
pub struct DeviceMemory {
    device: &'static Device,
    address: Address,
    nbytes: usize,
    stream: Stream,
    generation: u64,
    consumers: Mutex<Consumers>,
}

impl DeviceMemory {
    /// Allocates uninitialized memory in the device's stream (step 1); 0 bytes need no allocation.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], after a retry with all cached memory freed.
    pub fn new(device: &'static Device, nbytes: usize) -> Result<DeviceMemory> {
        DeviceMemory::new_in(device, nbytes, device.stream())
    }

    /// Allocates in `stream`, which must be one of the device's own (step 1).
    pub(crate) fn new_in(device: &'static Device, nbytes: usize, stream: Stream) -> Result<DeviceMemory> {
        let current = device.enter()?;
        let address = match take(&current, device, nbytes, stream) {
            Err(Error::Driver { code: OUT_OF_MEMORY, .. }) => {
                device.give_back()?;
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

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Returns the address of the first byte on the device; 0 if there are no bytes.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Records a use in `stream` (step 2).
    pub fn is_used_in(&self, stream: Stream) {
        let mut consumers = self.consumers.lock();
        // The per-thread default stream depends on the thread, and another thread frees the memory. The legacy
        // default stream waits for those of all threads.
        let stream = if stream == Stream::PER_THREAD { Stream::LEGACY } else { stream };
        if !stream.lasts() {
            consumers.has_others = true;
        } else if !consumers.streams.contains(&stream) {
            consumers.streams.push(stream);
        }
    }

    /// Returns the permanent streams of other users, and whether there are users in other streams.
    pub(crate) fn consumers(&self) -> (SmallVec<[Stream; 2]>, bool) {
        let consumers = self.consumers.lock();
        (consumers.streams.clone(), consumers.has_others)
    }

    /// Like [`is_used_in`](DeviceMemory::is_used_in), for an unknown stream.
    pub fn is_used_anywhere(&self) {
        self.consumers.lock().has_others = true;
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
        // Step 3.
        let (device, address, stream) = (self.device, self.address, self.stream);
        let consumers = std::mem::take(&mut *self.consumers.lock());
        if consumers.streams.is_empty() && !consumers.has_others {
            let Ok(current) = device.enter() else { return };
            // SAFETY: the memory was allocated by `take`, has no other references, and is freed once.
            let _ = unsafe { free(&current, device, address, stream) };
            return;
        }
        device.unused.lock().push(Unused { address, stream, consumers });
        release::later(move || device.free_unused());
    }
}

/// Frees memory allocated by [`take`], after all earlier work in `stream`.
///
/// # Safety
/// The memory must have no other references.
pub(crate) unsafe fn free(
    current: &Current,
    device: &Device,
    address: Address,
    stream: Stream,
) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        match device.pool() {
            Some(_) => current.driver.free_async(address, stream.handle()),
            None => {
                current.driver.stream_synchronize(stream.handle()).and_then(|()| current.driver.free(address))
            }
        }
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
