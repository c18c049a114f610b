//! nvCOMP on the software device: the library in software, whose functions NVIDIA's headers declare.
//!
//! The Makefile builds it, of both major versions; `ZARROW_NVCOMP` names another than the newer one.

use crate::software::{built, device};
use zarrow_array::fork::OnceCell;

/// Names it as the process's nvCOMP, before that is first used.
pub fn install() {
    static NAMED: OnceCell<()> = OnceCell::new();
    NAMED.get_or_make(|| {
        device(0);
        if std::env::var_os("ZARROW_NVCOMP").is_none() {
            let library = built("build/software-nvcomp/libnvcomp.so.6");
            // SAFETY: this names the library before it is first used, and nothing else reads or changes this variable.
            unsafe { std::env::set_var("ZARROW_NVCOMP", library) };
        }
    });
}
