//! Each driver function fails, once at each of its calls: this gives an error, and the device stays usable.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "device/decompressor.rs"]
mod decompressor;
#[path = "device/software.rs"]
mod software;

use software::{device, fail};
use std::sync::Arc;
use zarrow::metadata::CodecMetadata;
use zarrow::store::MemoryStore;
use zarrow::{Array, ArrayBuilder, Existing, Number, OpenOptions, Selection, WriteOptions, create_array};
use zarrow_cuda::{DeviceTensor, Error, Event, Route, read, write};

fn array() -> Array {
    decompressor::install();
    // Its streams are copied to be aligned, and its checksums are verified.
    let gzip = CodecMetadata::new("gzip", serde_json::json!({ "level": 1 }).as_object().unwrap().clone());
    let builder = ArrayBuilder::new([64, 48], Number::Float32).chunk_shape([16, 16]).compressors([gzip]);
    let store = Arc::new(MemoryStore::default());
    let array =
        create_array(store, "", builder.build().unwrap(), Existing::Refuse, &OpenOptions::default()).unwrap();
    let ones: Vec<u8> = (0..64 * 48).flat_map(|number| (number as f32).to_ne_bytes()).collect();
    let values = zarrow::Values::contiguous(&ones, Number::Float32.into(), &[64, 48]).unwrap();
    array.write(Selection::all(&[64, 48]), &values).unwrap();
    array
}

/// Runs all operations, and returns the first error.
fn everything(array: &Array) -> Result<(), Error> {
    let device = device(0);
    let all = Selection::all(array.shape());
    let whole = DeviceTensor::empty(device, &[48, 64], Number::Float32.into())?;
    whole.fill(&1.5f32.to_ne_bytes())?;
    let out = whole.transpose(&[1, 0])?;
    read(&array.request(&all).unwrap(), device, Some(&out), Route::Host)?;
    let (tensor, _) = read(&array.request(&all).unwrap(), device, None, Route::Host)?;
    read(&array.request(&all).unwrap(), device, Some(&out), Route::Device)?;
    tensor.astype(&Number::Int16.into())?.copy()?;
    tensor.all_equal(&out, true)?;
    tensor.equal(&out)?.all()?;
    tensor.put(&[3, 1], &out.take(&[1, 2])?)?;
    write(array, &all, &tensor, &WriteOptions::default())?;
    tensor.lend_to(zarrow_cuda::Stream::LEGACY)?;
    Event::record(device, device.stream())?.is_reached()?;
    device.release_memory()?;
    device.memory()?;
    tensor.to_host().map(drop)
}

#[test]
fn every_failure_is_an_error_and_the_device_stays_usable() {
    let array = array();
    everything(&array).unwrap();
    let functions = [
        "cuCtxPushCurrent_v2",
        "cuThreadExchangeStreamCaptureMode",
        "cuMemAllocFromPoolAsync",
        "cuMemFreeAsync",
        "cuMemHostAlloc",
        "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2",
        "cuMemcpyDtoDAsync_v2",
        "cuMemsetD8Async",
        "cuEventCreate",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuStreamWaitEvent",
        "cuStreamSynchronize",
        "cuMemPoolTrimTo",
        "cuMemGetInfo_v2",
        "zarrow_device_launch",
    ];
    let mut failed = 0;
    for function in functions {
        for call in [1, 2, 3, 5, 8, 13, 21] {
            // 801 (not supported) does not break the context.
            for code in [2, 801] {
                fail(&format!("{function}:{call}:{code}"));
                failed += u32::from(everything(&array).is_err());
                fail("");
            }
        }
        everything(&array).unwrap_or_else(|error| panic!("after failures of {function}: {error}"));
    }
    // Failures of mere measurements are ignored.
    fail("cuEventElapsedTime:1:801");
    everything(&array).unwrap();
    fail("");
    assert!(failed > 60, "{failed} calls failed");
}

#[test]
fn failed_allocations_are_retried_once() {
    // After the first failure, cached memory is freed and the allocation is retried.
    fail("cuMemAllocFromPoolAsync:1:2");
    let tensor = DeviceTensor::empty(device(1), &[100], Number::Int8.into());
    fail("");
    assert!(tensor.is_ok());
    let error = DeviceTensor::empty(device(1), &[1 << 50], Number::Int8.into()).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert!(error.to_string().contains("cuda:1"), "{error}");
}
