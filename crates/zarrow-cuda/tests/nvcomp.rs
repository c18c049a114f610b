//! The software nvCOMP is strict: accesses to invalid memory, or to another device, break the context.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "device/decompressor.rs"]
mod decompressor;
#[path = "device/software.rs"]
mod software;

use software::device;
use std::process::Command;
use zarrow_array::Number;
use zarrow_cuda::decompress::{Format, Frames};
use zarrow_cuda::{Device, DeviceTensor, Error};

/// Result of one frame on `device`, with lists in the memory of `owner`.
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
    // SAFETY: the software device checks every address before it uses it.
    unsafe { zarrow_cuda::decompress::decompressor()?.decompress(&frames, 0, 0, (device, device.stream()))? };
    device.synchronize()
}

/// Each test breaks the context of its process, so each runs in a separate process.
#[test]
fn invalid_addresses_break_the_context() {
    for name in ["lists_of_another_device", "frames_outside_the_memory"] {
        let alone = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", name])
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&alone.stdout);
        assert!(alone.status.success() && output.contains("1 passed"), "{output}");
    }
}

fn breaks(used: &'static Device, frame: impl FnOnce(u64) -> [u8; 8]) {
    decompressor::install();
    let place = DeviceTensor::empty(device(0), &[64], Number::UInt8.into()).unwrap();
    place.fill(&[0]).unwrap();
    let address = place.address();
    outcome(device(0), device(0), &address.to_ne_bytes()).unwrap();
    let error = outcome(used, device(0), &frame(address)).unwrap_err();
    assert!(matches!(&error, Error::ContextLost { reason } if reason.contains("700")), "{error}");
}

#[test]
#[ignore = "runs in a separate process"]
fn lists_of_another_device() {
    decompressor::install();
    breaks(device(1), u64::to_ne_bytes);
}

#[test]
#[ignore = "runs in a separate process"]
fn frames_outside_the_memory() {
    decompressor::install();
    breaks(device(0), |_| [0; 8]);
}
