//! Operations on elements, compared to the host.

use crate::software::device;
use proptest::prelude::*;
use zarrow_array::{Buffer, DataType, IndexStep, Number, SharedTensor, Tensor};
use zarrow_cuda::{DeviceTensor, Error};

/// A host tensor in C order.
fn host<T: Copy>(shape: &[u64], dtype: impl Into<DataType>, values: &[T]) -> SharedTensor {
    // SAFETY: the tests' numbers have no padding.
    let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
    let buffer = Buffer::copy_of(bytes).unwrap();
    Tensor::new(buffer, shape.to_vec(), dtype.into()).unwrap().into_shared().unwrap()
}

fn bytes_of(tensor: &SharedTensor) -> Vec<u8> {
    // SAFETY: a test's tensors are not written to.
    let copy = unsafe { tensor.copy().unwrap() };
    // SAFETY: as above.
    unsafe { copy.bytes().unwrap().to_vec() }
}

fn numbers<T: Copy>(tensor: &DeviceTensor) -> Vec<T> {
    let host = tensor.to_host().unwrap();
    let bytes = bytes_of(&host);
    // SAFETY: the bytes hold `size` numbers, of any bits, unaligned.
    (0..host.size()).map(|at| unsafe { bytes.as_ptr().cast::<T>().add(at).read_unaligned() }).collect()
}

fn range(start: i64, step: i64, count: i64) -> IndexStep {
    IndexStep::Range { start, step, count }
}

/// A view of a tensor with this shape: steps in both directions, axes in any order.
fn view_strategy(extents: Vec<u64>) -> impl Strategy<Value = (Vec<IndexStep>, Vec<usize>)> {
    let axes: Vec<_> = extents
        .iter()
        .map(|extent| {
            let extent = *extent as i64;
            (0..extent, -3i64..=3).prop_map(move |(start, step)| {
                let step = if step == 0 { 1 } else { step };
                let count = if step > 0 { (extent - start + step - 1) / step } else { start / -step + 1 };
                range(start, step, count)
            })
        })
        .collect();
    let order = Just((0..extents.len()).collect::<Vec<_>>()).prop_shuffle();
    (axes, order)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compares transfers and copies of views, with elements of any size.
    #[test]
    fn views_equal_those_of_the_host(
        (shape, (steps, order)) in prop::collection::vec(1u64..6, 1..5)
            .prop_flat_map(|shape| (Just(shape.clone()), view_strategy(shape))),
        item_size in prop::sample::select(vec![1u32, 2, 3, 4, 8, 12, 16, 24]),
    ) {
        let dtype = DataType::RawBytes { length: item_size };
        let count: u64 = shape.iter().product();
        let bytes: Vec<u8> = (0..count * u64::from(item_size)).map(|byte| (byte * 31 % 251) as u8).collect();
        let whole = host(&shape, dtype, &bytes);
        let part = whole.view(&steps).unwrap().transpose(&order).unwrap();
        let on_device = DeviceTensor::from_host(device(0), &whole).unwrap();
        let same = on_device.view(&steps).unwrap().transpose(&order).unwrap();
        prop_assert_eq!(bytes_of(&same.to_host().unwrap()), bytes_of(&part));
        let copy = same.copy().unwrap();
        prop_assert!(copy.is_c_contiguous());
        prop_assert_eq!(bytes_of(&copy.to_host().unwrap()), bytes_of(&part));
        // Uploads of strided host tensors keep the elements, and can be assigned back.
        let uploaded = DeviceTensor::from_host(device(0), &part).unwrap();
        prop_assert!(uploaded.all_equal(&same, false).unwrap());
        let blank = DeviceTensor::from_host(device(0), &whole).unwrap();
        blank.fill(&vec![0; item_size as usize]).unwrap();
        blank.view(&steps).unwrap().transpose(&order).unwrap().assign(&uploaded).unwrap();
        let back = blank.view(&steps).unwrap().transpose(&order).unwrap();
        prop_assert!(back.all_equal(&uploaded, false).unwrap());
    }
}

