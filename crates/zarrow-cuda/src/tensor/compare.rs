//! Comparing elements, and asking whether all or any of them are true.

use super::DeviceTensor;
use crate::error::{Error, Result};
use crate::kernel::structs::{Compare, Type};
use crate::kernel::walk;
use crate::memory::DeviceMemory;
use zarrow_array::{DataType, Number};

/// A word on the device that kernels set bits of.
struct Flag(DeviceMemory);

impl Flag {
    fn new(tensor: &DeviceTensor) -> Result<Flag> {
        let flag = DeviceMemory::new(tensor.device(), 4)?;
        let current = tensor.device().enter()?;
        // SAFETY: the memory has these bytes, and is freed in the order of this stream.
        unsafe { current.driver.set_bytes(flag.address(), 0, 4, tensor.device().stream().handle())? };
        Ok(Flag(flag))
    }

    /// Its bits, when all that was given to the stream is done.
    fn read(&self) -> Result<u32> {
        let device = self.0.device();
        let mut bits = 0u32;
        let current = device.enter()?;
        // SAFETY: the number has these bytes, and lives until the stream has done the copy.
        unsafe {
            let stream = device.stream().handle();
            current.driver.copy_to_host((&raw mut bits).cast(), self.0.address(), 4, stream)?;
            current.driver.stream_synchronize(stream)?;
        }
        Ok(bits)
    }
}

impl DeviceTensor {
    /// Whether each element has the same bits as that of `other`, which is broadcast to this shape. With `equal_nan`, two
    /// values that are no numbers are equal whatever their bits. Zeros of different signs differ.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the types differ; [`Error::OtherDevice`]; [`Error::Array`] for a shape that cannot be
    /// broadcast; what the driver answers.
    pub fn all_equal(&self, other: &DeviceTensor, equal_nan: bool) -> Result<bool> {
        let device = self.same_device(other)?;
        if self.dtype() != other.dtype() {
            let (ours, theirs) = (self.dtype(), other.dtype());
            return Err(Error::Unsupported(format!(
                "expected elements of {ours}, got {theirs}: type .astype first"
            )));
        }
        // Elements that kernels do not compute with are compared byte by byte.
        let (left, right) = match Type::of(self.dtype()) {
            Some(_) => (self.clone(), other.broadcast_to(self.shape())?),
            None => (self.in_bytes()?, other.broadcast_to(self.shape())?.in_bytes()?),
        };
        let kind = Type::of(left.dtype()).unwrap_or(Type::UInt8);
        let flag = Flag::new(self)?;
        for walk in walk::walks(left.shape(), [&right.byte_strides(), &left.byte_strides()]) {
            let pair = Compare {
                left: left.address().wrapping_add_signed(walk.offsets[1]),
                right: right.address().wrapping_add_signed(walk.offsets[0]),
                left_stride: walk.strides[1],
                right_stride: walk.strides[0],
                equal_nan: u32::from(equal_nan),
                ..elements_of(kind, walk.count, walk.rank, walk.shape)
            };
            // SAFETY: both layouts reach memory of their owners only, which is given back in the order of this stream.
            unsafe { device.launch_differs(&pair, flag.0.address())? };
        }
        Ok(flag.read()? == 0)
    }

    /// Whether each element equals that of `other`, which has the same type and is broadcast to this shape: as IEEE 754
    /// says, zeros are equal and what is no number equals nothing. A tensor of bool.
    ///
    /// # Errors
    /// As [`all_equal`](DeviceTensor::all_equal); [`Error::Unsupported`] for a type that kernels do not compute with.
    pub fn equal(&self, other: &DeviceTensor) -> Result<DeviceTensor> {
        let device = self.same_device(other)?;
        let kind = self.comparable()?;
        if self.dtype() != other.dtype() {
            let (ours, theirs) = (self.dtype(), other.dtype());
            return Err(Error::Unsupported(format!(
                "expected elements of {ours}, got {theirs}: type .astype first"
            )));
        }
        let other = other.broadcast_to(self.shape())?;
        let result = DeviceTensor::empty(device, &self.extents(), Number::Bool.into())?;
        let strides = [&self.byte_strides()[..], &other.byte_strides(), &result.byte_strides()];
        for walk in walk::walks(self.shape(), strides) {
            let pair = Compare {
                left: self.address().wrapping_add_signed(walk.offsets[0]),
                right: other.address().wrapping_add_signed(walk.offsets[1]),
                destination: result.address().wrapping_add_signed(walk.offsets[2]),
                left_stride: walk.strides[0],
                right_stride: walk.strides[1],
                destination_stride: walk.strides[2],
                ..elements_of(kind, walk.count, walk.rank, walk.shape)
            };
            // SAFETY: as in `all_equal`; the destination is new.
            unsafe { device.launch_equal(&pair)? };
        }
        Ok(result)
    }

    /// Whether no element is zero. True where there are none.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a type that kernels do not compute with; what the driver answers.
    pub fn all(&self) -> Result<bool> {
        Ok(self.found()? & 1 == 0)
    }

    /// Whether an element is not zero.
    ///
    /// # Errors
    /// As [`all`](DeviceTensor::all).
    pub fn any(&self) -> Result<bool> {
        Ok(self.found()? & 2 != 0)
    }

    fn found(&self) -> Result<u32> {
        let kind = self.comparable()?;
        let flag = Flag::new(self)?;
        for walk in walk::walks(self.shape(), [&self.byte_strides()]) {
            let elements = Compare {
                left: self.address().wrapping_add_signed(walk.offsets[0]),
                left_stride: walk.strides[0],
                ..elements_of(kind, walk.count, walk.rank, walk.shape)
            };
            // SAFETY: as in `all_equal`.
            unsafe { self.device().launch_nonzero(&elements, flag.0.address())? };
        }
        flag.read()
    }

    fn comparable(&self) -> Result<Type> {
        Type::of(self.dtype()).ok_or_else(|| {
            Error::Unsupported(format!(
                "no kernel compares {}: compare on the CPU, with .cpu()",
                self.dtype()
            ))
        })
    }

    /// The elements as bytes, which are one more axis.
    fn in_bytes(&self) -> Result<DeviceTensor> {
        let byte = DataType::from(Number::UInt8);
        let mut shape = self.shape().to_vec();
        shape.push(1);
        let mut strides = self.strides().to_vec();
        strides.push(1);
        let layout = zarrow_array::StridedLayout::new(shape.into(), strides.into());
        DeviceTensor { layout, ..self.clone() }.reinterpret(byte)
    }
}

fn elements_of(kind: Type, count: u64, rank: u32, shape: [u64; 8]) -> Compare {
    Compare {
        left: 0,
        right: 0,
        destination: 0,
        count,
        shape,
        left_stride: [0; 8],
        right_stride: [0; 8],
        destination_stride: [0; 8],
        rank,
        kind,
        equal_nan: 0,
        reserved: 0,
    }
}
