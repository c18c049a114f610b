//! Export and import of tensors by DLPack, in other libraries' streams.

use crate::software::device;
use std::ffi::c_void;
use zarrow_array::{IndexStep, Number};
use zarrow_cuda::import::Interface;
use zarrow_cuda::{DeviceTensor, Error, Event, Stream, export, import};
use zarrow_dlpack::{DLDevice, DLDeviceType, Foreign, Owned};

fn filled(value: u8) -> DeviceTensor {
    let tensor = DeviceTensor::empty(device(0), &[4, 1000], Number::UInt8.into()).unwrap();
    tensor.fill(&[value]).unwrap();
    tensor
}

#[test]
fn dlpack_shows_the_same_memory() {
    let tensor = filled(3);
    let part = tensor
        .view(&[
            IndexStep::Range { start: 3, step: -2, count: 2 },
            IndexStep::Range { start: 5, step: 3, count: 7 },
        ])
        .unwrap();
    let exported = export::versioned(&part).unwrap();
    assert_eq!(exported.tensor().device, DLDevice::new(DLDeviceType::CUDA, 0));
    assert_eq!(exported.tensor().data.addr() as u64, part.address());
    drop((tensor, part));
    // SAFETY: the pointer was exported here, and is consumed once.
    let back = import::versioned(unsafe { Foreign::from_raw(exported.into_raw()) }.unwrap()).unwrap();
    assert_eq!((back.shape(), back.strides()), (&[2, 7][..], &[-2000, 3][..]));
    back.fill(&[9]).unwrap();
    assert!(back.all_equal(&filled(9).view(&[IndexStep::At(0), IndexStep::At(0)]).unwrap(), false).unwrap());
}

#[test]
fn strides_of_unit_axes_are_those_of_c_order() {
    let tensor = filled(1);
    let thin = tensor
        .view(&[
            IndexStep::Range { start: 1, step: 1, count: 1 },
            IndexStep::Range { start: 0, step: 4, count: 5 },
        ])
        .unwrap();
    let exported = export::legacy(&thin).unwrap();
    // SAFETY: the tensor has two axes.
    let strides = unsafe { std::slice::from_raw_parts(exported.tensor().strides, 2) };
    assert_eq!(strides, [5, 4]);
}

#[test]
fn unsupported_exports_are_refused() {
    let tensor = filled(1);
    let repeated = tensor.broadcast_to(&[2, 4, 1000]).unwrap();
    assert!(matches!(export::legacy(&repeated), Err(Error::ReadOnly)));
    assert!(export::versioned(&repeated).is_ok());
    let dates = zarrow_array::DataType::DateTime64 { unit: zarrow_array::TimeUnit::Second, scale: 1 };
    let times = DeviceTensor::empty(device(0), &[3], dates).unwrap();
    assert!(matches!(export::versioned(&times), Err(Error::Array(_))));
    assert!(matches!(import::device(DLDevice::CPU), Err(Error::Array(_))));
    assert!(Stream::from_number(0).is_err() && Stream::from_number(-3).is_err());
    assert_eq!(Stream::from_number(1).unwrap(), Stream::LEGACY);
}

#[test]
fn another_stream_is_ordered_after_earlier_work() {
    // The software device delays streams at random: without ordering, the copies below would read old contents.
    for round in 0..40u8 {
        let tensor = filled(round);
        tensor.lend_to(Stream::LEGACY).unwrap();
        let exported = export::versioned(&tensor).unwrap();
        drop(tensor);
        // SAFETY: the pointer was exported here, and is consumed once.
        let back = import::versioned(unsafe { Foreign::from_raw(exported.into_raw()) }.unwrap()).unwrap();
        device(0).order(Stream::LEGACY, device(0).stream()).unwrap();
        let host = back.to_host().unwrap();
        // SAFETY: the tensor is not written to.
        assert!(unsafe { host.bytes() }.unwrap().iter().all(|byte| *byte == round));
    }
}

#[test]
fn our_stream_waits_for_events_of_other_libraries() {
    let device = device(0);
    for round in 0..40u8 {
        let (tensor, source) = (filled(0), filled(round));
        // Acts as another library, with a stream ordered after ours and an event at its end.
        device.order(device.stream(), Stream::LEGACY).unwrap();
        let event = Event::record(device, Stream::LEGACY).unwrap();
        // SAFETY: the event is alive, and its handle is at that address.
        unsafe { device.wait_for(*event.as_ptr().cast::<*mut c_void>()) }.unwrap();
        tensor.assign(&source).unwrap();
        assert!(tensor.all_equal(&source, false).unwrap() && event.is_reached().unwrap());
    }
    // SAFETY: the driver refuses invalid events.
    assert!(unsafe { device.wait_for(std::ptr::null_mut()) }.is_err());
}

