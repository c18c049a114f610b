//! A device: its primary context, which all libraries of the process share, its streams and its pool of memory.
//!
//! Work on memory of ours is given to one stream of the device, `stream`, so that it is in order without anybody waiting.
//! Copies from the host have another, `copy_stream`, so that they go on beside kernels; events order the two.

use crate::decompress::Format;
use crate::driver::Driver;
use crate::driver::functions::{Context, MemoryPool, MemoryPoolProperties, Ordinal};
use crate::error::{Error, Result};
use crate::kernel::Kernels;
use crate::pinned::Idle;
use crate::rates::{Measured, Rates};
use crate::stream::{Event, Stream};
use std::ffi::{CStr, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{null_mut, without_provenance_mut};
use zarrow_array::fork::OnceCell;
use zarrow_dlpack::{DLDevice, DLDeviceType};

/// The most devices of one machine that are counted.
const MAX_DEVICES: usize = 64;
/// `CU_STREAM_NON_BLOCKING`: the legacy default stream does not order ours.
const NON_BLOCKING: u32 = 1;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: (c_int, c_int) = (75, 76);
/// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`.
const MEMORY_POOLS_SUPPORTED: c_int = 115;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD` and `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
/// What the pool keeps of memory that was freed, unless it is set.
const KEPT_NBYTES: u64 = 1 << 30;

/// The devices that this process has used.
static DEVICES: [OnceCell<Device>; MAX_DEVICES] = [const { OnceCell::new() }; MAX_DEVICES];

/// A CUDA device of this process, which lives as long as the process.
///
/// ```
/// match zarrow_cuda::Device::get(0) {
///     Ok(device) => println!("{device} is a {}", device.name()),
///     Err(error) => println!("{error}"),
/// }
/// ```
pub struct Device {
    driver: &'static Driver,
    ordinal: usize,
    context: Context,
    name: String,
    capability: (i32, i32),
    stream: Stream,
    copy_stream: Stream,
    pool: Option<MemoryPool>,
    kernels: OnceCell<Kernels>,
    pub(crate) idle: Idle,
    pub(crate) measured: Measured,
}

// SAFETY: contexts, streams and pools of the driver may be used by any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// How many devices this machine has.
    ///
    /// # Errors
    /// [`Error::Unavailable`], with the reason; [`Error::Forked`].
    pub fn count() -> Result<usize> {
        Driver::get()?.count()
    }

    /// Device `ordinal`, whose primary context is made or shared at the first call.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Forked`], [`Error::NoDevice`], and what the driver answers.
    pub fn get(ordinal: usize) -> Result<&'static Device> {
        let driver = Driver::get()?;
        let count = driver.count()?;
        match DEVICES.get(ordinal) {
            Some(cell) if ordinal < count => match cell.get() {
                Some(device) => Ok(device),
                None => Ok(cell.set(Device::open(driver, ordinal)?)),
            },
            _ => Err(Error::NoDevice { ordinal, count }),
        }
    }

    fn open(driver: &'static Driver, ordinal: usize) -> Result<Device> {
        let mut number: Ordinal = 0;
        let mut name = [0; 256];
        let (mut major, mut minor, mut pools) = (0, 0, 0);
        let mut context = null_mut();
        // SAFETY: each value is written to a place that lives through the call; the name has the length that is told.
        unsafe {
            driver.device(&raw mut number, c_int::try_from(ordinal).unwrap_or(c_int::MAX))?;
            driver.device_name(name.as_mut_ptr(), 256, number)?;
            driver.device_attribute(&raw mut major, CAPABILITY.0, number)?;
            driver.device_attribute(&raw mut minor, CAPABILITY.1, number)?;
            driver.device_attribute(&raw mut pools, MEMORY_POOLS_SUPPORTED, number)?;
            driver.primary_context_retain(&raw mut context, number)?;
        }
        // SAFETY: the driver ends the name with NUL, within its length.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let current = Current::enter(driver, context)?;
        let pool = if pools == 0 { None } else { Some(current.make_pool(number)?) };
        Ok(Device {
            driver,
            ordinal,
            context,
            name,
            capability: (major, minor),
            stream: current.make_stream()?,
            copy_stream: current.make_stream()?,
            pool,
            kernels: OnceCell::new(),
            idle: Idle::default(),
            measured: Measured::default(),
        })
    }

    /// Its number.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// What its maker calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its compute capability, such as (9, 0).
    #[must_use]
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// The stream in which all work on memory of ours is done.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// How fast frames of a format are decompressed here and on the host, as far as reads have measured it.
    #[must_use]
    pub fn rates(&self, format: Format) -> Rates {
        self.measured.of(format)
    }

    /// Sets them, for a machine that is known. Reads go on measuring.
    pub fn set_rates(&self, format: Format, rates: Rates) {
        self.measured.set(format, rates);
    }

    pub(crate) fn pool(&self) -> Option<MemoryPool> {
        self.pool
    }

    /// It, as DLPack names it.
    #[must_use]
    pub fn dlpack(&self) -> DLDevice {
        DLDevice::new(DLDeviceType::CUDA, i32::try_from(self.ordinal).unwrap_or(i32::MAX))
    }

    /// Bytes that are free on the device, and all it has.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the numbers live through the call.
        unsafe { current.driver.memory_info(&raw mut free, &raw mut total)? };
        Ok((free, total))
    }

    /// Bytes that the pool holds, in use or kept for later.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn reserved_nbytes(&self) -> Result<u64> {
        let Some(pool) = self.pool else { return Ok(0) };
        let (current, mut nbytes) = (self.enter()?, 0u64);
        // SAFETY: the attribute is a number of 64 bits, which lives through the call.
        unsafe { current.driver.pool_get_attribute(pool, RESERVED, (&raw mut nbytes).cast())? };
        Ok(nbytes)
    }

    /// How much freed memory the pool keeps for later; 1 GiB at first.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn keep(&self, nbytes: u64) -> Result<()> {
        self.pool.map_or(Ok(()), |pool| self.enter()?.keep(pool, nbytes))
    }

    /// Gives the memory that the pool and the pinned ring keep for later back to the driver.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn release_memory(&self) -> Result<()> {
        self.idle.release();
        let current = self.enter()?;
        // SAFETY: both are the device's.
        unsafe {
            current.driver.stream_synchronize(self.stream.handle())?;
            self.pool.map_or(Ok(()), |pool| current.driver.pool_trim(pool, 0))
        }
    }

    /// Waits until all work on memory of ours is done.
    ///
    /// # Errors
    /// What the driver answers: work that failed is told here.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is the device's.
        unsafe { self.enter()?.driver.stream_synchronize(self.stream.handle()) }
    }

    /// Waits until everything is done that any library gave to the device: for memory whose user cannot be waited for otherwise.
    ///
    /// # Errors
    /// What the driver answers.
    pub(crate) fn synchronize_all(&self) -> Result<()> {
        let current = self.enter()?;
        // SAFETY: the context is the device's.
        unsafe { current.driver.context_synchronize() }
    }

    /// Copies beside the work of our stream: `copy` gives copies to the copy stream, to memory that `owner` keeps. They begin
    /// when the memory is there, and our stream goes on when they are done. Where it cannot be made to wait, the memory is
    /// never freed, since a copy might still write to it.
    ///
    /// # Errors
    /// What `copy` and the driver answer.
    pub(crate) fn copy_beside<T: Clone>(
        &'static self,
        owner: &T,
        copy: impl FnOnce(Stream) -> Result<()>,
    ) -> Result<()> {
        self.order(self.stream, self.copy_stream)?;
        let outcome = copy(self.copy_stream);
        if let Err(error) = self.order(self.copy_stream, self.stream) {
            if self.synchronize_all().is_err() {
                std::mem::forget(owner.clone());
            }
            return Err(error);
        }
        outcome
    }

    /// Has `later` wait for what was given to `earlier` so far. The caller does not wait.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn order(&'static self, earlier: Stream, later: Stream) -> Result<()> {
        if earlier == later { Ok(()) } else { Event::record(self, earlier)?.hold_back(later) }
    }

    pub(crate) fn kernels(&self) -> Result<&Kernels> {
        match self.kernels.get() {
            Some(kernels) => Ok(kernels),
            None => Ok(self.kernels.set(Kernels::load(&self.enter()?)?)),
        }
    }

    /// Makes the device's context current in this thread, as long as the guard lives.
    pub(crate) fn enter(&self) -> Result<Current> {
        Current::enter(self.driver, self.context)
    }
}

