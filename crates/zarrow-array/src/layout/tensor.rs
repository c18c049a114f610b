//! The owned tensor: one C-contiguous buffer of fixed-size elements.

use crate::buffer::Buffer;
use crate::dtype::DataType;
use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use crate::shape;

/// A C-contiguous tensor that owns its memory alone, and so lends safe slices.
///
/// To hand it to other libraries turn it [`into_shared`](Tensor::into_shared).
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
    /// A tensor over `buffer`, whose elements lie in C order.
    ///
    /// # Errors
    /// [`Error::NoSuchType`] where the type has no fixed size, or is optional; [`Error::LengthMismatch`] where
    /// the buffer has another length than shape and type ask for; [`Error::ShapeOverflow`].
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

    /// Extents, outermost axis first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> &DataType {
        &self.dtype
    }

    /// The elements' bytes in C order and in the machine's byte order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The elements' bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The elements' memory, for another array to be made of. Nothing is copied.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Gives the memory up to be shared with other libraries. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] where an extent or stride does not fit an `i64`, which no allocated tensor has.
    pub fn into_shared(self) -> Result<SharedTensor> {
        SharedTensor::from_buffer(self.buffer, &self.shape, self.dtype)
    }
}
