//! A tensor's deleter runs exactly once on every path, and malformed tensors are typed errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zarrow_dlpack::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned,
    DLPackVersion, DLTensor, Description, Dtype, DtypeError, Error, Foreign, IS_COPIED,
    IS_SUBBYTE_TYPE_PADDED, MAX_NDIM, Managed, Owned, READ_ONLY, from_dlpack, to_dlpack,
};

const FLOAT32: DLDataType = DLDataType::from_dtype(Dtype::Float32);

/// Counts drops of a producer or an owner.
struct Ends(Arc<AtomicUsize>);

impl Ends {
    fn new() -> (Self, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        (Self(Arc::clone(&count)), count)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn ended(count: &AtomicUsize) -> usize {
    count.load(Ordering::SeqCst)
}

/// Another library's producer: its deleter drops a box with the managed struct and everything it points to.
#[repr(C)]
struct Producer<M> {
    managed: M,
    _data: Vec<f32>,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _ends: Ends,
}

unsafe extern "C" fn delete<M>(managed: *mut M) {
    // SAFETY: the managed struct is the first field of a boxed producer, deleted once.
    drop(unsafe { Box::from_raw(managed.cast::<Producer<M>>()) });
}

fn produce<M>(
    mut data: Vec<f32>,
    mut shape: Vec<i64>,
    mut strides: Vec<i64>,
    assemble: impl FnOnce(DLTensor) -> M,
) -> (*mut M, Arc<AtomicUsize>) {
    let (ends, count) = Ends::new();
    let tensor = DLTensor {
        data: data.as_mut_ptr().cast(),
        device: DLDevice::CPU,
        ndim: shape.len() as i32,
        dtype: FLOAT32,
        shape: shape.as_mut_ptr(),
        strides: if strides.is_empty() { null_mut() } else { strides.as_mut_ptr() },
        byte_offset: 0,
    };
    let producer =
        Producer { managed: assemble(tensor), _data: data, _shape: shape, _strides: strides, _ends: ends };
    (Box::into_raw(Box::new(producer)).cast(), count)
}

/// A 2 by 3 array.
fn legacy(change: impl FnOnce(&mut DLTensor)) -> (*mut DLManagedTensor, Arc<AtomicUsize>) {
    produce(vec![0.0; 6], vec![2, 3], vec![3, 1], |mut dl_tensor| {
        change(&mut dl_tensor);
        DLManagedTensor { dl_tensor, manager_ctx: null_mut(), deleter: Some(delete) }
    })
}

fn versioned(
    change: impl FnOnce(&mut DLManagedTensorVersioned),
) -> (*mut DLManagedTensorVersioned, Arc<AtomicUsize>) {
    produce(vec![0.0; 6], vec![2, 3], vec![3, 1], |dl_tensor| {
        let mut managed = DLManagedTensorVersioned {
            version: DLPackVersion::new(1, 0),
            manager_ctx: null_mut(),
            deleter: Some(delete),
            flags: 0,
            dl_tensor,
        };
        change(&mut managed);
        managed
    })
}

/// An array of any layout; its data pointer is to the first of `data`.
fn strided(data: usize, shape: &[i64], strides: &[i64]) -> (*mut DLManagedTensor, Arc<AtomicUsize>) {
    produce(vec![0.0; data], shape.to_vec(), strides.to_vec(), |dl_tensor| DLManagedTensor {
        dl_tensor,
        manager_ctx: null_mut(),
        deleter: Some(delete),
    })
}

fn take<M: Managed>(pointer: *mut M) -> Result<Foreign<M>, Error> {
    // SAFETY: every pointer in this file is NULL or a live producer's, and is taken once.
    unsafe { from_dlpack(pointer, None, None) }
}

fn assert_refused<M: Managed>((pointer, count): (*mut M, Arc<AtomicUsize>), error: Error) {
    assert_eq!(take(pointer).err(), Some(error));
    assert_eq!(ended(&count), 1, "{error}");
}

fn lend<M: Managed, O: Send + Sync + 'static>(owner: O) -> Owned<M> {
    let description = Description {
        data: NonNull::<f32>::dangling().as_ptr().cast(),
        device: DLDevice::CPU,
        dtype: FLOAT32,
        shape: &[2, 3],
        strides: &[3, 1],
        flags: 0,
    };
    // SAFETY: the data is never read.
    unsafe { Owned::new(description, owner) }
}

#[test]
fn unconsumed_tensors_end_once() {
    fn check<M: Managed>() {
        let (ends, count) = Ends::new();
        let owned = lend::<M, _>(ends);
        assert_eq!(ended(&count), 0);
        drop(owned);
        assert_eq!(ended(&count), 1);
    }
    check::<DLManagedTensor>();
    check::<DLManagedTensorVersioned>();
}

#[test]
fn consumed_tensors_end_once_with_the_consumer() {
    fn check<M: Managed>() {
        let (ends, count) = Ends::new();
        let pointer = to_dlpack(lend::<M, _>(ends));
        let foreign = take(pointer.as_ptr()).unwrap();
        assert_eq!(ended(&count), 0);
        drop(foreign);
        assert_eq!(ended(&count), 1);
    }
    check::<DLManagedTensor>();
    check::<DLManagedTensorVersioned>();
}

#[test]
fn borrowed_tensors_end_once_on_any_thread() {
    fn check<M: Managed>((pointer, count): (*mut M, Arc<AtomicUsize>)) {
        let foreign = take(pointer).unwrap();
        let shared = &foreign;
        std::thread::scope(|scope| scope.spawn(move || assert_eq!(shared.shape(), [2, 3])).join().unwrap());
        assert_eq!(ended(&count), 0);
        std::thread::spawn(move || drop(foreign)).join().unwrap();
        assert_eq!(ended(&count), 1);
    }
    check(legacy(|_| ()));
    check(versioned(|_| ()));
}

#[test]
fn exported_tensors_end_once_on_another_thread() {
    let (ends, count) = Ends::new();
    let owned = lend::<DLManagedTensorVersioned, _>(ends);
    std::thread::spawn(move || drop(owned)).join().unwrap();
    assert_eq!(ended(&count), 1);
}

#[test]
fn tensors_end_once_when_a_panic_unwinds_past_them() {
    let (ends, lent) = Ends::new();
    let (pointer, borrowed) = versioned(|_| ());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _owned = lend::<DLManagedTensorVersioned, _>(ends);
        let _foreign = take(pointer).unwrap();
        panic!("while both are held");
    }));
    assert!(outcome.is_err());
    assert_eq!((ended(&lent), ended(&borrowed)), (1, 1));
}