/// All devices that this process has used so far: memory that they keep for later goes back to the driver.
///
/// # Errors
/// What the driver answers.
pub fn release_memory() -> Result<()> {
    // A forked child has no device, and so no memory of one.
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

/// A thread whose current context is that of a device. It finds its own contexts again afterwards.
pub(crate) struct Current {
    pub(crate) driver: &'static Driver,
    /// The context is this thread's alone.
    _thread: PhantomData<*mut ()>,
}

impl Current {
    fn enter(driver: &'static Driver, context: Context) -> Result<Current> {
        // SAFETY: the context is a primary one, which its device retains as long as the process lives.
        unsafe { driver.context_push(context)? };
        Ok(Current { driver, _thread: PhantomData })
    }

    fn make_stream(&self) -> Result<Stream> {
        let mut handle = null_mut();
        // SAFETY: the handle is written to a place that lives through the call.
        unsafe { self.driver.stream_create(&raw mut handle, NON_BLOCKING)? };
        Ok(Stream::from_handle(handle))
    }

    fn make_pool(&self, device: Ordinal) -> Result<MemoryPool> {
        let properties = MemoryPoolProperties {
            allocation_type: 1,
            handle_types: 0,
            location_type: 1,
            location_id: device,
            security_attributes: without_provenance_mut(0),
            max_size: 0,
            reserved: [0; 56],
        };
        let mut pool = null_mut();
        // SAFETY: the properties are those of a pool on this device, and live through the call as the handle does.
        unsafe { self.driver.pool_create(&raw mut pool, &raw const properties)? };
        self.keep(pool, KEPT_NBYTES)?;
        Ok(pool)
    }

    fn keep(&self, pool: MemoryPool, nbytes: u64) -> Result<()> {
        let mut nbytes = nbytes;
        // SAFETY: the attribute is a number of 64 bits, which lives through the call.
        unsafe { self.driver.pool_set_attribute(pool, RELEASE_THRESHOLD, (&raw mut nbytes).cast()) }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: it was pushed by this thread, which the guard cannot leave.
        let _ = unsafe { self.driver.context_pop(&raw mut context) };
    }
}
