//! Arrays of the `ndarray` crate as values to write, in any memory order.
//!
//! An element's address is the array's pointer plus a sum of strides, which may be negative: the memory begins at the
//! end of every axis with a negative stride, and ends at the end of every axis with a positive one.

use crate::error::{Error, Result};
use crate::write::values::Values;
use ndarray::{ArrayBase, Data, Dimension};
use zarrow_array::{DataType, Element};

impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for Values<'a> {
    type Error = Error;

    /// Borrows the elements without copying, in C order, in F order, or as a view of another array.
    ///
    /// ```
    /// use ndarray::{Array2, s};
    /// use zarrow::Values;
    /// let array = Array2::<f32>::zeros((3, 4));
    /// assert_eq!(Values::try_from(&array.t())?.shape(), [4, 3]);
    /// assert_eq!(Values::try_from(&array.slice(s![..;-1, 1..3]))?.shape(), [3, 2]);
    /// # Ok::<(), zarrow::Error>(())
    /// ```
    fn try_from(array: &'a ArrayBase<S, D>) -> Result<Values<'a>> {
        let shape: Vec<u64> = array.shape().iter().map(|extent| *extent as u64).collect();
        let item_size = size_of::<T>();
        // `ndarray` keeps the distance of any two elements, in bytes, within an `isize`.
        let strides: Vec<isize> = array.strides().iter().map(|stride| stride * item_size as isize).collect();
        let (mut before, mut behind) = (0usize, 0usize);
        if !array.is_empty() {
            for (extent, stride) in array.shape().iter().zip(&strides) {
                let reach = (extent - 1) * stride.unsigned_abs();
                *(if *stride < 0 { &mut before } else { &mut behind }) += reach;
            }
            behind += item_size;
        }
        let start = array.as_ptr().cast::<u8>().wrapping_sub(before);
        // SAFETY: all elements of the array are in that memory, and the array's borrow keeps it readable and unchanged.
        unsafe {
            let dtype = DataType::Number(T::NUMBERS[0]);
            Values::strided((start, before + behind, before), dtype, &shape, &strides, false)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::store::MemoryStore;
    use crate::{Array, ArrayBuilder, Existing, OpenOptions, create_array};
    use ndarray::{Array3, ArrayD, ShapeBuilder, s};
    use std::sync::Arc;
    use zarrow_array::Number;

    fn array(shape: &[u64]) -> Array {
        let metadata =
            ArrayBuilder::new(shape, Number::Int32).chunk_shape(vec![2; shape.len()]).build().unwrap();
        let store = Arc::new(MemoryStore::default());
        create_array(store, "", metadata, Existing::Refuse, &OpenOptions::default()).unwrap()
    }

    fn stored(array: &Array) -> ArrayD<i32> {
        array.read(..).unwrap().into_tensor().unwrap().as_ndarray::<i32>().unwrap().to_owned()
    }

    #[test]
    fn arrays_of_any_order_are_written_as_they_are_indexed() {
        let numbers = Array3::from_shape_fn((4, 5, 6), |(i, j, k)| (100 * i + 10 * j + k) as i32);
        let columns = Array3::from_shape_fn((4, 5, 6).f(), |at| numbers[at]);
        assert!(!columns.is_standard_layout());
        for source in [numbers.view(), columns.view(), numbers.slice(s![..;-1, 1..;2, ..;-3])] {
            let shape: Vec<u64> = source.shape().iter().map(|extent| *extent as u64).collect();
            let target = array(&shape);
            target.write(.., &source).unwrap();
            assert_eq!(stored(&target), source.into_dyn());
        }
    }

    #[test]
    fn a_part_is_written_and_a_row_repeated() {
        let target = array(&[3, 4]);
        target.write((1.., ..), &ndarray::array![1, 2, 3, 4]).unwrap();
        target.write((.., -1), &ndarray::arr0(9)).unwrap();
        assert_eq!(stored(&target), ndarray::array![[0, 0, 0, 9], [1, 2, 3, 9], [1, 2, 3, 9]].into_dyn());
        target.write((0..0, ..), &ndarray::Array2::<i32>::zeros((0, 4))).unwrap();
        assert!(target.write(.., &ndarray::array![[1, 2]].t()).is_err());
        assert!(target.write(.., &ndarray::arr0(1.5)).is_err());
    }
}
