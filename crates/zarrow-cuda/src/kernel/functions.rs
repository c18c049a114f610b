//! The kernels of one device, loaded from PTX.

use crate::context::Current;
use crate::driver::functions::{Function, Module};
use crate::error::{Error, Result};
use std::ffi::CString;
use std::ptr::null_mut;

const PTX: &str = include_str!("../../ptx/zarrow.ptx");

/// Variants of a kernel for five element widths, indexed by the exponent of two.
pub(super) type Widths = [Function; 5];

/// Functions of the kernels on one device.
#[derive(Debug)]
pub struct Kernels {
    pub(super) copy: Widths,
    pub(super) place: Widths,
    pub(super) gather: Widths,
    pub(super) cast: Function,
    pub(super) differs: Function,
    pub(super) equal: Function,
    pub(super) nonzero: Function,
    pub(super) checksum_lanes: Function,
    pub(super) checksum_parts: Function,
    pub(super) checksum_verify: Function,
}

// SAFETY: any thread may launch functions of a module; the module is never unloaded.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

impl Kernels {
    /// Loads the kernels to the device of the current context.
    pub(crate) fn load(current: &Current) -> Result<Kernels> {
        let bad = |_| Error::Unsupported("the PTX of the kernels contains a NUL".to_owned());
        let text = CString::new(PTX).map_err(bad)?;
        let mut module: Module = null_mut();
        // SAFETY: the text ends with NUL, and the module is written to a place that lives through the call.
        unsafe { current.driver.module_load(&raw mut module, text.as_ptr().cast())? };
        let find = |name: String| {
            let name = CString::new(name).map_err(bad)?;
            let mut function: Function = null_mut();
            // SAFETY: the module was loaded above, and the name ends with NUL.
            unsafe { current.driver.module_function(&raw mut function, module, name.as_ptr())? };
            Ok::<_, Error>(function)
        };
        let widths = |name: &str| {
            let mut functions = [null_mut(); 5];
            for (exponent, function) in functions.iter_mut().enumerate() {
                *function = find(format!("zarrow_{name}_{}", 1 << exponent))?;
            }
            Ok::<_, Error>(functions)
        };
        Ok(Kernels {
            copy: widths("copy")?,
            place: widths("place")?,
            gather: widths("gather")?,
            cast: find("zarrow_cast".to_owned())?,
            differs: find("zarrow_differs".to_owned())?,
            equal: find("zarrow_equal".to_owned())?,
            nonzero: find("zarrow_nonzero".to_owned())?,
            checksum_lanes: find("zarrow_checksum_lanes".to_owned())?,
            checksum_parts: find("zarrow_checksum_parts".to_owned())?,
            checksum_verify: find("zarrow_checksum_verify".to_owned())?,
        })
    }
}

/// Returns the kernel for elements of `nbytes`, which is 1, 2, 4, 8 or 16.
pub(super) fn function_for_width(widths: &Widths, nbytes: usize) -> Result<Function> {
    let function = if nbytes.is_power_of_two() { widths.get(nbytes.trailing_zeros() as usize) } else { None };
    function.copied().ok_or_else(|| Error::Unsupported(format!("no kernel moves elements of {nbytes} bytes")))
}
