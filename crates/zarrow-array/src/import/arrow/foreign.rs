//! Structs that another library filled: every number and every pointer of them is looked at before it is used.

use super::bitmap;
use crate::Buffer;
use crate::error::{Error, Result};
use crate::export::arrow_abi::{ArrowArray, ArrowSchema};
use std::ffi::c_void;
use std::sync::Arc;

/// Moves a type out of where a producer put it, and marks that place as empty; `None` where it is.
///
/// # Safety
/// `place` points to a struct of the C data interface that nobody else uses meanwhile, released or not.
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

/// Moves an array out of where a producer put it, and marks that place as empty; `None` where it is.
///
/// # Safety
/// As [`take_schema`].
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

/// The type of the items, where there is just one.
pub fn only_child(schema: &ArrowSchema) -> Option<&ArrowSchema> {
    if schema.n_children != 1 || schema.children.is_null() {
        return None;
    }
    // SAFETY: until release the producer holds as many children as it says, each NULL or a live struct.
    unsafe { (*schema.children).as_ref() }
}

/// The type of the values that the elements are indices into.
pub fn dictionary_of(schema: &ArrowSchema) -> Option<&ArrowSchema> {
    // SAFETY: until release the producer holds the dictionary, if there is one.
    unsafe { schema.dictionary.as_ref() }
}

/// An array that is lent, and released with its last holder.
pub struct Lent(ArrowArray);

// SAFETY: the struct is only read, and its data are immutable to both sides.
unsafe impl Sync for Lent {}

impl Lent {
    /// Holds `array`.
    pub fn new(array: ArrowArray) -> Lent {
        Lent(array)
    }

    /// An array of no elements, whatever its type.
    pub fn empty() -> Lent {
        Lent(ArrowArray::released())
    }
}

/// An array, or the part of a child that belongs to some of its parents' elements.
pub struct Part<'a> {
    array: &'a ArrowArray,
    owner: &'a Arc<Lent>,
    /// The first element, counted from the start of the buffers.
    start: i64,
    length: i64,
}

fn bad(what: &str) -> Error {
    Error::BadArrow(what.into())
}

impl<'a> Part<'a> {
    /// The whole array of `owner`.
    pub fn of(owner: &'a Arc<Lent>) -> Part<'a> {
        let array = &owner.0;
        Part { array, owner, start: array.offset, length: array.length }
    }

    /// What keeps the buffers alive.
    pub fn owner(&self) -> Arc<dyn Send + Sync> {
        Arc::clone(self.owner) as Arc<dyn Send + Sync>
    }

    /// The number of elements.
    pub fn length(&self) -> usize {
        usize::try_from(self.length).unwrap_or(0)
    }

    /// The first element, counted from the start of the buffers.
    pub fn start(&self) -> usize {
        usize::try_from(self.start).unwrap_or(0)
    }

    /// Whether there are no elements, so that no buffer is read.
    pub fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// The number of buffers.
    pub fn buffer_count(&self) -> usize {
        if self.array.buffers.is_null() { 0 } else { usize::try_from(self.array.n_buffers).unwrap_or(0) }
    }

    /// The address of a buffer, which may be NULL only where nothing is read from it.
    pub fn buffer(&self, index: usize) -> Result<*const c_void> {
        if index >= self.buffer_count() {
            return Err(bad("it has fewer buffers than its type asks for"));
        }
        // SAFETY: until release the producer holds as many addresses as it says.
        Ok(unsafe { *self.array.buffers.add(index) })
    }

    /// As [`buffer`](Self::buffer), for one that is read.
    pub fn present(&self, index: usize) -> Result<*const c_void> {
        let address = self.buffer(index)?;
        if address.is_null() {
            Err(bad("an array with elements, but without their buffer"))
        } else {
            Ok(address)
        }
    }

    /// The values that the elements are indices into.
    pub fn dictionary(&self) -> Result<Part<'a>> {
        // SAFETY: until release the producer holds the dictionary, if there is one.
        match unsafe { self.array.dictionary.as_ref() } {
            Some(array) => {
                Ok(Part { array, owner: self.owner, start: array.offset, length: array.length }.checked()?)
            }
            // An array of no elements need not say what they are indices into.
            None if self.is_empty() => Ok(Part { array: self.array, owner: self.owner, start: 0, length: 0 }),
            None => Err(bad("indices without a dictionary")),
        }
    }

