//! The software nvCOMP is strict: what a GPU would read from another device ends the context here, for all of the process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "device/decompressor.rs"]
mod decompressor;
#[path = "device/software.rs"]
mod software;

use software::device;
use zarrow_array::Number;
use zarrow_cuda::decompress::{Format, Frames};
use zarrow_cuda::{Device, DeviceTensor, Error};

/// What becomes of one frame on `device`, with lists in the memory of `owner`.
fn outcome(device: &'static Device, owner: &'static Device, frame: &[u8; 8]) -> Result<(), Error> {
    let words = |value: &[u8; 8]| {
        let list = DeviceTensor::empty(owner, &[4], Number::UInt64.into())?;
        list.fill(value).map(|()| list)
    };
    let (addresses, sizes, answers) = (words(frame)?, words(&64u64.to_ne_bytes())?, words(&[0; 8])?);
    owner.synchronize()?;
    let frames = Frames {
        format: Format::Lz4,
        count: 1,
        sources: addresses.address(),
        source_nbytes: sizes.address(),
        destinations: addresses.address(),
        destination_nbytes: sizes.address(),
        written: answers.address(),
        statuses: answers.address() + 8,
        largest: 64,
        total: 64,
    };
    // SAFETY: the software device looks at every address before it follows it.
    unsafe { zarrow_cuda::decompress::decompressor()?.decompress(&frames, 0, 0, (device, device.stream()))? };
    device.synchronize()
}

#[test]
fn what_is_no_memory_of_the_device_breaks_its_context() {
    decompressor::install();
    let place = DeviceTensor::empty(device(0), &[64], Number::UInt8.into()).unwrap();
    place.fill(&[0]).unwrap();
    let address = place.address().to_ne_bytes();
    outcome(device(0), device(0), &address).unwrap();
    let error = outcome(device(1), device(0), &address).unwrap_err();
    let is_lost =
        matches!(&error, Error::ContextLost { reason } if reason.contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert!(is_lost, "lists of another device: {error}");
}
