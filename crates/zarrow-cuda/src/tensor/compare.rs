//! Comparison of elements, and tests whether all or any are true.

use super::DeviceTensor;
use crate::error::{Error, Result};
use crate::kernel::structs::{Compare, Type};
use crate::kernel::walk;
use crate::memory::DeviceMemory;
use zarrow_array::{DataType, Number};

/// A word on the device; kernels set its bits.
struct Flag(DeviceMemory);

impl Flag {
    fn new(tensor: &DeviceTensor) -> Result<Flag> {
        let flag = DeviceMemory::new(tensor.device(), 4)?;
        let current = tensor.device().enter()?;
        // SAFETY: the memory has these bytes, and is freed in the order of this stream.
        unsafe { current.driver.set_bytes(flag.address(), 0, 4, tensor.device().stream().handle())? };
        Ok(Flag(flag))
    }

    /// Returns its bits, after waiting for all work in the stream.
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
    /// Returns whether all elements have the same bits as those of `other`, which is broadcast to this shape. With
    /// `equal_nan`, any two NaNs are equal. Zeros of different signs differ.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the types differ; [`Error::OtherDevice`]; [`Error::Array`] if the shape cannot be
    /// broadcast; errors of the driver.
    pub fn all_equal(&self, other: &DeviceTensor, equal_nan: bool) -> Result<bool> {
        let device = self.same_device(other)?;
        self.same_type(other)?;
        // Types without arithmetic in the kernels are compared byte by byte.
        let (left, right) = match Type::from_dtype(self.dtype()) {
            Some(_) => (self.clone(), other.broadcast_to(self.shape())?),
            None => (self.in_bytes()?, other.broadcast_to(self.shape())?.in_bytes()?),
        };
        let kind = Type::from_dtype(left.dtype()).unwrap_or(Type::UInt8);
        let flag = Flag::new(self)?;
        for walk in walk::walks(left.shape(), [&right.byte_strides(), &left.byte_strides()]) {
            let pair = Compare {
                left: left.address().wrapping_add_signed(walk.offsets[1]),
                right: right.address().wrapping_add_signed(walk.offsets[0]),
                left_stride: walk.strides[1],
                right_stride: walk.strides[0],
                equal_nan: u32::from(equal_nan),
                count: walk.count,
                rank: walk.rank,
                shape: walk.shape,
                kind,
                ..Compare::default()
            };
            // SAFETY: both layouts only reach memory of their owners, which is freed in the order of this stream.
            unsafe { device.launch_differs(&pair, flag.0.address())? };
        }
        Ok(flag.read()? == 0)
    }

    /// Compares each element with that of `other`, which must have the same type and is broadcast to this shape. As
    /// in IEEE 754, zeros are equal and NaN equals nothing. Returns a tensor of bool.
    ///
    /// # Errors
    /// See [`all_equal`](DeviceTensor::all_equal); [`Error::Unsupported`] for a type without arithmetic in the
    /// kernels.
    pub fn equal(&self, other: &DeviceTensor) -> Result<DeviceTensor> {
        let device = self.same_device(other)?;
        let kind = self.comparable()?;
        self.same_type(other)?;
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
                count: walk.count,
                rank: walk.rank,
                shape: walk.shape,
                kind,
                ..Compare::default()
            };
            // SAFETY: as in `all_equal`; the destination is new.
            unsafe { device.launch_equal(&pair)? };
        }
        Ok(result)
    }

    /// Returns whether all elements are non-zero; true for an empty tensor.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a type without arithmetic in the kernels; errors of the driver.
    pub fn all(&self) -> Result<bool> {
        Ok(self.found()? & 1 == 0)
    }

    /// Returns whether any element is non-zero.
    ///
    /// # Errors
    /// See [`all`](DeviceTensor::all).
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
                count: walk.count,
                rank: walk.rank,
                shape: walk.shape,
                kind,
                ..Compare::default()
            };
            // SAFETY: as in `all_equal`.
            unsafe { self.device().launch_nonzero(&elements, flag.0.address())? };
        }
        flag.read()
    }

    fn comparable(&self) -> Result<Type> {
        Type::from_dtype(self.dtype()).ok_or_else(|| {
            Error::Unsupported(format!(
                "no kernel compares {}: compare on the CPU, with .cpu()",
                self.dtype()
            ))
        })
    }

    /// Reinterprets the elements as bytes, with an additional axis.
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
