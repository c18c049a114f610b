//! Structs from another library: every number and every pointer is checked before use.

use super::unpacked_bits;
use crate::Buffer;
use crate::error::{Error, Result};
use crate::export::arrow_abi::{ArrowArray, ArrowSchema};
use std::ffi::c_void;
use std::sync::Arc;

/// Moves a type out of a producer's struct and marks the struct as released; `None` if it was released already.
///
/// # Safety
/// `place` must point to a struct of the C data interface, released or not, without any concurrent access.
#[must_use]
pub unsafe fn take_schema(place: *mut ArrowSchema) -> Option<ArrowSchema> {
    // SAFETY: by this function's contract.
    unsafe {
        (*place).release?;
        let schema = place.read();
        (*place).release = None;
        Some(schema)
    }
}

/// Moves an array out of a producer's struct and marks the struct as released; `None` if it was released already.
///
/// # Safety
/// See [`take_schema`].
#[must_use]
pub unsafe fn take_array(place: *mut ArrowArray) -> Option<ArrowArray> {
    // SAFETY: by this function's contract.
    unsafe {
        (*place).release?;
        let array = place.read();
        (*place).release = None;
        Some(array)
    }
}

/// Returns the type of the items, if there is exactly one child.
pub fn only_child(schema: &ArrowSchema) -> Option<&ArrowSchema> {
    if schema.n_children != 1 || schema.children.is_null() {
        return None;
    }
    // SAFETY: until release the producer keeps `n_children` children, each NULL or a live struct.
    unsafe { (*schema.children).as_ref() }
}

/// Returns the type of the dictionary's values, if the elements are indices.
pub fn dictionary_of(schema: &ArrowSchema) -> Option<&ArrowSchema> {
    // SAFETY: until release the producer holds the dictionary, if there is one.
    unsafe { schema.dictionary.as_ref() }
}

/// A borrowed array, released when the last holder is dropped.
pub struct ForeignArray(ArrowArray);

// SAFETY: the struct is only read, and its data are immutable to both sides.
unsafe impl Sync for ForeignArray {}

impl ForeignArray {
    /// Takes ownership of `array`.
    pub fn new(array: ArrowArray) -> ForeignArray {
        ForeignArray(array)
    }

    /// Creates an array without elements, of any type.
    pub fn empty() -> ForeignArray {
        ForeignArray(ArrowArray::released())
    }
}

/// An array, or the range of a child array that belongs to certain parent elements.
pub struct ForeignPart<'a> {
    array: &'a ArrowArray,
    owner: &'a Arc<ForeignArray>,
    /// Index of the first element, counted from the start of the buffers.
    start: i64,
    length: i64,
}

fn bad(what: &str) -> Error {
    Error::BadArrow(what.into())
}

impl<'a> ForeignPart<'a> {
    /// Returns the whole array of `owner`.
    pub fn new(owner: &'a Arc<ForeignArray>) -> ForeignPart<'a> {
        let array = &owner.0;
        ForeignPart { array, owner, start: array.offset, length: array.length }
    }

    /// Returns the owner of the buffers.
    pub fn owner(&self) -> Arc<dyn Send + Sync> {
        Arc::clone(self.owner) as Arc<dyn Send + Sync>
    }

    /// Returns the number of elements.
    pub fn length(&self) -> usize {
        usize::try_from(self.length).unwrap_or(0)
    }

    /// Returns the index of the first element, counted from the start of the buffers.
    pub fn start(&self) -> usize {
        usize::try_from(self.start).unwrap_or(0)
    }

    /// Returns whether there are no elements; then no buffer is read.
    pub fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// Returns the number of buffers.
    pub fn buffer_count(&self) -> usize {
        if self.array.buffers.is_null() { 0 } else { usize::try_from(self.array.n_buffers).unwrap_or(0) }
    }

    /// Returns the address of a buffer; it may only be NULL if nothing is read from it.
    pub fn buffer(&self, index: usize) -> Result<*const c_void> {
        if index >= self.buffer_count() {
            return Err(bad("the array has fewer buffers than its type needs"));
        }
        // SAFETY: until release the producer keeps `n_buffers` addresses.
        Ok(unsafe { *self.array.buffers.add(index) })
    }

    /// Returns the non-NULL address of a buffer that will be read.
    pub fn present(&self, index: usize) -> Result<*const c_void> {
        let address = self.buffer(index)?;
        if address.is_null() {
            Err(bad("the array has elements, but their buffer is NULL"))
        } else {
            Ok(address)
        }
    }

    /// Returns the dictionary's values.
    pub fn dictionary(&self) -> Result<ForeignPart<'a>> {
        // SAFETY: until release the producer holds the dictionary, if there is one.
        match unsafe { self.array.dictionary.as_ref() } {
            Some(array) => {
                Ok(ForeignPart { array, owner: self.owner, start: array.offset, length: array.length }
                    .checked()?)
            }
            // An empty array needs no dictionary.
            None if self.is_empty() => {
                Ok(ForeignPart { array: self.array, owner: self.owner, start: 0, length: 0 })
            }
            None => Err(bad("the dictionary is missing")),
        }
    }

