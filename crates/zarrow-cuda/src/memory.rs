//! Memory of a device that is ours: taken and freed in the order of a stream.
//!
//! 1. Memory is taken from the device's pool in a stream, `Device::stream` for what is handed out. What uses it there comes
//!    afterwards by itself; other streams wait for an event.
//! 2. Whoever lends it to another library names the stream in which that library uses it.
//! 3. When nobody has it any more, it is freed: in its stream, where nobody else has used it. Else a
//!    [thread](crate::release) has another stream wait for those streams and frees it there, so that neither thread nor
//!    stream of a read waits for what a consumer does.
//! 4. A consumer may destroy its stream, or use the memory in a stream which it does not name. So only streams that are known to
//!    last are waited for; for others the thread waits until the device has done all that it was given.

use crate::device::{Current, Device};
use crate::driver::functions::Address;
use crate::driver::status::OUT_OF_MEMORY;
use crate::error::{Error, Result};
use crate::release;
use crate::stream::Stream;
use smallvec::SmallVec;
use std::fmt;
use zarrow_array::fork::{Mutex, OnceCell, generation};

/// How the driver aligns memory of a device. What is put into one such memory is aligned alike.
pub(crate) const ALIGNMENT: usize = 256;

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
    consumers: Mutex<Consumers>,
}

/// Who has used lent memory.
#[derive(Debug, Default)]
struct Consumers {
    /// Streams that last.
    streams: SmallVec<[Stream; 2]>,
    /// Whether there are others.
    has_others: bool,
}

/// Memory that nobody has any more, and that was lent.
#[derive(Debug)]
pub(crate) struct Unused {
    address: Address,
    stream: Stream,
    consumers: Consumers,
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
        let mut consumers = self.consumers.lock();
        // Which stream the default one is depends on the thread, and another one frees the memory. The legacy default
        // stream waits for those of all threads.
        let stream = if stream == Stream::PER_THREAD { Stream::LEGACY } else { stream };
        if !stream.lasts() {
            consumers.has_others = true;
        } else if !consumers.streams.contains(&stream) {
            consumers.streams.push(stream);
        }
    }

    /// The streams in which others use it that are known to last, and whether there are others.
    pub(crate) fn consumers(&self) -> (SmallVec<[Stream; 2]>, bool) {
        let consumers = self.consumers.lock();
        (consumers.streams.clone(), consumers.has_others)
    }

    /// As [`is_used_in`](DeviceMemory::is_used_in), for a consumer that names no stream.
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
            // SAFETY: the memory was taken by `take`, nobody has it any more, and it is freed once.
            let _ = unsafe { free(&current, device, address, stream) };
            return;
        }
        device.unused.lock().push(Unused { address, stream, consumers });
        release::later(move || device.free_unused());
    }
}

/// Frees memory that was taken by [`take`], when `stream` has done what uses it.
///
/// # Safety
/// Nobody has the memory any more.
unsafe fn free(current: &Current, device: &Device, address: Address, stream: Stream) -> Result<()> {
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

impl Device {
    /// Frees the memory that was lent and that nobody has any more (steps 3 and 4).
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
        // Where nobody can say that the memory is no longer used, it is never freed.
        if !others.is_empty() && self.synchronize_all().is_ok() {
            ordered.append(&mut others);
        }
        let Ok(current) = self.enter() else { return };
        for memory in ordered {
            // SAFETY: each was taken by `take`, and is freed once; what used it comes before, in this stream or at all.
            let _ = unsafe { free(&current, self, memory.address, self.freeing()) };
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
