//! The CUDA driver, loaded at run time.
//!
//! 1. [`library`] loads `libcuda.so.1`, or the library in `ZARROW_CUDA_DRIVER`.
//! 2. [`functions`] looks up each function in use; a driver that lacks one is too old.
//! 3. The driver is initialized once per process. A failure is stored, and returned by every later call.
//! 4. A process forked afterwards cannot use the driver (CUDA's own rule); calls return an error without calling
//!    it ([`forked_process`]).
//! 5. After an access to unallocated memory, and similar faults, the driver refuses all work until the process
//!    ends. The first failure is stored, and returned by every later call ([`status`]).

pub mod forked_process;
pub mod functions;
pub mod library;
pub mod status;

use crate::error::{Error, Result};
use functions::Functions;
use library::Library;
use std::ops::Deref;
use zarrow_array::fork::OnceCell;

/// Environment variable that replaces `libcuda.so.1`.
pub const LIBRARY_VARIABLE: &str = "ZARROW_CUDA_DRIVER";

/// Oldest supported version of CUDA: 12.0, as required by the kernels.
const MIN_VERSION: i32 = 12000;

/// The driver of this process.
#[derive(Debug)]
pub struct Driver {
    functions: Functions,
}

impl Driver {
    /// Returns the driver, loaded and initialized at the first call.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is no usable driver; [`Error::Forked`]; [`Error::ContextLost`].
    pub fn get() -> Result<&'static Driver> {
        static DRIVER: OnceCell<std::result::Result<Driver, String>> = OnceCell::new();
        match DRIVER.get_or_make(Driver::load) {
            Ok(driver) => driver.check().map(|()| driver),
            Err(reason) => Err(Error::Unavailable { what: "CUDA", reason: reason.clone() }),
        }
    }

    /// Steps 1 to 3.
    fn load() -> std::result::Result<Driver, String> {
        let named = std::env::var(LIBRARY_VARIABLE).ok().filter(|name| !name.is_empty());
        let name = named.as_deref().unwrap_or("libcuda.so.1");
        let library = Library::open(name).map_err(|reason| match &named {
            Some(_) => format!("{LIBRARY_VARIABLE} names a library that cannot be loaded ({reason})"),
            None => format!("no NVIDIA driver was found ({reason})"),
        })?;
        let functions = Functions::find(&library)?;
        let driver = Driver { functions };
        let words = |error: Error| error.to_string();
        let mut version = 0;
        // SAFETY: the flags must be 0, and the version is written to a number that lives through the call.
        unsafe {
            driver.init(0).map_err(words)?;
            driver.version(&raw mut version).map_err(words)?;
        }
        if version < MIN_VERSION {
            let (major, minor) = (version / 1000, version % 1000 / 10);
            return Err(format!("the driver is for CUDA {major}.{minor}: CUDA 12.0 or newer is needed"));
        }
        Ok(driver)
    }

    /// Steps 4 and 5.
    pub fn check(&self) -> Result<()> {
        self.check_process()?;
        status::check_context()
    }

    /// Returns the number of devices.
    pub fn count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the number lives through the call.
        unsafe { self.device_count(&raw mut count)? };
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

impl Deref for Driver {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}