/// An owner that panics when it is dropped, with a payload that panics again.
struct Explosive {
    _ends: Ends,
}

struct ExplosivePayload;

impl Drop for ExplosivePayload {
    fn drop(&mut self) {
        panic!("payload dropped");
    }
}

impl Drop for Explosive {
    fn drop(&mut self) {
        std::panic::panic_any(ExplosivePayload);
    }
}

#[test]
fn a_panic_of_the_owner_stays_within_the_deleter() {
    let (ends, count) = Ends::new();
    drop(lend::<DLManagedTensor, _>(Explosive { _ends: ends }));
    assert_eq!(ended(&count), 1);

    let (ends, count) = Ends::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _owned = lend::<DLManagedTensorVersioned, _>(Explosive { _ends: ends });
        panic!("the outer one");
    }));
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"the outer one"));
    assert_eq!(ended(&count), 1);
}

#[test]
fn a_null_tensor_is_an_error() {
    assert_eq!(take(null_mut::<DLManagedTensor>()).err(), Some(Error::NullTensor));
    assert_eq!(take(null_mut::<DLManagedTensorVersioned>()).err(), Some(Error::NullTensor));
}

#[test]
fn a_null_deleter_is_not_called() {
    let (pointer, count) = versioned(|managed| managed.deleter = None);
    drop(take(pointer).unwrap());
    assert_eq!(ended(&count), 0);
    // SAFETY: without a deleter, the test still owns the producer.
    unsafe { delete(pointer) };
    assert_eq!(ended(&count), 1);
}

#[test]
fn another_major_version_is_deleted_unread() {
    for version in [DLPackVersion::new(0, 8), DLPackVersion::new(2, 0), DLPackVersion::new(u32::MAX, 3)] {
        let unreadable = versioned(|managed| {
            managed.version = version;
            managed.dl_tensor.ndim = 2;
            // Reading an extent or a stride would crash.
            managed.dl_tensor.shape = std::ptr::without_provenance_mut(8);
            managed.dl_tensor.strides = std::ptr::without_provenance_mut(8);
        });
        assert_refused(unreadable, Error::Version { found: version });
    }
}

#[test]
fn another_minor_version_is_read() {
    let (pointer, count) = versioned(|managed| managed.version = DLPackVersion::new(1, 99));
    assert_eq!(take(pointer).unwrap().shape(), [2, 3]);
    assert_eq!(ended(&count), 1);
}

