//! A device: its primary context, shared by all libraries of the process, its streams and its memory pool.
//!
//! Work on our memory goes to one stream of the device, `stream`, so that it is ordered without waiting. The parts
//! of a read go to other streams, its [streams](crate::read_streams), concurrently. Events order them against `stream`.

use crate::context::{Current, PrimaryContext};
use crate::decompress::format::Format;
use crate::driver::Driver;
use crate::driver::functions::{MemoryPool, Ordinal};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::kernel::functions::Kernels;
use crate::memory_pool;
use crate::pinned::Idle;
use crate::rates::{Measured, Rates};
use crate::release;
use crate::stream::Stream;
use crate::unused::Unused;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use zarrow_array::fork::{Mutex, OnceCell};
use zarrow_dlpack::{DLDevice, DLDeviceType};

/// Maximum number of devices of one machine.
const MAX_DEVICES: usize = 64;
/// Maximum number of streams of a device.
pub(crate) const MAX_READ_STREAMS: usize = 8;
/// Device memory per stream: a part of a compressed read takes about 300 MiB (zstd's temporary memory).
const NBYTES_OF_STREAM: usize = 4 << 30;
/// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`.
const MEMORY_POOLS_SUPPORTED: c_int = 115;

/// Held while a device is opened, or its kernels are loaded.
static OPENING: Mutex<()> = Mutex::new(());

/// Devices used by this process.
static DEVICES: [OnceCell<Device>; MAX_DEVICES] = [const { OnceCell::new() }; MAX_DEVICES];

/// A CUDA device of this process; it lives as long as the process.
///
/// ```
/// match zarrow_cuda::Device::get(0) {
///     Ok(device) => println!("{device} is a {}", device.name()),
///     Err(error) => println!("{error}"),
/// }
/// ```
pub struct Device {
    context: PrimaryContext,
    ordinal: usize,
    name: String,
    stream: Stream,
    streams: Vec<Stream>,
    freeing: Stream,
    pool: Option<MemoryPool>,
    kernels: OnceCell<Kernels>,
    pub(crate) idle: Idle,
    pub(crate) unused: Mutex<Vec<Unused>>,
    /// Number of reads in progress.
    reads: Mutex<usize>,
    pub(crate) measured: Measured,
}