    /// Returns the elements inside `lists` of fixed sizes, and the nulls among them.
    ///
    /// Null lists are refused: a mask of elements cannot distinguish them from lists of nulls.
    pub fn elements(&self, lists: &[i64]) -> Result<(ForeignPart<'a>, Option<Buffer>)> {
        self.elements_by(lists, ForeignPart::missing)
    }

    /// Like [`elements`](Self::elements), but reads no memory: refuses any validity bitmap with nulls.
    pub fn elements_without_nulls(&self, lists: &[i64]) -> Result<ForeignPart<'a>> {
        let refuse_nulls = |part: &ForeignPart<'_>| match part.has_bitmap()? {
            true => Err(Error::LosesMeaning {
                protocol: "an Arrow",
                what: "device elements with nulls".to_owned(),
                instead: "fill the nulls, or copy the array to the CPU",
            }),
            false => Ok(None),
        };
        self.elements_by(lists, refuse_nulls).map(|(elements, _)| elements)
    }

    fn elements_by(
        &self,
        lists: &[i64],
        missing_of: impl Fn(&ForeignPart<'a>) -> Result<Option<Buffer>>,
    ) -> Result<(ForeignPart<'a>, Option<Buffer>)> {
        let mut part = ForeignPart { ..*self }.checked()?;
        let count = lists.iter().try_fold(part.length, |count, list| count.checked_mul(*list));
        let count = count.filter(|count| isize::try_from(*count).is_ok());
        let count = count.ok_or_else(|| bad("the array exceeds the address space"))? as usize;
        for list in lists {
            if missing_of(&part)?.is_some() {
                return Err(Error::LosesMeaning {
                    protocol: "an Arrow",
                    what: "null lists".to_owned(),
                    instead: "replace each null list by a list of nulls",
                });
            }
            part = part.items(*list)?;
        }
        debug_assert_eq!(part.length(), count);
        let missing = missing_of(&part)?;
        Ok((part, missing))
    }

    fn checked(self) -> Result<ForeignPart<'a>> {
        let end = self.start.checked_add(self.length);
        if self.start < 0 || self.length < 0 || end.is_none() {
            return Err(bad("the array has a negative length or offset"));
        }
        Ok(self)
    }

    /// Returns the items of this part's lists.
    fn items(&self, list: i64) -> Result<ForeignPart<'a>> {
        if self.is_empty() {
            // No item is read, whether or not there is a child.
            return Ok(ForeignPart { length: 0, ..*self });
        }
        if self.array.n_children != 1 || self.array.children.is_null() {
            return Err(bad("a list array must have exactly one child"));
        }
        // SAFETY: until release the producer keeps `n_children` children, each NULL or a live struct.
        let child = unsafe { (*self.array.children).as_ref() }
            .ok_or_else(|| bad("the child of a list array is NULL"))?;
        let overflow = || bad("the lists exceed the address space");
        let first = self.start.checked_mul(list).ok_or_else(overflow)?;
        let length = self.length.checked_mul(list).ok_or_else(overflow)?;
        if first.checked_add(length).is_none_or(|end| end > child.length) {
            return Err(bad("a list array has too few items for its length"));
        }
        let start = first.checked_add(child.offset).ok_or_else(overflow)?;
        ForeignPart { array: child, owner: self.owner, start, length }.checked()
    }

    /// Returns whether elements of this level may be null and have a validity bitmap.
    fn has_bitmap(&self) -> Result<bool> {
        let is_asked = self.array.null_count != 0 && !self.is_empty() && self.buffer_count() > 0;
        Ok(is_asked && !self.buffer(0)?.is_null())
    }

    /// Returns one byte per element of this level, 1 for nulls; `None` if there are no nulls.
    fn missing(&self) -> Result<Option<Buffer>> {
        if !self.has_bitmap()? {
            return Ok(None);
        }
        let bits = self.buffer(0)?;
        // SAFETY: a validity bitmap has a bit for each element from the start of the buffers to the end of the
        // part.
        unsafe { unpacked_bits::missing(bits.cast(), self.start(), self.length()) }
    }
}
