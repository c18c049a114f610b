//! The software device: our own CUDA driver in C++ that runs the kernels on the CPU and checks its input strictly.
//! The Makefile builds it; it must be set before the driver is first used.

use std::fs::{File, create_dir_all};
use std::path::PathBuf;
use std::process::Command;
use zarrow_array::fork::OnceCell;
use zarrow_cuda::Device;

/// Returns device `ordinal` of the software driver, which has two.
pub fn device(ordinal: usize) -> &'static Device {
    library();
    Device::get(ordinal).unwrap()
}

/// Returns the library, built if it is missing or outdated.
pub fn library() -> &'static PathBuf {
    static LIBRARY: OnceCell<PathBuf> = OnceCell::new();
    LIBRARY.get_or_make(|| {
        let library = built("build/software-device/libcuda.so.1");
        // SAFETY: tests set the driver before they use it, and nothing else reads or changes this variable.
        unsafe { std::env::set_var("ZARROW_CUDA_DRIVER", &library) };
        library
    })
}

/// Makes a file by the Makefile.
#[allow(dead_code, reason = "each test uses some")]
pub fn built(target: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    create_dir_all(root.join("build")).unwrap();
    // One at a time: tests of several threads and processes call this.
    let lock = File::create(root.join("build/software-device.lock")).unwrap();
    lock.lock().unwrap();
    let made = Command::new("make").args(["--silent", "-C"]).arg(&root).arg(target).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    root.join(target)
}

/// Counters of the software driver, in the driver's order.
#[allow(dead_code, reason = "each test uses some")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    pub to_device_pageable: u64,
    pub to_device_pinned: u64,
    pub to_host: u64,
    pub on_device: u64,
    pub launches: u64,
    pub live_allocations: u64,
    pub live_nbytes: u64,
}

/// Returns the current counters.
#[allow(dead_code, reason = "each test uses some")]
pub fn counters() -> Counters {
    let path = std::ffi::CString::new(library().to_str().unwrap()).unwrap();
    let mut values = [0u64; 16];
    // SAFETY: the library is loaded, and its function fills fewer numbers than these.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let function = libc::dlsym(handle, c"zarrow_device_counters".as_ptr());
        assert!(!function.is_null());
        let read: unsafe extern "C" fn(*mut u64) = std::mem::transmute(function);
        read(values.as_mut_ptr());
    }
    let [
        to_device_pageable,
        to_device_pinned,
        to_host,
        on_device,
        launches,
        live_allocations,
        live_nbytes,
        ..,
    ] = values;
    Counters {
        to_device_pageable,
        to_device_pinned,
        to_host,
        on_device,
        launches,
        live_allocations,
        live_nbytes,
    }
}

/// Makes driver calls fail from now on, with the syntax of `ZARROW_SOFTWARE_DEVICE_FAIL`; an empty text resets.
#[allow(dead_code, reason = "each test uses some")]
pub fn fail(calls: &str) {
    let path = std::ffi::CString::new(library().to_str().unwrap()).unwrap();
    let calls = std::ffi::CString::new(calls).unwrap();
    // SAFETY: the library is loaded, and its function reads a NUL-terminated text.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let function = libc::dlsym(handle, c"zarrow_device_fail".as_ptr());
        assert!(!function.is_null());
        let set: unsafe extern "C" fn(*const libc::c_char) = std::mem::transmute(function);
        set(calls.as_ptr());
    }
}
