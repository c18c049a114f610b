//! Reading memory that other libraries may write to concurrently: one atomic load per element.
//!
//! Such a program sees a mixture of old and new elements, as with NumPy.

use crate::error::{Error, Result};
use crate::layout::SharedTensor;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering,
};

/// A number with an atomic load.
pub(crate) trait Word: Copy {
    /// Loads the number.
    ///
    /// # Safety
    /// The address must be aligned and valid for reads.
    unsafe fn load(address: *mut Self) -> Self;
}

macro_rules! words {
    ($( $word:ty, $atomic:ty; )*) => { $(
        impl Word for $word {
            unsafe fn load(address: *mut Self) -> Self {
                // SAFETY: the caller's contract.
                unsafe { <$atomic>::from_ptr(address) }.load(Ordering::Relaxed)
            }
        }
    )* };
}

words! {
    u8, AtomicU8;
    u16, AtomicU16;
    u32, AtomicU32;
    u64, AtomicU64;
    i8, AtomicI8;
    i16, AtomicI16;
    i32, AtomicI32;
    i64, AtomicI64;
}

/// The words of a tensor in memory order.
pub(crate) struct TensorWords<'a, T> {
    next: NonNull<T>,
    left: usize,
    _tensor: &'a SharedTensor,
}

impl<T: Word> Iterator for TensorWords<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: `words` checked that `left` aligned words follow in the tensor's memory, which the tensor keeps
        // alive.
        unsafe {
            let word = T::load(self.next.as_ptr());
            self.next = self.next.add(1);
            Some(word)
        }
    }
}

impl SharedTensor {
    /// Returns the elements as words in memory order. An element must be a whole number of words; the elements must
    /// be contiguous in some order of axes.
    ///
    /// # Errors
    /// [`Error::NeedsCopy`] if they are not contiguous, or misaligned.
    pub(crate) fn words<T: Word>(&self) -> Result<TensorWords<'_, T>> {
        let needs_copy = |what| Error::NeedsCopy { protocol: "Arrow", what };
        if !self.is_one_run() {
            return Err(needs_copy("a tensor with non-contiguous elements"));
        }
        let next = self.pointer().cast::<T>();
        if !next.as_ptr().is_aligned() && self.size() > 0 {
            return Err(needs_copy("elements that are not aligned"));
        }
        Ok(TensorWords { next, left: self.nbytes() / size_of::<T>(), _tensor: self })
    }

    /// Returns whether the elements are contiguous, in any order of axes.
    fn is_one_run(&self) -> bool {
        let mut axes: Vec<(i64, i64)> =
            self.strides().iter().copied().zip(self.shape().iter().copied()).collect();
        axes.sort_by_key(|axis| std::cmp::Reverse(*axis));
        let (strides, shape): (Vec<i64>, Vec<i64>) = axes.into_iter().unzip();
        crate::shape::is_c_contiguous(&shape, &strides)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Buffer, IndexStep, Number, Tensor};

    #[test]
    fn contiguous_elements_are_read_in_memory_order() {
        let bytes = Buffer::copy_of(&[0, 1, 2, 3, 4, 5]).unwrap();
        let tensor = Tensor::new(bytes, vec![2, 3], Number::UInt8.into()).unwrap().into_shared().unwrap();
        let swapped = tensor.transpose(&[1, 0]).unwrap();
        assert_eq!(swapped.words::<u8>().unwrap().collect::<Vec<u8>>(), [0, 1, 2, 3, 4, 5]);
        let steps = [IndexStep::Range { start: 0, step: 1, count: 2 }, IndexStep::At(1)];
        assert!(tensor.view(&steps).unwrap().words::<u8>().is_err());
    }
}
