//! Refuses the driver in a process that was forked after its initialization.

use crate::error::{Error, Result};
use zarrow_array::fork::generation;

/// The process that initialized the driver.
#[derive(Debug)]
pub struct ProcessOfDriver {
    generation: u64,
}

impl ProcessOfDriver {
    /// This process.
    pub fn current() -> ProcessOfDriver {
        ProcessOfDriver { generation: generation() }
    }

    /// Refuses another process: CUDA cannot be used in a forked child.
    ///
    /// # Errors
    /// [`Error::Forked`] in a child of the process.
    pub fn check(&self) -> Result<()> {
        if self.generation == generation() { Ok(()) } else { Err(Error::Forked) }
    }
}