#[test]
fn transfers_of_several_slots_arrive_whole() {
    let words: Vec<u32> = (0..10 << 20).map(|word: u32| word.wrapping_mul(2_654_435_761)).collect();
    let whole = host(&[5, 2 << 20], Number::UInt32, &words);
    let on_device = DeviceTensor::from_host(device(0), &whole).unwrap();
    assert!(numbers::<u32>(&on_device) == words);
    let reversed = on_device.view(&[range(4, -1, 5), range(0, 1, 2 << 20)]).unwrap();
    let rows: Vec<u32> = words.chunks(2 << 20).rev().flatten().copied().collect();
    assert!(numbers::<u32>(&reversed) == rows);
}

#[test]
fn overlapping_elements_are_copied_correctly() {
    let values: Vec<i32> = (0..100).collect();
    let tensor = DeviceTensor::from_host(device(0), &host(&[100], Number::Int32, &values)).unwrap();
    let (behind, before) =
        (tensor.view(&[range(1, 1, 99)]).unwrap(), tensor.view(&[range(0, 1, 99)]).unwrap());
    behind.assign(&before).unwrap();
    let shifted: Vec<i32> = std::iter::once(0).chain(0..99).collect();
    assert_eq!(numbers::<i32>(&tensor), shifted);
    let backwards = tensor.view(&[range(99, -1, 100)]).unwrap();
    tensor.assign(&backwards).unwrap();
    assert_eq!(numbers::<i32>(&tensor), shifted.iter().rev().copied().collect::<Vec<_>>());
}

#[test]
fn values_are_broadcast_as_in_numpy() {
    let tensor = DeviceTensor::empty(device(0), &[3, 4], Number::Int16.into()).unwrap();
    let row = DeviceTensor::from_host(device(0), &host(&[4], Number::Int16, &[1i16, 2, 3, 4])).unwrap();
    tensor.assign(&row).unwrap();
    assert_eq!(numbers::<i16>(&tensor), [1, 2, 3, 4].repeat(3));
    let column = DeviceTensor::from_host(device(0), &host(&[3, 1], Number::Int16, &[7i16, 8, 9])).unwrap();
    tensor.assign(&column).unwrap();
    assert_eq!(numbers::<i16>(&tensor), [[7i16; 4], [8; 4], [9; 4]].concat());
    assert!(tensor.all_equal(&column, false).unwrap());
    assert!(matches!(tensor.broadcast_to(&[2, 4]), Err(Error::Array(_))));
    assert!(matches!(row.broadcast_to(&[3, 4]).unwrap().fill(&[0, 0]), Err(Error::ReadOnly)));
}

#[test]
fn casts_round_as_in_numpy() {
    let values = [0.0f64, -1.5, 2.5, 1e300, f64::NAN, f64::INFINITY, 16_777_217.0];
    let tensor = DeviceTensor::from_host(device(0), &host(&[7], Number::Float64, &values)).unwrap();
    let single: Vec<u32> = numbers(&tensor.astype(&Number::Float32.into()).unwrap());
    assert_eq!(single, values.map(|value| (value as f32).to_bits()));
    let truth: Vec<u8> = numbers(&tensor.astype(&Number::Bool.into()).unwrap());
    assert_eq!(truth, [0, 1, 1, 1, 1, 1, 1]);
    let large =
        DeviceTensor::from_host(device(0), &host(&[2], Number::UInt64, &[u64::MAX, (1 << 53) + 1])).unwrap();
    let double: Vec<f64> = numbers(&large.astype(&Number::Float64.into()).unwrap());
    assert_eq!(double, [u64::MAX as f64, ((1u64 << 53) + 1) as f64]);
    let text = DeviceTensor::empty(device(0), &[2], DataType::FixedLengthUtf32 { length: 3 }).unwrap();
    assert!(matches!(text.astype(&Number::Int8.into()), Err(Error::Unsupported(_))));
}

#[test]
fn equality_is_of_bits_or_of_numbers() {
    let float = |values: &[f32]| {
        DeviceTensor::from_host(device(0), &host(&[values.len() as u64], Number::Float32, values)).unwrap()
    };
    let (zeros, signed) = (float(&[0.0, 1.0, f32::NAN]), float(&[-0.0, 1.0, f32::NAN]));
    assert!(!zeros.all_equal(&signed, true).unwrap());
    assert!(zeros.all_equal(&zeros.copy().unwrap(), false).unwrap(), "the same bits");
    let other_nan = float(&[0.0, 1.0, f32::from_bits(0x7fc0_0001)]);
    assert!(zeros.all_equal(&other_nan, true).unwrap());
    assert!(!zeros.all_equal(&other_nan, false).unwrap());
    assert_eq!(numbers::<u8>(&zeros.equal(&signed).unwrap()), [1, 1, 0]);
    assert!(!zeros.all().unwrap() && zeros.any().unwrap());
    let nothing = DeviceTensor::empty(device(0), &[0, 3], Number::Float32.into()).unwrap();
    assert!(nothing.all().unwrap() && !nothing.any().unwrap());
    assert!(nothing.all_equal(&nothing, false).unwrap());
}

