//! The owned tensor: one C-contiguous buffer of fixed-size elements.

use crate::buffer::Buffer;
use crate::dtype::DataType;
use crate::element::Element;
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

    /// Creates a tensor from elements in C order, in the vector's own memory.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the shape has another number of elements; [`Error::ShapeOverflow`].
    ///
    /// ```
    /// use zarrow_array::Tensor;
    /// let tensor = Tensor::from_vec(vec![1.5f32, 2.5, 3.5, 4.5, 5.5, 6.5], vec![2, 3])?;
    /// assert_eq!(tensor.as_slice::<f32>()?[4], 5.5);
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: Vec<u64>) -> Result<Tensor> {
        Tensor::new(Buffer::from(elements), shape, DataType::Number(T::NUMBERS[0]))
    }

    /// Returns the elements in C order, without a copy.
    ///
    /// # Errors
    /// [`Error::BadView`] if the elements have another type, or if memory imported from another library is not
    /// aligned for them.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        check::<T>(self)?;
        let bytes = self.bytes();
        // SAFETY: `check` checked that the memory is aligned and holds elements of this type; every bit
        // pattern is a value.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    /// Returns the elements in C order for writing, without a copy.
    ///
    /// # Errors
    /// See [`as_slice`](Tensor::as_slice).
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        check::<T>(self)?;
        let bytes = self.bytes_mut();
        // SAFETY: as for `as_slice`, and `&mut self` is the only access.
        Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>()) })
    }
}

fn check<T: Element>(tensor: &Tensor) -> Result<()> {
    let name = std::any::type_name::<T>();
    if !tensor.dtype().as_number().is_some_and(|number| T::NUMBERS.contains(&number)) {
        return Err(Error::BadView(format!("the elements are {}, expected {name}", tensor.dtype())));
    }
    if !tensor.bytes().as_ptr().addr().is_multiple_of(align_of::<T>()) {
        return Err(Error::BadView(format!("the memory is not aligned for {name}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Number;

    fn round_trip<T: Element + PartialEq + Default>() {
        for number in T::NUMBERS {
            assert_eq!(number.names().item_size, size_of::<T>(), "{number:?}");
        }
        let elements = vec![T::default(); 6];
        let address = elements.as_ptr();
        let mut tensor = Tensor::from_vec(elements, vec![2, 3]).unwrap();
        assert_eq!(tensor.as_mut_slice::<T>().unwrap().as_ptr(), address);
        assert_eq!(tensor.as_slice::<T>().unwrap(), [T::default(); 6]);
    }

    #[test]
    fn vectors_become_tensors_in_their_own_memory() {
        round_trip::<i8>();
        round_trip::<i16>();
        round_trip::<i32>();
        round_trip::<i64>();
        round_trip::<u8>();
        round_trip::<u16>();
        round_trip::<u32>();
        round_trip::<u64>();
        round_trip::<f32>();
        round_trip::<f64>();
        round_trip::<[f32; 2]>();
        round_trip::<[f64; 2]>();
    }

    #[test]
    fn other_types_and_misaligned_memory_are_refused() {
        let tensor = Tensor::from_vec(vec![1u16, 2], vec![2]).unwrap();
        assert!(tensor.as_slice::<i16>().is_err());
        assert!(Tensor::from_vec(vec![1u16, 2], vec![3]).is_err());
        let tensor = Tensor::new(Buffer::from(vec![0u8; 8]), vec![1], Number::Float64.into()).unwrap();
        let aligned = tensor.bytes().as_ptr().addr().is_multiple_of(8);
        assert_eq!(tensor.as_slice::<f64>().is_ok(), aligned);
    }
}