// SAFETY: any thread may use contexts, streams and pools of the driver.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// Returns the number of devices of this machine. Checks that the contexts of used devices are alive: a kernel
    /// of another library may have broken one.
    ///
    /// # Errors
    /// [`Error::Unavailable`], with the reason; [`Error::Forked`]; [`Error::ContextLost`].
    pub fn count() -> Result<usize> {
        let driver = Driver::get()?;
        for device in DEVICES.iter().filter_map(OnceCell::get) {
            if let Err(lost @ Error::ContextLost { .. }) = Event::record(device, device.stream) {
                return Err(lost);
            }
        }
        driver.count()
    }

    /// Returns device `ordinal`. The first call creates its primary context, or shares the existing one.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Forked`], [`Error::ContextLost`], [`Error::NoDevice`], and errors of the
    /// driver.
    pub fn get(ordinal: usize) -> Result<&'static Device> {
        let driver = Driver::get()?;
        let count = driver.count()?;
        match DEVICES.get(ordinal) {
            // A second open would leak its resources.
            Some(cell) if ordinal < count => opened(cell, || Device::open(driver, ordinal)),
            _ => Err(Error::NoDevice { ordinal, count }),
        }
    }

    fn open(driver: &'static Driver, ordinal: usize) -> Result<Device> {
        let mut number: Ordinal = 0;
        let mut name = [0; 256];
        let mut pools = 0;
        // SAFETY: each value is written to a place that lives through the call; the name has the length that is
        // passed.
        unsafe {
            driver.device(&raw mut number, c_int::try_from(ordinal).unwrap_or(c_int::MAX))?;
            driver.device_name(name.as_mut_ptr(), 256, number)?;
            driver.device_attribute(&raw mut pools, MEMORY_POOLS_SUPPORTED, number)?;
        }
        // SAFETY: the driver ends the name with NUL, within its length.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let context = PrimaryContext::retain(driver, number)?;
        let current = context.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the numbers live through the call.
        unsafe { driver.memory_info(&raw mut free, &raw mut total)? };
        // At least two, so that one copies while the other works.
        let count = (total / NBYTES_OF_STREAM).clamp(2, MAX_READ_STREAMS);
        let streams = (0..count).map(|_| current.make_stream()).collect::<Result<_>>()?;
        let pool = if pools == 0 { None } else { Some(memory_pool::create(&current, number)?) };
        Ok(Device {
            context,
            ordinal,
            name,
            stream: current.make_stream()?,
            streams,
            freeing: current.make_stream()?,
            pool,
            kernels: OnceCell::new(),
            idle: Idle::default(),
            unused: Mutex::default(),
            reads: Mutex::default(),
            measured: Measured::default(),
        })
    }

    /// Returns the index of the device.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Returns the device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the stream for all work on our memory.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Returns the streams for parts of reads: at least two, at most [`MAX_READ_STREAMS`].
    pub(crate) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Returns the stream for freeing memory that other libraries have used.
    pub(crate) fn freeing(&self) -> Stream {
        self.freeing
    }

    /// Returns the measured decompression rates of a format, on this device and on the host.
    #[must_use]
    pub fn rates(&self, format: Format) -> Rates {
        self.measured.of(format)
    }

    /// Sets the rates, for a known machine. Reads continue to measure.
    pub fn set_rates(&self, format: Format, rates: Rates) {
        self.measured.set(format, rates);
    }

    pub(crate) fn pool(&self) -> Option<MemoryPool> {
        self.pool
    }

    /// Returns the DLPack device.
    #[must_use]
    pub fn dlpack(&self) -> DLDevice {
        DLDevice::new(DLDeviceType::CUDA, i32::try_from(self.ordinal).unwrap_or(i32::MAX))
    }

    /// Returns the free and the total bytes of the device's memory.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the numbers live through the call.
        unsafe { current.driver.memory_info(&raw mut free, &raw mut total)? };
        Ok((free, total))
    }

    /// Returns the bytes held by the pool, in use or kept for reuse.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn reserved_nbytes(&self) -> Result<u64> {
        let Some(pool) = self.pool else { return Ok(0) };
        memory_pool::reserved(&self.enter()?, pool)
    }

    /// Called at the start of a read: until its end the pool keeps all freed memory, so that a batch reuses the
    /// memory of the previous one instead of allocating from the driver.
    pub(crate) fn read_begins(&self) -> Result<()> {
        let mut reads = self.reads.lock();
        *reads += 1;
        self.keep(u64::MAX)
    }

    pub(crate) fn read_ends(&self) {
        let mut reads = self.reads.lock();
        *reads -= 1;
        if *reads == 0 {
            // On failure the pool keeps more memory, until the next read.
            let _ = self.keep(memory_pool::KEPT_NBYTES);
        }
    }

    /// Lets the pool keep this much freed memory.
    fn keep(&self, nbytes: u64) -> Result<()> {
        self.pool.map_or(Ok(()), |pool| memory_pool::keep(&self.enter()?, pool, nbytes))
    }

    /// Returns the cached memory of the pool and the pinned ring to the driver.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn release_memory(&'static self) -> Result<()> {
        self.idle.release(self.context);
        self.give_back()
    }

    /// Returns the cached memory of the pool to the driver.
    pub(crate) fn give_back(&'static self) -> Result<()> {
        self.free_unused();
        let current = self.enter()?;
        // SAFETY: the streams and the pool belong to the device.
        unsafe {
            for stream in [self.stream, self.freeing].iter().chain(&self.streams) {
                current.driver.stream_synchronize(stream.handle())?;
            }
            self.pool.map_or(Ok(()), |pool| current.driver.pool_trim(pool, 0))
        }
    }

    /// Waits until all work on our memory is done.
    ///
    /// # Errors
    /// Errors of the driver, including failures of earlier work.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream belongs to the device.
        unsafe { self.enter()?.driver.stream_synchronize(self.stream.handle()) }
    }

    /// Like [`synchronize`](Device::synchronize), and also waits until all unused memory is freed, which may depend
    /// on other libraries.
    ///
    /// # Errors
    /// See [`synchronize`](Device::synchronize).
    pub fn settle(&'static self) -> Result<()> {
        self.synchronize()?;
        release::wait();
        // SAFETY: the stream belongs to the device.
        unsafe { self.enter()?.driver.stream_synchronize(self.freeing.handle()) }
    }

    /// Waits for all work of all libraries on the device: for memory with users in unknown streams.
    pub(crate) fn synchronize_all(&self) -> Result<()> {
        self.context.synchronize()
    }

    /// Orders later work in `later` after all work submitted to `earlier` so far. The caller does not wait.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn order(&'static self, earlier: Stream, later: Stream) -> Result<()> {
        if earlier == later { Ok(()) } else { Event::record(self, earlier)?.hold_back(later) }
    }

    /// Orders later work in our stream after an event of another library, and thus after the work before that
    /// event. The caller does not wait.
    ///
    /// # Errors
    /// Errors of the driver.
    ///
    /// # Safety
    /// `event` must be a `CUevent` that lives through the call.
    pub unsafe fn wait_for(&self, event: *mut c_void) -> Result<()> {
        let current = self.enter()?;
        // SAFETY: the stream belongs to the device; the event is valid by this function's contract.
        unsafe { current.driver.stream_wait_event(self.stream.handle(), event, 0) }
    }

    pub(crate) fn kernels(&self) -> Result<&Kernels> {
        // The driver takes tens of milliseconds to compile them.
        opened(&self.kernels, || Kernels::load(&self.enter()?))
    }

    /// Returns the primary context.
    pub(crate) fn context(&self) -> PrimaryContext {
        self.context
    }

    /// Makes the device's context current in this thread while the guard lives.
    pub(crate) fn enter(&self) -> Result<Current> {
        self.context.enter()
    }
}

/// Returns the value of `cell`, which `open` creates at the first call, in one thread at a time.
fn opened<T>(cell: &OnceCell<T>, open: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let _opening = OPENING.lock();
    match cell.get() {
        Some(value) => Ok(value),
        None => Ok(cell.set(open()?)),
    }
}

impl Event {
    /// Records the point in a `stream` of `device` after all work submitted so far.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn record(device: &'static Device, stream: Stream) -> Result<Event> {
        Event::record_in(device.context, stream)
    }
}

/// Returns the cached memory of all devices that this process has used to the driver.
///
/// # Errors
/// Errors of the driver.
pub fn release_memory() -> Result<()> {
    // A forked child has no device, and hence no device memory.
    let released = DEVICES.iter().filter_map(OnceCell::get).try_for_each(Device::release_memory);
    if matches!(released, Err(Error::Forked)) { Ok(()) } else { released }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cuda:{}", self.ordinal)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Device")
            .field("ordinal", &self.ordinal)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