#[test]
fn rows_are_taken_and_put() {
    let values: Vec<i64> = (0..30).collect();
    let tensor = DeviceTensor::from_host(device(0), &host(&[5, 6], Number::Int64, &values)).unwrap();
    let columns = tensor.view(&[range(0, 1, 5), range(5, -2, 3)]).unwrap();
    let taken: Vec<i64> = numbers(&columns.take(&[4, 0, 4]).unwrap());
    assert_eq!(taken, [29, 27, 25, 5, 3, 1, 29, 27, 25]);
    assert!(columns.take(&[5]).is_err() && columns.take(&[-1]).is_err());
    assert_eq!(columns.take(&[]).unwrap().shape(), [0, 3]);
    let new = DeviceTensor::from_host(device(0), &host(&[1, 3], Number::Int64, &[-1i64, -2, -3])).unwrap();
    columns.put(&[1, 3], &new).unwrap();
    let all: Vec<i64> = numbers(&tensor);
    assert_eq!(all[6..12], [6, -3, 8, -2, 10, -1]);
    assert_eq!(all[18..24], [18, -3, 20, -2, 22, -1]);
    assert_eq!(all[..6], values[..6]);
}

#[test]
fn bytes_are_seen_as_other_elements() {
    let tensor =
        DeviceTensor::from_host(device(0), &host(&[2, 4], Number::UInt16, &[0u16, 1, 2, 3, 4, 5, 6, 7]))
            .unwrap();
    let wide = tensor.reinterpret(Number::UInt64.into()).unwrap();
    assert_eq!((wide.shape(), wide.address()), (&[2, 1][..], tensor.address()));
    assert_eq!(numbers::<u64>(&wide)[1], 0x0007_0006_0005_0004);
    assert_eq!(wide.reinterpret(Number::UInt8.into()).unwrap().shape(), [2, 8]);
    let every_other = tensor.view(&[range(0, 1, 2), range(0, 2, 2)]).unwrap();
    assert!(every_other.reinterpret(Number::UInt32.into()).is_err());
    assert!(every_other.reinterpret(Number::Int16.into()).is_ok());
    let odd = tensor.view(&[range(0, 1, 2), range(0, 1, 3)]).unwrap();
    assert!(odd.reinterpret(Number::UInt32.into()).is_err());
}

#[test]
fn other_devices_are_refused() {
    let (first, second) = (
        DeviceTensor::empty(device(0), &[2], Number::Int8.into()).unwrap(),
        DeviceTensor::empty(device(1), &[2], Number::Int8.into()).unwrap(),
    );
    assert!(matches!(first.assign(&second), Err(Error::OtherDevice { .. })));
    assert!(matches!(zarrow_cuda::Device::get(2), Err(Error::NoDevice { ordinal: 2, count: 2 })));
    assert!(matches!(DeviceTensor::empty(device(0), &[2], DataType::String), Err(Error::Unsupported(_))));
    let fortran = DeviceTensor::empty_column_major(device(0), &[2, 3], Number::Int8.into()).unwrap();
    assert_eq!((fortran.shape(), fortran.strides()), (&[2, 3][..], &[1, 2][..]));
}

#[test]
fn unused_memory_is_freed() {
    let device = device(1);
    device.release_memory().unwrap();
    let before = device.reserved_nbytes().unwrap();
    let tensor = DeviceTensor::empty(device, &[8 << 20], Number::UInt8.into()).unwrap();
    let view = tensor.view(&[range(0, 2, 4 << 20)]).unwrap();
    assert!(device.reserved_nbytes().unwrap() >= before + (8 << 20));
    drop(tensor);
    view.fill(&[1]).unwrap();
    assert!(view.all().unwrap());
    drop(view);
    device.release_memory().unwrap();
    assert_eq!(device.reserved_nbytes().unwrap(), before);
}
