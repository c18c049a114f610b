//! Fallible allocation: functions that return [`Error::OutOfMemory`] instead of aborting.
//!
//! The collections of the standard library abort the process when an allocation fails. So everything that grows
//! with a selection, a chunk, a list or a document is allocated by these functions. What is bounded by the number
//! of axes, codecs or threads is small, and may use the standard collections.
//!
//! ```
//! use zarrow_array::allocation::{self, Grow};
//! let mut offsets = allocation::with_capacity(3)?;
//! offsets.try_push(0i64)?;
//! offsets.try_append(&[4, 9])?;
//! assert_eq!(allocation::copied(&offsets)?, [0, 4, 9]);
//! assert!(allocation::filled(0u64, usize::MAX / 8).is_err());
//! # Ok::<(), zarrow_array::Error>(())
//! ```

use crate::error::{Error, Result};

/// Returns the error of a failed allocation of `count` elements of type `T`.
#[must_use]
pub fn no_memory<T>(count: usize) -> Error {
    Error::OutOfMemory { nbytes: count.saturating_mul(size_of::<T>()) }
}

/// Returns an empty vector with room for exactly `count` elements.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| no_memory::<T>(count))?;
    Ok(vector)
}

/// Returns a vector of `count` clones of `value`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut vector = with_capacity(count)?;
    vector.resize(count, value);
    Ok(vector)
}

/// Copies `items` into a new vector.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>> {
    let mut vector = with_capacity(items.len())?;
    vector.extend_from_slice(items);
    Ok(vector)
}

/// Concatenates `parts` into a new vector.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn concatenated<T: Copy>(parts: &[&[T]]) -> Result<Vec<T>> {
    let count = parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.len()));
    let mut vector = with_capacity(count)?;
    parts.iter().for_each(|part| vector.extend_from_slice(part));
    Ok(vector)
}

/// Collects the items into a vector.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn collected<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_extend(items)?;
    Ok(vector)
}

/// Collects the items into a vector, or returns the first error.
///
/// # Errors
/// [`Error::OutOfMemory`], and the items' errors.
pub fn try_collected<T, E: From<Error>>(items: impl IntoIterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let items = items.into_iter();
    let mut vector = with_capacity(items.size_hint().0)?;
    for item in items {
        vector.try_push(item?)?;
    }
    Ok(vector)
}

/// Copies the text into a new string.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn text(text: &str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| no_memory::<u8>(text.len()))?;
    copy.push_str(text);
    Ok(copy)
}

/// Checks that memory is left for many small allocations. If one of the standard library fails, the process ends.
///
/// It is called for each item from outside that takes a few KiB, such as a document or a page of names. It allocates and
/// frees pieces that an allocator keeps for the next allocations, instead of one mapping that it returns to the system.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn check_spare() -> Result<()> {
    const PIECE_NBYTES: usize = 24 << 10;
    let mut pieces: [Vec<u8>; 4] = Default::default();
    for piece in &mut pieces {
        piece.try_reserve_exact(PIECE_NBYTES).map_err(|_| no_memory::<u8>(PIECE_NBYTES))?;
    }
    // The compiler may remove allocations without a use.
    std::hint::black_box(&pieces);
    Ok(())
}

/// Fallible growth of a vector.
pub trait Grow<T> {
    /// Reserves room for `count` more elements, with amortized growth.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn make_room(&mut self, count: usize) -> Result<()>;

    /// Adds one element.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; the element is dropped then.
    fn try_push(&mut self, item: T) -> Result<()>;

    /// Appends the items.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; some items may have been appended by then.
    fn try_extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<()>;

    /// Appends copies of the items.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; no item has been appended then.
    fn try_append(&mut self, items: &[T]) -> Result<()>
    where
        T: Copy;

    /// Resizes to `count` elements, filling with `value`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn try_resize(&mut self, count: usize, value: T) -> Result<()>
    where
        T: Clone;
}

impl<T> Grow<T> for Vec<T> {
    #[inline]
    fn make_room(&mut self, count: usize) -> Result<()> {
        self.try_reserve(count).map_err(|_| no_memory::<T>(self.len().saturating_add(count)))
    }

    #[inline]
    fn try_push(&mut self, item: T) -> Result<()> {
        if self.len() == self.capacity() {
            self.make_room(1)?;
        }
        self.push(item);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<()> {
        let items = items.into_iter();
        match items.size_hint() {
            // A known length needs no capacity check per item.
            (least, Some(most)) if least == most => {
                self.make_room(least)?;
                let room = self.capacity() - self.len();
                self.extend(items.take(room));
            }
            (least, _) => {
                self.make_room(least)?;
                for item in items {
                    self.try_push(item)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn try_append(&mut self, items: &[T]) -> Result<()>
    where
        T: Copy,
    {
        self.make_room(items.len())?;
        self.extend_from_slice(items);
        Ok(())
    }

    fn try_resize(&mut self, count: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        self.make_room(count.saturating_sub(self.len()))?;
        self.resize(count, value);
        Ok(())
    }
}
