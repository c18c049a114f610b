//! Checks the structs against the byte offsets of the DLPack specification, for reads and writes.
#![cfg(target_pointer_width = "64")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::ptr::NonNull;

use zarrow_dlpack::{
    DLDataType, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
    Description, Dtype, Foreign, IS_COPIED, IS_SUBBYTE_TYPE_PADDED, Managed, Owned, READ_ONLY,
};

/// A struct as a C compiler lays it out: every field is written at the offset from the specification.
struct Image<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Image<WORDS> {
    fn write<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) {
        assert!(offset + N <= WORDS * 8);
        // SAFETY: the bytes lie within the words.
        unsafe { self.0.as_mut_ptr().byte_add(offset).cast::<[u8; N]>().write_unaligned(bytes) };
    }

    /// Writes a pointer with its provenance.
    fn write_pointer<T>(&mut self, offset: usize, pointer: *const T) {
        assert!(offset + size_of_val(&pointer) <= WORDS * 8);
        // SAFETY: the bytes lie within the words.
        unsafe { self.0.as_mut_ptr().byte_add(offset).cast::<*const T>().write_unaligned(pointer) };
    }

    fn write_tensor(&mut self, at: usize, data: &[f32], shape: &[i64], strides: &[i64]) {
        self.write_pointer(at, data.as_ptr());
        self.write(at + 8, 2_i32.to_ne_bytes());
        self.write(at + 12, 5_i32.to_ne_bytes());
        self.write(at + 16, 2_i32.to_ne_bytes());
        self.write(at + 20, [2_u8]);
        self.write(at + 21, [32_u8]);
        self.write(at + 22, 1_u16.to_ne_bytes());
        self.write_pointer(at + 24, shape.as_ptr());
        self.write_pointer(at + 32, strides.as_ptr());
        self.write(at + 40, 4_u64.to_ne_bytes());
    }

    fn borrow<M: Managed>(&mut self) -> Foreign<M> {
        assert_eq!(size_of::<M>(), WORDS * 8);
        // SAFETY: the image is a live managed tensor with a NULL deleter, and outlives its use in the tests.
        unsafe { Foreign::from_raw(NonNull::from(&mut self.0).cast()).unwrap() }
    }
}

fn assert_read<M: Managed>(foreign: &Foreign<M>, data: &[f32]) {
    assert_eq!(foreign.device(), DLDevice::new(DLDeviceType::CUDA, 5));
    assert_eq!(foreign.dtype(), DLDataType::from_dtype(Dtype::Float32));
    assert_eq!(foreign.shape(), [2, 3]);
    assert_eq!(foreign.strides(), [1, 2]);
    assert_eq!(foreign.data().addr(), data.as_ptr().addr() + 4);
    assert_eq!(foreign.byte_extent(), 0..24);
}

#[test]
fn legacy_fields_are_read_from_their_offsets() {
    let (data, shape, strides) = ([0.0; 7], [2, 3], [1, 2]);
    let mut image = Image([0; 8]);
    image.write_tensor(0, &data, &shape, &strides);
    image.write(48, [0xaa; 8]);
    let foreign = image.borrow::<DLManagedTensor>();
    assert_read(&foreign, &data);
    assert_eq!(foreign.flags(), 0);
}

#[test]
fn versioned_fields_are_read_from_their_offsets() {
    let (data, shape, strides) = ([0.0; 7], [2, 3], [1, 2]);
    let mut image = Image([0; 10]);
    image.write(0, 1_u32.to_ne_bytes());
    image.write(4, 9_u32.to_ne_bytes());
    image.write(8, [0xaa; 8]);
    image.write(24, 3_u64.to_ne_bytes());
    image.write_tensor(32, &data, &shape, &strides);
    let foreign = image.borrow::<DLManagedTensorVersioned>();
    assert_read(&foreign, &data);
    assert_eq!(foreign.flags(), READ_ONLY | IS_COPIED);
    assert!(foreign.is_read_only());
}

/// Reads the field at `offset` of an exported tensor.
fn field<M, T>(managed: NonNull<M>, offset: usize) -> T {
    assert!(offset + size_of::<T>() <= size_of::<M>());
    // SAFETY: the field lies within the struct, and every `T` in this file may have any bits.
    unsafe { managed.as_ptr().byte_add(offset).cast::<T>().read_unaligned() }
}

fn assert_written<M: Managed>(at: usize, check: impl Fn(NonNull<M>)) {
    let mut data = vec![0_u16; 12];
    let start = data.as_mut_ptr();
    let description = Description {
        data: start.cast(),
        device: DLDevice::new(DLDeviceType::CUDA_MANAGED, 7),
        dtype: DLDataType::from_dtype(Dtype::BFloat16),
        shape: &[2, 3],
        strides: &[1, 4],
        flags: READ_ONLY | IS_SUBBYTE_TYPE_PADDED,
    };
    // SAFETY: the description stays within the vector, and the owner keeps its heap memory.
    let managed = unsafe { Owned::<M>::new(description, data) }.into_raw();
    assert_eq!(field::<M, usize>(managed, at), start.addr());
    assert_eq!(field::<M, [i32; 2]>(managed, at + 8), [13, 7]);
    assert_eq!(field::<M, i32>(managed, at + 16), 2);
    assert_eq!(field::<M, [u8; 2]>(managed, at + 20), [4, 16]);
    assert_eq!(field::<M, u16>(managed, at + 22), 1);
    // SAFETY: both pointers are to `ndim` numbers in the tensor's own block.
    let axes = |offset| unsafe { field::<M, *const [i64; 2]>(managed, offset).read() };
    assert_eq!(axes(at + 24), [2, 3]);
    assert_eq!(axes(at + 32), [1, 4]);
    assert_eq!(field::<M, u64>(managed, at + 40), 0);
    check(managed);
    // SAFETY: the tensor is ours, live, and only consumed here.
    drop(unsafe { Foreign::from_raw(managed) }.unwrap());
}

#[test]
fn legacy_fields_are_written_at_their_offsets() {
    assert_written::<DLManagedTensor>(0, |managed| assert_ne!(field::<_, usize>(managed, 56), 0));
}

#[test]
fn versioned_fields_are_written_at_their_offsets() {
    assert_written::<DLManagedTensorVersioned>(32, |managed| {
        assert_eq!(field::<_, [u32; 2]>(managed, 0), [1, 3]);
        assert_ne!(field::<_, usize>(managed, 16), 0);
        assert_eq!(field::<_, u64>(managed, 24), 0b101);
    });
}

#[test]
fn sizes_are_those_of_the_specification() {
    assert_eq!([size_of::<DLPackVersion>(), size_of::<DLDevice>(), size_of::<DLDataType>()], [8, 8, 4]);
    assert_eq!(
        [size_of::<DLTensor>(), size_of::<DLManagedTensor>(), size_of::<DLManagedTensorVersioned>()],
        [48, 64, 80]
    );
}

#[test]
fn device_codes_are_those_of_the_specification() {
    let codes = DLDeviceType::ALL.iter().map(|(code, _)| *code);
    assert!(codes.eq([1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]));
    assert_eq!(DLDevice::CPU.to_string(), "kDLCPU:0");
    assert_eq!(DLDevice::new(5, 1).to_string(), "device type 5:1");
}
