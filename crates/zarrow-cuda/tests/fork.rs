//! A process forked after CUDA was used gets an error, and drops the parent's tensors without harm.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "device/software.rs"]
mod software;

use software::device;
use zarrow_array::Number;
use zarrow_cuda::{Device, DeviceTensor, Error};

#[test]
fn a_forked_child_gets_an_error() {
    let tensor = DeviceTensor::empty(device(0), &[1000], Number::Int8.into()).unwrap();
    tensor.fill(&[7]).unwrap();
    // SAFETY: the child calls nothing that needs a lock of another thread of the parent: it ends by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let is_refused =
            matches!(Device::get(0), Err(Error::Forked)) && matches!(tensor.to_host(), Err(Error::Forked));
        drop(tensor);
        // SAFETY: ends the child at once, without the parent's handlers.
        unsafe { libc::_exit(if is_refused { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the child is ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    assert!(tensor.all().unwrap(), "the parent is unaffected");
}
