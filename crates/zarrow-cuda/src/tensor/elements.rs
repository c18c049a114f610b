//! Copies, fills and casts of all elements.

use super::DeviceTensor;
use crate::error::{Error, Result};
use crate::kernel::structs::{Cast, Piece, Shuffle, Type};
use crate::kernel::{walk, width};
use crate::stream::Stream;
use zarrow_array::DataType;

impl DeviceTensor {
    /// Copies the tensor to new memory, in C order.
    ///
    /// # Errors
    /// See [`empty`](DeviceTensor::empty); errors of the driver.
    pub fn copy(&self) -> Result<DeviceTensor> {
        let copy = DeviceTensor::empty(self.device(), &self.extents(), self.dtype().clone())?;
        copy.assign(self)?;
        Ok(copy)
    }

    /// Returns the tensor itself if it is C-contiguous, else a copy.
    ///
    /// # Errors
    /// See [`copy`](DeviceTensor::copy).
    pub fn contiguous(&self) -> Result<DeviceTensor> {
        if self.is_c_contiguous() { Ok(self.clone()) } else { self.copy() }
    }

    /// Copies the elements of `source`, which has the same type and is broadcast to this shape, into this tensor.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::OtherDevice`]; [`Error::Unsupported`] for another type; [`Error::Array`] if
    /// the shape cannot be broadcast; errors of the driver.
    pub fn assign(&self, source: &DeviceTensor) -> Result<()> {
        self.check_writable()?;
        let device = self.same_device(source)?;
        self.same_type(source)?;
        let source = source.broadcast_to(self.shape())?;
        // Overlapping elements are copied through other memory, since threads process them in any order.
        let source = if self.may_overlap(&source) { source.copy()? } else { source };
        self.assign_in(&source, device.stream())
    }

    /// Copies the elements of `source` here, in `stream`, one of the device's own. Both must have the same type and
    /// shape, and disjoint memory usable in the stream; this tensor must be writable.
    pub(crate) fn assign_in(&self, source: &DeviceTensor, stream: Stream) -> Result<()> {
        let device = self.device();
        if self.is_c_contiguous() && source.is_c_contiguous() {
            let current = device.enter()?;
            // SAFETY: both have the same number of bytes, in memory that is freed in the order of this stream.
            return unsafe {
                match self.nbytes() {
                    0 => Ok(()),
                    nbytes => {
                        let (to, from) = (self.address(), source.address());
                        current.driver.copy_on_device(to, from, nbytes, stream.handle())
                    }
                }
            };
        }
        let (nbytes, shape, from, to) = self.in_words(source);
        for walk in walk::walks(&shape, [&from, &to]) {
            let piece = Piece {
                source: source.address().wrapping_add_signed(walk.offsets[0]),
                source_offset: 0,
                destination: self.address().wrapping_add_signed(walk.offsets[1]),
                count: walk.count,
                shape: walk.shape,
                source_stride: walk.strides[0],
                destination_stride: walk.strides[1],
                rank: walk.rank,
                ..Piece::default()
            };
            // SAFETY: layouts only reach memory of their owners (checked by the code that made them), which is
            // freed in the order of this stream; `self` is writable, and does not overlap `source`.
            unsafe { device.launch_copy(stream, nbytes, &piece)? };
        }
        Ok(())
    }

    /// Sets each element to `value`, the bytes of one element.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Unsupported`] for a value of another size; errors of the driver.
    pub fn fill(&self, value: &[u8]) -> Result<()> {
        self.check_writable()?;
        let item_size = self.item_size();
        if value.len() != item_size {
            let text = format!("expected a value of {item_size} bytes, got {}", value.len());
            return Err(Error::Unsupported(text));
        }
        let width = width(item_size);
        // Elements of several words are filled word by word.
        for (number, word) in value.chunks_exact(width).enumerate() {
            let mut fill = [0; 16];
            fill[..width].copy_from_slice(word);
            let strides = self.byte_strides();
            for walk in walk::walks(self.shape(), [&strides]) {
                let offset = walk.offsets[0] + (number * width) as i64;
                let piece = Piece {
                    destination: self.address().wrapping_add_signed(offset),
                    count: walk.count,
                    shape: walk.shape,
                    destination_stride: walk.strides[0],
                    rank: walk.rank,
                    shuffle: Shuffle::Fill,
                    fill,
                    ..Piece::default()
                };
                // SAFETY: as in `assign`.
                unsafe { self.device().launch_copy(self.device().stream(), width, &piece)? };
            }
        }
        Ok(())
    }

