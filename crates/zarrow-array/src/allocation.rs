//! Memory that grows with data. If there is none, the caller gets [`Error::OutOfMemory`].
//!
//! The collections of the standard library end the process when the allocator has no memory. So everything with as many
//! elements as a selection, a chunk, a list or a document grows by these functions alone. What is bounded by the number
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

/// The error of memory for `count` elements of type `T` that the allocator does not have.
#[must_use]
pub fn no_memory<T>(count: usize) -> Error {
    Error::OutOfMemory { nbytes: count.saturating_mul(size_of::<T>()) }
}

/// An empty vector with room for `count` elements, and no more.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| no_memory::<T>(count))?;
    Ok(vector)
}

/// `count` times `value`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn filled<T: Clone>(value: T, count: usize) -> Result<Vec<T>> {
    let mut vector = with_capacity(count)?;
    vector.resize(count, value);
    Ok(vector)
}

/// A copy of `items`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>> {
    let mut vector = with_capacity(items.len())?;
    vector.extend_from_slice(items);
    Ok(vector)
}

/// The parts, one behind the other.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn concatenated<T: Copy>(parts: &[&[T]]) -> Result<Vec<T>> {
    let count = parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.len()));
    let mut vector = with_capacity(count)?;
    parts.iter().for_each(|part| vector.extend_from_slice(part));
    Ok(vector)
}

/// The items in a vector.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn collected<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_extend(items)?;
    Ok(vector)
}

/// The items in a vector, or the first error among them.
///
/// # Errors
/// [`Error::OutOfMemory`], and that of the items.
pub fn try_collected<T, E: From<Error>>(items: impl IntoIterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let items = items.into_iter();
    let mut vector = with_capacity(items.size_hint().0)?;
    for item in items {
        vector.try_push(item?)?;
    }
    Ok(vector)
}

/// The text in memory of its own.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn text(text: &str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|_| no_memory::<u8>(text.len()))?;
    copy.push_str(text);
    Ok(copy)
}

/// A vector that grows where there is memory.
pub trait Grow<T> {
    /// Room for `count` more elements, and for as many again where it has to grow.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn make_room(&mut self, count: usize) -> Result<()>;

    /// Adds one element.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and then the element is dropped.
    fn try_push(&mut self, item: T) -> Result<()>;

    /// Adds the items.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; some may have been added then.
    fn try_extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<()>;

    /// Adds a copy of the items.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing has been added then.
    fn try_append(&mut self, items: &[T]) -> Result<()>
    where
        T: Copy;

    /// Makes it `count` elements long, new ones being `value`.
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
            // Where the number is known it is one loop without a question.
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
