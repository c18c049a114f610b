//! Without a driver, every call returns an error with the reason, and has no other effect.

use zarrow_cuda::{Device, Error};

#[test]
fn a_missing_driver_is_an_error_with_the_reason() {
    // SAFETY: this is the only test of its process, and nothing else reads or changes the variable.
    unsafe { std::env::set_var("ZARROW_CUDA_DRIVER", "/nowhere/libcuda.so.1") };
    for _ in 0..2 {
        let error = Device::get(0).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }));
        assert!(
            error
                .to_string()
                .contains("ZARROW_CUDA_DRIVER names a library that cannot be loaded (/nowhere/libcuda.so.1"),
            "{error}"
        );
    }
    assert!(Device::count().is_err());
    assert!(zarrow_cuda::release_memory().is_ok(), "there is no cached memory");
}