    /// Converts the elements to `dtype`, in new memory in C order.
    ///
    /// Numbers are converted like NumPy's `astype` on x86-64: rounded to nearest, once. From complex to real, the
    /// imaginary part is dropped. NaN and floats out of range of an integer type give the same result on every
    /// device: the lowest `i32`, truncated for narrower types, and the lowest `i64` for `u32` and 64 bits (details
    /// in `number.cuh`).
    ///
    /// # Errors
    /// [`Error::Unsupported`] for types without arithmetic in the kernels; [`Error::OutOfMemory`]; errors of the
    /// driver.
    pub fn astype(&self, dtype: &DataType) -> Result<DeviceTensor> {
        if dtype == self.dtype() {
            return self.copy();
        }
        let types = (Type::from_dtype(self.dtype()), Type::from_dtype(dtype));
        let (Some(source_type), Some(destination_type)) = types else {
            let text =
                format!("no kernel converts {} to {dtype}: convert on the CPU after .cpu()", self.dtype());
            return Err(Error::Unsupported(text));
        };
        let cast = DeviceTensor::empty(self.device(), &self.extents(), dtype.clone())?;
        for walk in walk::walks(self.shape(), [&self.byte_strides(), &cast.byte_strides()]) {
            let elements = Cast {
                source: self.address().wrapping_add_signed(walk.offsets[0]),
                destination: cast.address().wrapping_add_signed(walk.offsets[1]),
                count: walk.count,
                shape: walk.shape,
                source_stride: walk.strides[0],
                destination_stride: walk.strides[1],
                rank: walk.rank,
                source_type,
                destination_type,
                reserved: 0,
            };
            // SAFETY: as in `assign`; the destination is new.
            unsafe { self.device().launch_cast(&elements)? };
        }
        Ok(cast)
    }

    /// Returns the shape as unsigned extents.
    #[must_use]
    pub fn extents(&self) -> Vec<u64> {
        self.shape().iter().map(|extent| extent.unsigned_abs()).collect()
    }

    /// Returns both tensors as words for a kernel: bytes per word, shape, and the strides of `source` and of this
    /// tensor.
    pub(super) fn in_words(&self, source: &DeviceTensor) -> (usize, Vec<i64>, Vec<i64>, Vec<i64>) {
        let (mut shape, mut from, mut to) =
            (self.shape().to_vec(), source.byte_strides(), self.byte_strides());
        let width = width(self.item_size());
        if width < self.item_size() {
            shape.push((self.item_size() / width) as i64);
            from.push(width as i64);
            to.push(width as i64);
        }
        (width, shape, from, to)
    }

    /// Returns whether elements of the two tensors may share bytes: whether their address ranges overlap.
    #[must_use]
    pub fn may_overlap(&self, other: &DeviceTensor) -> bool {
        let span = |tensor: &DeviceTensor| {
            let bounds = zarrow_array::shape::element_bounds(tensor.shape(), tensor.strides()).ok().flatten();
            bounds.map(|(low, high)| {
                let item = tensor.item_size() as i64;
                let start = tensor.address().wrapping_add_signed(low.wrapping_mul(item));
                let end = tensor.address().wrapping_add_signed(high.wrapping_add(1).wrapping_mul(item));
                (start, end)
            })
        };
        match (span(self), span(other)) {
            (Some(ours), Some(theirs)) => ours.0 < theirs.1 && theirs.0 < ours.1,
            _ => false,
        }
    }
}
