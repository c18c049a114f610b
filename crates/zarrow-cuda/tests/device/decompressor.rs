//! The software nvCOMP for the software device, compiled against NVIDIA's headers.
//!
//! The Makefile builds both major versions; `ZARROW_NVCOMP` selects another one than the newer.

use crate::software::{built, device};
use zarrow_array::fork::OnceCell;

/// Sets it as the process's nvCOMP, before the first use.
pub fn install() {
    static NAMED: OnceCell<()> = OnceCell::new();
    NAMED.get_or_make(|| {
        device(0);
        if std::env::var_os("ZARROW_NVCOMP").is_none() {
            let library = built("build/software-nvcomp/libnvcomp.so.6");
            // SAFETY: this runs before the first use of the library, and nothing else reads or changes this
            // variable.
            unsafe { std::env::set_var("ZARROW_NVCOMP", library) };
        }
    });
}
