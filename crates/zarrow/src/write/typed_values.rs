//! Numbers, slices and layouts of Rust as values to write, none of them copied.

use crate::error::{Error, Result};
use crate::write::values::Values;
use std::convert::Infallible;
use zarrow_array::{DataType, DecodedArray, Element, Tensor, Variable};

impl<'a> Values<'a> {
    /// The elements of a slice, in C order of `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::WrongSize`](crate::ErrorKind::WrongSize) if the shape has another number of elements.
    ///
    /// ```
    /// use zarrow::Values;
    /// assert_eq!(Values::slice(&[1i16, 2, 3, 4, 5, 6], &[2, 3])?.shape(), [2, 3]);
    /// assert!(Values::slice(&[1i16, 2, 3], &[2]).is_err());
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    pub fn slice<T: Element>(elements: &'a [T], shape: &[u64]) -> Result<Values<'a>> {
        Values::contiguous(bytes(elements), dtype::<T>(), shape)
    }

    /// One element, which fits every selection.
    ///
    /// ```
    /// use zarrow::Values;
    /// assert_eq!(Values::scalar(&1.5f32).broadcast(&[4, 3])?.shape(), [4, 3]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    #[must_use]
    pub fn scalar<T: Element>(element: &'a T) -> Values<'a> {
        Values::in_c_order(bytes(std::slice::from_ref(element)), size_of::<T>(), dtype::<T>(), &[])
    }
}

fn dtype<T: Element>() -> DataType {
    DataType::Number(T::NUMBERS[0])
}

fn bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding, so that each of their bytes is initialised.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

impl<'a, T: Element> From<&'a [T]> for Values<'a> {
    /// The elements along one axis.
    fn from(elements: &'a [T]) -> Values<'a> {
        Values::in_c_order(bytes(elements), size_of::<T>(), dtype::<T>(), &[elements.len() as u64])
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Values<'a> {
    fn from(elements: &'a [T; N]) -> Values<'a> {
        Values::from(&elements[..])
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Values<'a> {
    fn from(elements: &'a Vec<T>) -> Values<'a> {
        Values::from(&elements[..])
    }
}

impl<'a> From<&'a Variable> for Values<'a> {
    fn from(variable: &'a Variable) -> Values<'a> {
        Values::variable(variable)
    }
}

impl<'a> TryFrom<&'a Tensor> for Values<'a> {
    type Error = Error;

    fn try_from(tensor: &'a Tensor) -> Result<Values<'a>> {
        Values::tensor(tensor)
    }
}

impl<'a> TryFrom<&'a DecodedArray> for Values<'a> {
    type Error = Error;

    fn try_from(array: &'a DecodedArray) -> Result<Values<'a>> {
        Values::decoded(array)
    }
}

impl<'a> From<&Values<'a>> for Values<'a> {
    fn from(values: &Values<'a>) -> Values<'a> {
        values.clone()
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Error {
        match never {}
    }
}