#[test]
fn malformed_tensors_are_refused_and_end_once() {
    let beyond = MAX_NDIM as i32 + 1;
    assert_refused(legacy(|tensor| tensor.ndim = -1), Error::Ndim { ndim: -1 });
    assert_refused(legacy(|tensor| tensor.ndim = beyond), Error::Ndim { ndim: beyond });
    assert_refused(legacy(|tensor| tensor.ndim = i32::MAX), Error::Ndim { ndim: i32::MAX });
    assert_refused(legacy(|tensor| tensor.shape = null_mut()), Error::NullShape);
    assert_refused(legacy(|tensor| tensor.data = null_mut()), Error::NullData);
    assert_refused(legacy(|tensor| tensor.byte_offset = u64::MAX), Error::Overflow);
    assert_refused(legacy(|tensor| tensor.byte_offset = i64::MAX as u64 + 1), Error::Overflow);
    assert_refused(
        legacy(|tensor| tensor.data = std::ptr::without_provenance_mut(usize::MAX - 8)),
        Error::Overflow,
    );
    let offset_past_the_end = |tensor: &mut DLTensor| {
        tensor.data = std::ptr::without_provenance_mut(usize::MAX - 100);
        tensor.byte_offset = 200;
    };
    assert_refused(legacy(offset_past_the_end), Error::Overflow);
    assert_refused(strided(1, &[2, -3], &[3, 1]), Error::NegativeExtent { axis: 1, extent: -3 });
    assert_refused(strided(1, &[i64::MAX, 2], &[2, 1]), Error::Overflow);
    assert_refused(strided(1, &[1 << 32, 1 << 31], &[]), Error::Overflow);
    assert_refused(strided(1, &[2], &[i64::MIN]), Error::Overflow);
    assert_refused(strided(1, &[2], &[-(1 << 60)]), Error::Overflow);

    let sparse = |managed: &mut DLManagedTensorVersioned| {
        managed.dl_tensor.dtype = DLDataType::from_dtype(Dtype::Float4E2M1Fn);
        // SAFETY: the producer has two strides.
        unsafe { *managed.dl_tensor.strides = 4 };
    };
    assert_refused(versioned(sparse), Error::StridedSubByte);
    let (pointer, _) = versioned(|managed| {
        sparse(managed);
        managed.flags = IS_SUBBYTE_TYPE_PADDED;
    });
    assert_eq!(take(pointer).unwrap().byte_extent(), 0..7);
}

#[test]
fn unknown_element_types_are_refused_and_end_once() {
    let with = |code, bits, lanes| legacy(move |tensor| tensor.dtype = DLDataType { code, bits, lanes });
    let unknown = DLDataTypeCode(18);
    assert_refused(with(unknown, 8, 1), DtypeError::UnknownCode { code: 18 }.into());
    assert_refused(with(DLDataTypeCode::BFLOAT, 32, 1), {
        DtypeError::Bits { code: DLDataTypeCode::BFLOAT, bits: 32 }.into()
    });
    assert_refused(with(DLDataTypeCode::FLOAT, 32, 4), DtypeError::Lanes { lanes: 4 }.into());
    assert_refused(with(DLDataTypeCode::FLOAT, 32, 0), DtypeError::Lanes { lanes: 0 }.into());
}

#[test]
fn unexpected_devices_and_types_are_refused() {
    let cuda = DLDevice::new(DLDeviceType::CUDA, 1);
    let float64 = DLDataType::from_dtype(Dtype::Float64);
    let ask = |device, dtype| {
        let (pointer, count) = versioned(|_| ());
        // SAFETY: the pointer is a live producer's, and is taken once.
        let outcome = unsafe { from_dlpack(pointer, device, dtype) }.map(drop);
        assert_eq!(ended(&count), 1);
        outcome
    };
    assert_eq!(ask(Some(cuda), None), Err(Error::Device { expected: cuda, found: DLDevice::CPU }));
    assert_eq!(ask(None, Some(float64)), Err(Error::DtypeMismatch { expected: float64, found: FLOAT32 }));
    assert_eq!(ask(Some(DLDevice::CPU), Some(FLOAT32)), Ok(()));
}

#[test]
fn null_strides_mean_c_order() {
    let (pointer, _) = strided(24, &[2, 3, 4], &[]);
    let foreign = take(pointer).unwrap();
    assert_eq!(foreign.strides(), [12, 4, 1]);
    assert_eq!(foreign.byte_extent(), 0..96);
}

