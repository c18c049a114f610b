//! The pool of a device's memory: how much freed memory it keeps, and how streams share it.

use crate::context::Current;
use crate::driver::functions::{MemoryPool, MemoryPoolProperties, Ordinal};
use crate::error::Result;
use std::ffi::c_int;
use std::ptr::{null_mut, without_provenance_mut};

/// `CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES`.
const REUSE_AFTER_WAITING: c_int = 3;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD` and `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
/// Limit of freed memory that the pool keeps between reads.
pub const KEPT_NBYTES: u64 = 1 << 30;

/// Creates the pool of the device's memory.
pub fn create(current: &Current, device: Ordinal) -> Result<MemoryPool> {
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
    // SAFETY: the properties describe a pool on this device, and live through the call, as does the handle.
    unsafe { current.driver.pool_create(&raw mut pool, &raw const properties)? };
    keep(current, pool, KEPT_NBYTES)?;
    // Otherwise a stream that reuses memory freed by another would wait for that stream; with this, it gets other
    // memory.
    let mut no: c_int = 0;
    // SAFETY: the attribute is a number of 32 bits, which lives through the call.
    unsafe { current.driver.pool_set_attribute(pool, REUSE_AFTER_WAITING, (&raw mut no).cast())? };
    Ok(pool)
}

/// Sets the bytes of freed memory that a pool keeps.
pub fn keep(current: &Current, pool: MemoryPool, nbytes: u64) -> Result<()> {
    let mut nbytes = nbytes;
    // SAFETY: the attribute is a number of 64 bits, which lives through the call.
    unsafe { current.driver.pool_set_attribute(pool, RELEASE_THRESHOLD, (&raw mut nbytes).cast()) }
}

/// Returns the bytes that a pool holds, in use or kept for reuse.
pub fn reserved(current: &Current, pool: MemoryPool) -> Result<u64> {
    let mut nbytes = 0u64;
    // SAFETY: the attribute is a number of 64 bits, which lives through the call.
    unsafe { current.driver.pool_get_attribute(pool, RESERVED, (&raw mut nbytes).cast())? };
    Ok(nbytes)
}
