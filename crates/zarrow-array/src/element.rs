//! Elements as Rust values: slices of a tensor's memory, and tensors from vectors, without a copy.

use crate::{Buffer, DataType, Error, Number, Result, Tensor};

/// A Rust type with the same memory representation as elements of a tensor.
///
/// # Safety
/// Every bit pattern must be a valid value of the type. The type must have no padding, and the same size as each of
/// [`NUMBERS`](Self::NUMBERS).
pub unsafe trait Element: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// Data types with this element type; vectors become tensors of the first.
    const NUMBERS: &'static [Number];
}

macro_rules! elements {
    ($($rust:ty: $($number:ident)+;)+) => {
        $(
            // SAFETY: primitive numbers have a value for every bit pattern, and no padding; a test compares the
            // sizes.
            unsafe impl Element for $rust {
                const NUMBERS: &'static [Number] = &[$(Number::$number),+];
            }
        )+
    };
}

elements! {
    i8: Int8;
    i16: Int16;
    i32: Int32;
    i64: Int64;
    u8: UInt8 Bool;
    u16: UInt16;
    u32: UInt32;
    u64: UInt64;
    f32: Float32;
    f64: Float64;
    [f32; 2]: Complex64;
    [f64; 2]: Complex128;
}

impl Tensor {
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