#[test]
fn no_axes_are_one_element() {
    let null_axes = |tensor: &mut DLTensor| {
        tensor.ndim = 0;
        tensor.shape = null_mut();
        tensor.strides = null_mut();
    };
    let (pointer, _) = legacy(null_axes);
    let foreign = take(pointer).unwrap();
    assert!(foreign.shape().is_empty() && foreign.strides().is_empty());
    assert_eq!(foreign.byte_extent(), 0..4);
    assert_refused(
        legacy(|tensor| {
            null_axes(tensor);
            tensor.data = null_mut();
        }),
        Error::NullData,
    );
}

#[test]
fn no_elements_need_no_data() {
    let (pointer, _) = produce(Vec::new(), vec![2, 0, 3], vec![7, 7, 7], |mut dl_tensor| {
        dl_tensor.data = null_mut();
        dl_tensor.byte_offset = 64;
        DLManagedTensor { dl_tensor, manager_ctx: null_mut(), deleter: Some(delete) }
    });
    let foreign = take(pointer).unwrap();
    assert_eq!(foreign.shape(), [2, 0, 3]);
    assert_eq!(foreign.strides(), [3, 3, 1]);
    assert!(foreign.data().is_null() && foreign.byte_extent().is_empty());
}

#[test]
fn negative_strides_reach_below_the_data() {
    let (pointer, _) = produce(vec![0.0; 6], vec![2, 3], vec![-3, 1], |mut dl_tensor| {
        dl_tensor.byte_offset = 12;
        DLManagedTensor { dl_tensor, manager_ctx: null_mut(), deleter: Some(delete) }
    });
    let foreign = take(pointer).unwrap();
    assert_eq!(foreign.byte_extent(), -12..12);
    assert_eq!(foreign.strides(), [-3, 1]);
    // SAFETY: the producer lives as long as `foreign`.
    let start = unsafe { (*pointer).dl_tensor.data };
    assert_eq!(foreign.data().addr(), start.addr() + 12);
}

#[test]
fn exported_tensors_match_their_description() {
    let mut data = vec![1_i16, 2, 3, 4, 5, 6];
    let start = data.as_mut_ptr();
    let description = Description {
        data: start.cast(),
        device: DLDevice::CPU,
        dtype: DLDataType::from_dtype(Dtype::Int16),
        shape: &[3, 2],
        strides: &[1, 3],
        flags: READ_ONLY | IS_COPIED,
    };
    // SAFETY: the description stays within the vector, and the owner keeps its heap memory.
    let pointer = unsafe { Owned::<DLManagedTensorVersioned>::new(description, data) }.into_raw();
    let foreign = take(pointer.as_ptr()).unwrap();
    assert_eq!(foreign.data(), start.cast());
    assert_eq!((foreign.shape(), foreign.strides()), (&[3, 2][..], &[1, 3][..]));
    assert_eq!((foreign.flags(), foreign.is_read_only()), (READ_ONLY | IS_COPIED, true));
    // SAFETY: `foreign` keeps the vector alive, and the element is within its extent of 12 bytes.
    assert_eq!(unsafe { foreign.data().cast::<i16>().add(5).read() }, 6);
}

#[test]
fn exported_pointers_are_null_where_consumers_expect_it() {
    let mut value = Box::new(1.0_f32);
    let scalar = Description {
        data: std::ptr::from_mut(&mut *value).cast(),
        device: DLDevice::CPU,
        dtype: FLOAT32,
        shape: &[],
        strides: &[],
        flags: 0,
    };
    let empty = Description { shape: &[0, 2], strides: &[2, 1], ..scalar };
    // SAFETY: the data is never read.
    let [scalar, empty] = unsafe { [Owned::<DLManagedTensor>::new(scalar, value), Owned::new(empty, ())] };
    let tensor = scalar.tensor();
    assert!(tensor.shape.is_null() && tensor.strides.is_null() && !tensor.data.is_null());
    let tensor = empty.tensor();
    assert!(tensor.data.is_null() && !tensor.shape.is_null() && !tensor.strides.is_null());
}

#[test]
fn inconsistent_descriptions_panic() {
    let axes = [1; MAX_NDIM + 1];
    for (shape, strides) in [(&axes[..2], &axes[..1]), (&axes[..], &axes[..])] {
        let description =
            Description { data: null_mut(), device: DLDevice::CPU, dtype: FLOAT32, shape, strides, flags: 0 };
        let (ends, count) = Ends::new();
        // SAFETY: the data is never read.
        let outcome =
            catch_unwind(AssertUnwindSafe(|| unsafe { Owned::<DLManagedTensor>::new(description, ends) }));
        assert!(outcome.is_err());
        assert_eq!(ended(&count), 1);
    }
}
