//! The owned tensor: one C-contiguous buffer of fixed-size elements.

use crate::buffer::Buffer;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use crate::shape;

/// A C-contiguous tensor that owns its memory exclusively, so that it can hand out safe slices.
///
/// To share it with other libraries, use [`into_shared`](Tensor::into_shared).
///
/// ```
/// use zarrow_array::{Buffer, Number, Tensor};
/// let tensor = Tensor::new(Buffer::zeroed(24).unwrap(), vec![2, 3], Number::Int32.into()).unwrap();
/// assert_eq!(tensor.shape(), [2, 3]);
/// assert_eq!(tensor.bytes().len(), 24);
/// ```
#[derive(Debug)]
pub struct Tensor {
    buffer: Buffer,
    shape: Vec<u64>,
    dtype: DataType,
}

impl Tensor {
    /// Creates a tensor over `buffer`, with elements in C order.
    ///
    /// # Errors
    /// [`Error::NoSuchType`] if the type has no fixed size, or is optional; [`Error::LengthMismatch`] if the length
    /// of the buffer does not match shape and type; [`Error::ShapeOverflow`].
    pub fn new(buffer: Buffer, shape: Vec<u64>, dtype: DataType) -> Result<Tensor> {
        let item_size = match dtype {
            DataType::Optional(_) => None,
            ref dtype => dtype.item_size(),
        };
        let Some(item_size) = item_size else {
            return Err(Error::NoSuchType { protocol: "a tensor", dtype });
        };
        let expected = shape::nbytes(&shape, item_size)?;
        if buffer.len() != expected {
            return Err(Error::LengthMismatch { what: "the data buffer", expected, actual: buffer.len() });
        }
        Ok(Tensor { buffer, shape, dtype })
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the element type.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        &self.dtype
    }

    /// Returns the bytes of the elements, in C order and native-endian.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the bytes of the elements for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Returns the buffer, without a copy.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Converts to a tensor that can be shared with other libraries. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if an extent or stride does not fit an `i64`; impossible for an allocated tensor.
    pub fn into_shared(self) -> Result<SharedTensor> {
        SharedTensor::from_buffer(self.buffer, &self.shape, self.dtype)
    }
}