    /// The elements inside `lists` of fixed sizes, and which of them are null.
    ///
    /// A list that is null is refused: a mask of elements cannot tell it from a list of nulls.
    pub fn elements(&self, lists: &[i64]) -> Result<(Part<'a>, Option<Buffer>)> {
        self.elements_by(lists, Part::missing)
    }

    /// As [`elements`](Self::elements), where no memory may be read: any validity bitmap with nulls is refused.
    pub fn elements_without_nulls(&self, lists: &[i64]) -> Result<Part<'a>> {
        let refuse_nulls = |part: &Part<'_>| match part.has_bitmap()? {
            true => Err(Error::LosesMeaning {
                protocol: "an Arrow",
                what: "elements on a device of which some are null".to_owned(),
                instead: "fill these, or copy the array to the CPU",
            }),
            false => Ok(None),
        };
        self.elements_by(lists, refuse_nulls).map(|(elements, _)| elements)
    }

    fn elements_by(
        &self,
        lists: &[i64],
        missing_of: impl Fn(&Part<'a>) -> Result<Option<Buffer>>,
    ) -> Result<(Part<'a>, Option<Buffer>)> {
        let mut part = Part { ..*self }.checked()?;
        let count = lists.iter().try_fold(part.length, |count, list| count.checked_mul(*list));
        let count = count.filter(|count| isize::try_from(*count).is_ok());
        let count = count.ok_or_else(|| bad("more elements than memory can address"))? as usize;
        for list in lists {
            if missing_of(&part)?.is_some() {
                return Err(Error::LosesMeaning {
                    protocol: "an Arrow",
                    what: "lists of which some are null".to_owned(),
                    instead: "fill these, with a list of nulls for one",
                });
            }
            part = part.items(*list)?;
        }
        debug_assert_eq!(part.length(), count);
        let missing = missing_of(&part)?;
        Ok((part, missing))
    }

    fn checked(self) -> Result<Part<'a>> {
        let end = self.start.checked_add(self.length);
        if self.start < 0 || self.length < 0 || end.is_none() {
            return Err(bad("an array of a negative length, or that starts before its buffers"));
        }
        Ok(self)
    }

    /// The items of the lists of this part.
    fn items(&self, list: i64) -> Result<Part<'a>> {
        if self.is_empty() {
            // No item is read, whether there is a child for it or not.
            return Ok(Part { length: 0, ..*self });
        }
        if self.array.n_children != 1 || self.array.children.is_null() {
            return Err(bad("a list needs exactly one child array"));
        }
        // SAFETY: until release the producer holds as many children as it says, each NULL or a live struct.
        let child =
            unsafe { (*self.array.children).as_ref() }.ok_or_else(|| bad("a list without its items"))?;
        let overflow = || bad("a list that ends beyond memory");
        let first = self.start.checked_mul(list).ok_or_else(overflow)?;
        let length = self.length.checked_mul(list).ok_or_else(overflow)?;
        if first.checked_add(length).is_none_or(|end| end > child.length) {
            return Err(bad("a list has fewer items than its length says"));
        }
        let start = first.checked_add(child.offset).ok_or_else(overflow)?;
        Part { array: child, owner: self.owner, start, length }.checked()
    }

    /// Whether there is a validity bitmap for elements of this level that may be null.
    fn has_bitmap(&self) -> Result<bool> {
        let is_asked = self.array.null_count != 0 && !self.is_empty() && self.buffer_count() > 0;
        Ok(is_asked && !self.buffer(0)?.is_null())
    }

    /// One byte for each element of this level, 1 where it is null; `None` where none is.
    fn missing(&self) -> Result<Option<Buffer>> {
        if !self.has_bitmap()? {
            return Ok(None);
        }
        let bits = self.buffer(0)?;
        // SAFETY: a validity bitmap has a bit for each element from the start of the buffers to the end of the part.
        unsafe { bitmap::missing(bits.cast(), self.start(), self.length()) }
    }
}
