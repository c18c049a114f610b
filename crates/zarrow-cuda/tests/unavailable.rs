//! Where there is no driver, every call says why, and nothing else happens.

use zarrow_cuda::{Device, Error};

#[test]
fn a_driver_that_is_not_there_is_an_error_with_the_reason() {
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
    assert!(zarrow_cuda::release_memory().is_ok(), "nothing is kept");
}
