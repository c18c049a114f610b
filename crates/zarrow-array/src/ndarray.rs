//! Zero-copy conversion between tensors and `ndarray` arrays.

use crate::element::Element;
use crate::{Error, Result, Tensor};
use ndarray::{Array, ArrayViewD, ArrayViewMutD, Dimension, IxDyn};

impl Tensor {
    /// Returns an `ndarray` view of the tensor.
    ///
    /// # Errors
    /// See [`as_slice`](Tensor::as_slice); [`Error::ShapeOverflow`] for extents that `ndarray` does not support.
    ///
    /// ```
    /// use zarrow_array::Tensor;
    /// let mut tensor = Tensor::from_vec(vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], vec![2, 3])?;
    /// tensor.as_ndarray_mut::<f64>()?.index_axis_mut(ndarray::Axis(0), 0).fill(0.0);
    /// assert_eq!(tensor.as_ndarray::<f64>()?.sum(), 15.0);
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn as_ndarray<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        let elements = self.as_slice::<T>()?;
        ArrayViewD::from_shape(dimensions(self.shape())?, elements).map_err(|_| overflow(self.shape()))
    }

    /// Returns a mutable `ndarray` view of the tensor.
    ///
    /// # Errors
    /// See [`as_ndarray`](Tensor::as_ndarray).
    pub fn as_ndarray_mut<T: Element>(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        let (dimensions, overflow) = (dimensions(self.shape())?, overflow(self.shape()));
        ArrayViewMutD::from_shape(dimensions, self.as_mut_slice::<T>()?).map_err(|_| overflow)
    }

    /// Creates a tensor in the array's own memory.
    ///
    /// # Errors
    /// [`Error::NeedsCopy`] for an array that is not in C order or does not use all of its memory: convert it by
    /// `array.as_standard_layout().into_owned()` first.
    ///
    /// ```
    /// use zarrow_array::{Number, Tensor};
    /// let array = ndarray::array![[1i32, 2], [3, 4], [5, 6]];
    /// let address = array.as_ptr();
    /// let tensor = Tensor::from_ndarray(array)?;
    /// assert_eq!((tensor.shape(), tensor.dtype()), (&[3u64, 2][..], &Number::Int32.into()));
    /// assert_eq!(tensor.bytes().as_ptr(), address.cast());
    /// # Ok::<(), zarrow_array::Error>(())
    /// ```
    pub fn from_ndarray<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Tensor> {
        let shape: Vec<u64> = array.shape().iter().map(|extent| *extent as u64).collect();
        let count = array.len();
        let not_contiguous =
            || Error::NeedsCopy { protocol: "a tensor", what: "an array that is not in C order" };
        if !array.is_standard_layout() {
            return Err(not_contiguous());
        }
        let (elements, offset) = array.into_raw_vec_and_offset();
        if offset.unwrap_or(0) != 0 || elements.len() != count {
            return Err(not_contiguous());
        }
        Tensor::from_vec(elements, shape)
    }
}

fn overflow(shape: &[u64]) -> Error {
    Error::ShapeOverflow { shape: shape.to_vec(), item_size: 1 }
}

fn dimensions(shape: &[u64]) -> Result<IxDyn> {
    let extents = shape.iter().map(|extent| usize::try_from(*extent).map_err(|_| overflow(shape)));
    Ok(IxDyn(&extents.collect::<Result<Vec<usize>>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};

    #[test]
    fn views_share_the_memory() {
        let mut tensor = Tensor::from_vec((0..24u32).collect(), vec![2, 3, 4]).unwrap();
        let view = tensor.as_ndarray::<u32>().unwrap();
        assert_eq!((view.shape(), view.strides(), view[[1, 2, 3]]), (&[2, 3, 4][..], &[12, 4, 1][..], 23));
        assert_eq!(view.as_ptr().cast(), tensor.bytes().as_ptr());
        tensor.as_ndarray_mut::<u32>().unwrap().fill(7);
        assert!(tensor.as_slice::<u32>().unwrap().iter().all(|element| *element == 7));
        assert!(tensor.as_ndarray::<i32>().is_err());
    }

    #[test]
    fn empty_and_scalar_tensors_are_arrays_too() {
        let none = Tensor::from_vec(Vec::<f32>::new(), vec![3, 0]).unwrap();
        assert_eq!(none.as_ndarray::<f32>().unwrap().shape(), [3, 0]);
        let one = Tensor::from_vec(vec![1.5f32], vec![]).unwrap();
        assert_eq!(one.as_ndarray::<f32>().unwrap().first(), Some(&1.5));
    }

    #[test]
    fn non_contiguous_arrays_are_refused() {
        let array = Array2::<f64>::zeros((3, 4));
        assert!(Tensor::from_ndarray(array.clone().reversed_axes()).is_err());
        assert!(Tensor::from_ndarray(array.clone().slice_move(s![1.., ..])).is_err());
        assert_eq!(Tensor::from_ndarray(array).unwrap().shape(), [3, 4]);
    }
}