#[test]
fn interfaces_are_imported_on_their_device() {
    let tensor = DeviceTensor::empty(device(1), &[3, 5], Number::Int32.into()).unwrap();
    tensor.fill(&5i32.to_ne_bytes()).unwrap();
    let interface = Interface {
        protocol: "a test",
        device: None,
        address: tensor.address(),
        shape: vec![5, 3],
        strides: Some(vec![4, 20]),
        dtype: Number::Int32.into(),
        read_only: true,
    };
    // SAFETY: the tensor, which the owner keeps, has these elements.
    let seen = unsafe { interface.clone().tensor(Box::new(tensor.clone())) }.unwrap();
    assert_eq!((seen.device().ordinal(), seen.strides()), (1, &[1, 5][..]));
    assert!(seen.is_read_only());
    assert!(seen.all_equal(&tensor.transpose(&[1, 0]).unwrap(), false).unwrap());
    let refused = |change: &dyn Fn(&mut Interface)| {
        let mut interface = interface.clone();
        change(&mut interface);
        // SAFETY: the memory is not used.
        unsafe { interface.tensor(Box::new(())) }.is_err()
    };
    assert!(refused(&|interface| interface.strides = Some(vec![4])));
    assert!(refused(&|interface| interface.strides = Some(vec![4, 21])));
    assert!(refused(&|interface| interface.shape = vec![-1, 3]));
    assert!(refused(&|interface| interface.shape = vec![i64::MAX, i64::MAX]));
    assert!(refused(&|interface| interface.address = 8), "no address of a device");
    assert!(refused(&|interface| interface.device = Some(0)), "it is on the other one");
}

#[test]
fn memory_of_another_device_is_refused() {
    let tensor = filled(1);
    let description = zarrow_dlpack::Description {
        data: std::ptr::with_exposed_provenance_mut(tensor.address() as usize),
        device: DLDevice::new(DLDeviceType::CUDA, 1),
        dtype: zarrow_dlpack::DLDataType::from_dtype(zarrow_dlpack::Dtype::UInt8),
        shape: &[4],
        strides: &[1],
        flags: 0,
    };
    // SAFETY: the memory stays with the tensor, and the pointer is consumed once.
    let foreign = unsafe {
        let borrowed: Owned<zarrow_dlpack::DLManagedTensorVersioned> =
            Owned::new(description, tensor.clone());
        Foreign::from_raw(borrowed.into_raw()).unwrap()
    };
    assert!(import::versioned(foreign).unwrap_err().to_string().contains("not on cuda:1"));
    tensor.fill(&[3]).unwrap();
    assert!(tensor.all().unwrap(), "the context still works");
}

#[test]
fn overlapping_elements_are_not_written() {
    let tensor = filled(1);
    let interface = |shape: Vec<i64>, strides: Vec<i64>| {
        let (address, dtype) = (tensor.address(), Number::UInt8.into());
        let interface = Interface {
            protocol: "a test",
            device: None,
            address,
            shape,
            strides: Some(strides),
            dtype,
            read_only: false,
        };
        // SAFETY: the tensor, which the owner keeps, has these elements.
        unsafe { interface.tensor(Box::new(tensor.clone())) }.unwrap()
    };
    for (shape, strides) in [(vec![3, 60], vec![4, 4]), (vec![2], vec![0]), (vec![3, 3], vec![2, 1])] {
        assert!(matches!(interface(shape, strides).fill(&[2]), Err(Error::Array(_))));
    }
    for (shape, strides) in [(vec![3, 60], vec![60, 1]), (vec![2, 1], vec![1, 0]), (vec![3, 3], vec![1, 3])] {
        interface(shape, strides).fill(&[2]).unwrap();
    }
}

#[test]
fn unconsumed_tensors_are_freed() {
    let tensor = filled(1);
    let exported = export::versioned(&tensor).unwrap();
    let pointer = exported.into_raw();
    // SAFETY: the pointer was not consumed.
    drop(unsafe { Owned::from_raw(pointer) });
    tensor.fill(&[2]).unwrap();
    device(0).synchronize().unwrap();
}
