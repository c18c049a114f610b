//! A device: its primary context, which all libraries of the process share, its streams and its pool of memory.
//!
//! Work on memory of ours is given to one stream of the device, `stream`, so that it is in order without anybody waiting.
//! The parts of a read go to others, its [lanes](crate::lanes), beside that one; events order the two.

use crate::decompress::format::Format;
use crate::driver::Driver;
use crate::driver::functions::{Context, MemoryPool, MemoryPoolProperties, Ordinal};
use crate::error::{Error, Result};
use crate::kernel::Kernels;
use crate::memory::Unused;
use crate::pinned::Idle;
use crate::rates::{Measured, Rates};
use crate::release;
use crate::stream::{Event, Stream};
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{null_mut, without_provenance_mut};
use zarrow_array::fork::{Mutex, OnceCell};
use zarrow_dlpack::{DLDevice, DLDeviceType};

/// The most devices of one machine that are counted.
const MAX_DEVICES: usize = 64;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`: what this thread does for itself does not end the capture of a graph in another thread.
const RELAXED: c_int = 2;
/// The most lanes of a device.
pub(crate) const MAX_LANES: usize = 8;
/// Bytes of a device for each of its lanes: a part of a compressed read takes some 300 MiB (zstd's temporary memory).
const NBYTES_OF_LANE: usize = 4 << 30;
/// `CU_STREAM_NON_BLOCKING`: the legacy default stream does not order ours.
const NON_BLOCKING: u32 = 1;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: (c_int, c_int) = (75, 76);
/// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`.
const MEMORY_POOLS_SUPPORTED: c_int = 115;
/// `CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES`.
const REUSE_AFTER_WAITING: c_int = 3;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD` and `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
/// What the pool keeps of memory that was freed, unless it is set.
const KEPT_NBYTES: u64 = 1 << 30;

/// Held by who opens a device, or loads its kernels.
static OPENING: Mutex<()> = Mutex::new(());

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
    lanes: Vec<Stream>,
    freeing: Stream,
    pool: Option<MemoryPool>,
    kernels: OnceCell<Kernels>,
    pub(crate) idle: Idle,
    pub(crate) unused: Mutex<Vec<Unused>>,
    /// What the pool keeps, unless a read is under way; and how many are.
    kept_nbytes: Mutex<(u64, usize)>,
    pub(crate) measured: Measured,
}

// SAFETY: contexts, streams and pools of the driver may be used by any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// How many devices this machine has. Those in use are asked whether their contexts are alive: a kernel of another
    /// library may have ended one.
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

    /// Device `ordinal`, whose primary context is made or shared at the first call.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Forked`], [`Error::ContextLost`], [`Error::NoDevice`], and what the driver answers.
    pub fn get(ordinal: usize) -> Result<&'static Device> {
        let driver = Driver::get()?;
        let count = driver.count()?;
        match DEVICES.get(ordinal) {
            Some(cell) if ordinal < count => match cell.get() {
                Some(device) => Ok(device),
                None => {
                    // One at a time: what another has opened would be lost.
                    let _opening = OPENING.lock();
                    match cell.get() {
                        Some(device) => Ok(device),
                        None => Ok(cell.set(Device::open(driver, ordinal)?)),
                    }
                }
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
        let (mut free, mut total) = (0, 0);
        // SAFETY: the numbers live through the call.
        unsafe { driver.memory_info(&raw mut free, &raw mut total)? };
        // Two at least, so that one is copied to while the other works.
        let count = (total / NBYTES_OF_LANE).clamp(2, MAX_LANES);
        let lanes = (0..count).map(|_| current.make_stream()).collect::<Result<_>>()?;
        let pool = if pools == 0 { None } else { Some(current.make_pool(number)?) };
        Ok(Device {
            driver,
            ordinal,
            context,
            name,
            capability: (major, minor),
            stream: current.make_stream()?,
            lanes,
            freeing: current.make_stream()?,
            pool,
            kernels: OnceCell::new(),
            idle: Idle::default(),
            unused: Mutex::default(),
            kept_nbytes: Mutex::new((KEPT_NBYTES, 0)),
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

    /// The streams beside it, for the parts of reads: two at least, and [`MAX_LANES`] at most.
    pub(crate) fn lanes(&self) -> &[Stream] {
        &self.lanes
    }

    /// The stream in which memory is freed that other libraries have used.
    pub(crate) fn freeing(&self) -> Stream {
        self.freeing
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

    /// A read begins, or ends: meanwhile the pool keeps all that is freed, since a wave would else take from the driver what the
    /// one before it gave back.
    pub(crate) fn read_begins(&self) -> Result<()> {
        let mut kept = self.kept_nbytes.lock();
        kept.1 += 1;
        self.keep_now(*kept)
    }

    pub(crate) fn read_ends(&self) {
        let mut kept = self.kept_nbytes.lock();
        kept.1 -= 1;
        // Where it fails the pool keeps more, until the next read.
        let _ = self.keep_now(*kept);
    }

    fn keep_now(&self, (nbytes, reads): (u64, usize)) -> Result<()> {
        let nbytes = if reads > 0 { u64::MAX } else { nbytes };
        self.pool.map_or(Ok(()), |pool| self.enter()?.keep(pool, nbytes))
    }

    /// How much freed memory the pool keeps for later; 1 GiB at first.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn keep(&self, nbytes: u64) -> Result<()> {
        let mut kept = self.kept_nbytes.lock();
        kept.0 = nbytes;
        self.keep_now(*kept)
    }

    /// Gives the memory that the pool and the pinned ring keep for later back to the driver.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn release_memory(&'static self) -> Result<()> {
        self.idle.release(self);
        self.give_back()
    }

    /// Gives the memory that the pool keeps for later back to the driver.
    pub(crate) fn give_back(&'static self) -> Result<()> {
        self.free_unused();
        let current = self.enter()?;
        // SAFETY: the streams and the pool are the device's.
        unsafe {
            for stream in [self.stream, self.freeing].iter().chain(&self.lanes) {
                current.driver.stream_synchronize(stream.handle())?;
            }
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

    /// As [`synchronize`](Device::synchronize); and waits until all memory is given back that nobody has any more, which may be waiting
    /// for other libraries.
    ///
    /// # Errors
    /// As [`synchronize`](Device::synchronize).
    pub fn settle(&'static self) -> Result<()> {
        self.synchronize()?;
        release::wait();
        // SAFETY: the stream is the device's.
        unsafe { self.enter()?.driver.stream_synchronize(self.freeing.handle()) }
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

    /// Has `later` wait for what was given to `earlier` so far. The caller does not wait.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn order(&'static self, earlier: Stream, later: Stream) -> Result<()> {
        if earlier == later { Ok(()) } else { Event::record(self, earlier)?.hold_back(later) }
    }

    /// Has our stream wait for an event of another library: what is done here from now on comes after what that library did
    /// before it. The caller does not wait.
    ///
    /// # Errors
    /// What the driver answers.
    ///
    /// # Safety
    /// `event` is a `CUevent` that lives through the call.
    pub unsafe fn wait_for(&self, event: *mut c_void) -> Result<()> {
        let current = self.enter()?;
        // SAFETY: the stream is the device's; the event by this function's contract.
        unsafe { current.driver.stream_wait_event(self.stream.handle(), event, 0) }
    }

    pub(crate) fn kernels(&self) -> Result<&Kernels> {
        match self.kernels.get() {
            Some(kernels) => Ok(kernels),
            None => {
                // One at a time, since the driver compiles them for some tens of milliseconds.
                let _opening = OPENING.lock();
                match self.kernels.get() {
                    Some(kernels) => Ok(kernels),
                    None => Ok(self.kernels.set(Kernels::load(&self.enter()?)?)),
                }
            }
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
    /// How strict this thread was before.
    capture_mode: c_int,
    /// The context is this thread's alone.
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
        // A lane that takes memory which another has freed would wait for that one: it takes other memory.
        let mut no: c_int = 0;
        // SAFETY: the attribute is a number of 32 bits, which lives through the call.
        unsafe { self.driver.pool_set_attribute(pool, REUSE_AFTER_WAITING, (&raw mut no).cast())? };
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
        // SAFETY: the mode was this thread's, and the context was pushed by it; the guard cannot leave it.
        let _ = unsafe {
            let _ = self.driver.exchange_capture_mode(&raw mut self.capture_mode);
            self.driver.context_pop(&raw mut context)
        };
    }
}
